//! Reads on the readers' threads: what they see, and for how long.

mod leases;
mod readers;
mod snapshots;
mod streams;
