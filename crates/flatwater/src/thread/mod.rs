//! Floor 0: the state of the current thread. Whether it may wait, and whether it is inside a transaction.

pub(crate) mod dispose;
pub(crate) mod linger;
pub(crate) mod openers;
pub(crate) mod park;
pub(crate) mod scope;
