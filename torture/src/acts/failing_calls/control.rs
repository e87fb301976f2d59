//! The part's side of the protocol with the preloaded library: it opens special paths, and the library returns values
//! as error numbers.

use std::path::PathBuf;

use super::plan::Plan;
use crate::parts;
use crate::round::Finding;

/// The library adds this to the values it returns.
const ANSWER: i32 = 1_000_000;

/// Returns the path of the library.
pub(super) fn library() -> Result<PathBuf, Finding> {
    parts::library("libflatwater_torture_faults.so")
}

/// From now on calls fail as planned.
pub(super) fn arm(plan: &Plan) -> Result<(), Finding> {
    ask(&plan.path()).map(drop)
}

/// From now on no call fails.
pub(super) fn disarm() -> Result<(), Finding> {
    ask("/flatwater-torture/disarm").map(drop)
}

/// Returns the number of calls that failed, were cut short or delayed since `arm`.
pub(super) fn met() -> Result<u64, Finding> {
    ask("/flatwater-torture/met")
}

/// Returns the number of syncs among them that failed.
pub(super) fn failed_syncs() -> Result<u64, Finding> {
    ask("/flatwater-torture/syncs")
}

fn ask(path: &str) -> Result<u64, Finding> {
    let answer = std::fs::File::open(path).err().and_then(|error| error.raw_os_error());
    let number = answer.and_then(|errno| u64::try_from(errno - ANSWER).ok());
    number.ok_or_else(|| Finding::new(format!("the preloaded library does not answer {path}: {answer:?}")))
}
