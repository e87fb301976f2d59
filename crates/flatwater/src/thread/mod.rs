//! Floor 0: what a thread is doing. Whether it may wait, and whether it is inside a transaction.

pub(crate) mod park;
pub(crate) mod scope;
