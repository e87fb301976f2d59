//! Savepoints with names, for front ends.
//!
//! Owns: the calls. Runs on the caller's thread; no work runs here. Leaves out: what they do (`api::savepoints`).

use super::{FrontCall, Output, Target};
use crate::api::savepoints::named;
use crate::workers::work::NamedStep;

/// As `Transaction::savepoint`.
#[must_use]
pub fn savepoint(target: &Target, name: &str) -> FrontCall {
    step(target, "savepoint", NamedStep::Open, name)
}

/// As `Transaction::release`.
#[must_use]
pub fn release(target: &Target, name: &str) -> FrontCall {
    step(target, "release", NamedStep::Release, name)
}

/// As `Transaction::rollback_to`.
#[must_use]
pub fn rollback_to(target: &Target, name: &str) -> FrontCall {
    step(target, "rollback_to", NamedStep::RollbackTo, name)
}

fn step(target: &Target, operation: &'static str, step: NamedStep, name: &str) -> FrontCall {
    target.call(operation, named(step, name), |answer, _| answer.done().map(|()| Output::Done))
}
