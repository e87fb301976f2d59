//! Floor 2: everything that waits. The queue and its token, replies, lock waits, the timer, blocking on a future.

pub(crate) mod bounded;
pub(crate) mod breaker;
pub(crate) mod busy;
pub(crate) mod fairness;
pub(crate) mod growth;
pub(crate) mod lease;
pub(crate) mod park;
pub(crate) mod patience;
pub(crate) mod queue;
pub(crate) mod reply;
pub(crate) mod scope;
mod sync;
pub(crate) mod timer;
