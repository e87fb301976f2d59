//! What a call is, where it waits, and in which order calls go on.

pub(crate) mod awaiting;
pub(crate) mod bell;
pub(crate) mod blocked;
pub(crate) mod call;
pub(crate) mod caller;
pub(crate) mod entries;
pub(crate) mod inbox;
pub(crate) mod line;
pub(crate) mod logical_turns;
pub(crate) mod nested;
pub(crate) mod owners;
pub(crate) mod pending;
pub(crate) mod place;
pub(crate) mod polls;
pub(crate) mod running_loop;
#[cfg(unix)]
pub(crate) mod socket;
pub(crate) mod steps;
pub(crate) mod turns;
