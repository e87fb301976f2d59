//! Several processes on one file, and a process that is killed.

mod kill;
pub(crate) mod killed_steps;
mod opening_together;
#[cfg(target_os = "linux")]
mod turn_faults;
#[cfg(target_os = "linux")]
mod turn_rights;
mod turns;
mod writers;
