//! Threads. Whether the current one may wait, whether it is inside a transaction, and how many are of use.

pub(crate) mod cores;
pub(crate) mod dispose;
pub(crate) mod linger;
pub(crate) mod openers;
pub(crate) mod park;
pub(crate) mod scope;
