//! Floor 0: what may run on the thread that polls a call, and for how long. Pure but for its clocks.

pub(crate) mod backoff;
pub(crate) mod breaker;
pub(crate) mod budget;
pub(crate) mod outcome;
pub(crate) mod router;
