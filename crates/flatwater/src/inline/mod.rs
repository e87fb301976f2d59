//! Which calls may run on the thread that polls them, and for how long. Pure except for its clocks.

pub(crate) mod backoff;
pub(crate) mod budget;
pub(crate) mod eligibility;
pub(crate) mod outcome;
pub(crate) mod router;
