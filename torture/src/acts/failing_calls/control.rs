//! The preloaded library, as the part speaks with it: by opening paths that it answers.

use std::path::PathBuf;

use super::plan::Plan;
use crate::parts;
use crate::round::Finding;

/// The library adds this to what it answers.
const ANSWER: i32 = 1_000_000;

/// Where the library lies.
pub(super) fn library() -> Result<PathBuf, Finding> {
    parts::library("libflatwater_torture_faults.so")
}

/// From now on calls fail as planned.
pub(super) fn arm(plan: &Plan) -> Result<(), Finding> {
    ask(&plan.path()).map(drop)
}

/// From now on every call is made.
pub(super) fn disarm() -> Result<(), Finding> {
    ask("/flatwater-torture/disarm").map(drop)
}

/// Calls that failed, were cut short or late since it was armed.
pub(super) fn met() -> Result<u64, Finding> {
    ask("/flatwater-torture/met")
}

/// Syncs of these that failed.
pub(super) fn failed_syncs() -> Result<u64, Finding> {
    ask("/flatwater-torture/syncs")
}

fn ask(path: &str) -> Result<u64, Finding> {
    let answer = std::fs::File::open(path).err().and_then(|error| error.raw_os_error());
    let number = answer.and_then(|errno| u64::try_from(errno - ANSWER).ok());
    number.ok_or_else(|| Finding::new(format!("the preloaded library does not answer {path}: {answer:?}")))
}
