//! The library that makes calls of the C library fail (`torture/faults`), as the part uses it into which it is preloaded:
//! the part opens special paths, and the library returns numbers as error numbers.
//!
//! Leaves out: which calls an act makes fail.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::finding::Finding;
use crate::parts;

/// The library adds this to the values it returns.
const ANSWER: i32 = 1_000_000;

/// Which of the counted calls are selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum When {
    /// The call with this number, counted from 1.
    Once(u64),
    /// Each call whose number is a multiple of this.
    Every(u64),
    /// One in this many calls, at random.
    OneIn(u64, u64),
    /// This many calls, starting at this one.
    From(u64, u64),
}

/// What the library is to do. The numbers are the library's own (`plan.rs` there).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Order {
    /// The bits of the kinds of calls.
    pub(crate) calls: u64,
    /// The bits of the files.
    pub(crate) files: u64,
    /// An error number, or what else happens to a selected call.
    pub(crate) effect: u64,
    pub(crate) when: When,
    /// At most so many calls are selected.
    pub(crate) most: u64,
}

impl Order {
    /// Returns the path that arms the library with this order.
    pub(crate) fn path(&self) -> String {
        let Self { calls, files, effect, most, .. } = self;
        let (when, step, most, seed) = match self.when {
            When::Once(number) => (0, number, 1, 0),
            When::Every(step) => (1, step, *most, 0),
            When::OneIn(step, seed) => (2, step, *most, seed),
            When::From(number, count) => (3, number, count.min(*most), 0),
        };
        format!("/flatwater-torture/arm/{calls}/{files}/{effect}/{when}/{step}/{most}/{seed}")
    }
}

/// Returns the path of the library.
pub(crate) fn library() -> Result<PathBuf, Finding> {
    parts::library("libflatwater_torture_faults.so")
}

/// From now on calls fail as ordered.
pub(crate) fn arm(order: &Order) -> Result<(), Finding> {
    ask(&order.path()).map(drop)
}

/// From now on no call fails.
pub(crate) fn disarm() -> Result<(), Finding> {
    ask("/flatwater-torture/disarm").map(drop)
}

/// Returns the number of calls that failed, were cut short or delayed since `arm`.
pub(crate) fn met() -> Result<u64, Finding> {
    ask("/flatwater-torture/met")
}

/// Returns the number of syncs among them that failed.
pub(crate) fn failed_syncs() -> Result<u64, Finding> {
    ask("/flatwater-torture/syncs")
}

fn ask(path: &str) -> Result<u64, Finding> {
    let answer = std::fs::File::open(path).err().and_then(|error| error.raw_os_error());
    let number = answer.and_then(|errno| u64::try_from(errno - ANSWER).ok());
    number.ok_or_else(|| Finding::new(format!("the preloaded library does not answer {path}: {answer:?}")))
}
