//! Threads. How they start, whether the current one may wait or is inside a transaction, and how many are of use.

pub(crate) mod background;
pub(crate) mod block_on;
pub(crate) mod cores;
pub(crate) mod linger;
pub(crate) mod reentrancy;
pub(crate) mod run_time;
pub(crate) mod start;
