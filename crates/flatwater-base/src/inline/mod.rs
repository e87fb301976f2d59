//! Which calls may run on the thread that polls them, and for how long. Pure except for its clocks.

pub mod backoff;
pub mod budget;
pub mod eligibility;
pub mod outcome;
pub mod router;
