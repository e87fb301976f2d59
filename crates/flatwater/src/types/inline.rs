//! Whether short work may run on its caller's thread, what counts as short, and what becomes of a try.
//!
//! Owns: the option's values and their defaults, which are API. Leaves out: deciding.

use std::time::Duration;

use flatwater_sqlite::{Refused, refused};
use rusqlite::ffi;

/// Whether an awaited call may run on the thread that polls it. A call that is known to be short then costs about what
/// SQLite itself costs, instead of two changes of threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inline {
    /// A statement whose bytecode shows that it is short, and that keeps to these limits. One that does not is run again
    /// by a worker, and stays with the workers for a while.
    Auto(InlineLimits),
    /// Everything runs on the threads of workers.
    Never,
}

impl Default for Inline {
    fn default() -> Self {
        Self::Auto(InlineLimits::default())
    }
}

/// What an inline call keeps to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InlineLimits {
    /// A read ends after this long; it is looked at about every 1,000 steps of SQLite's virtual machine, and before each
    /// page that is read from the file. A write is inline only if it usually takes no longer; it is ended only before
    /// such a page, and not in a transaction. Default 50 us.
    pub time: Duration,
    /// Rows of a result at most. Default 256.
    pub rows: usize,
    /// Bytes of text and blob parameters together, and of each value and row that is touched, at most. For values and
    /// rows less than 1 KiB counts as that. Default 64 KiB.
    pub bytes: usize,
}

impl Default for InlineLimits {
    fn default() -> Self {
        Self { time: Duration::from_micros(50), rows: 256, bytes: 64 << 10 }
    }
}

/// What became of a call that was tried on its caller's thread.
#[derive(Debug)]
pub(crate) enum Stay<T> {
    /// It was answered, and held the thread for so long.
    Done(T, Duration),
    /// It turned out not to be short, or failed: a worker runs it again.
    Moved(Moved, Duration),
    /// It was not begun.
    Unfit,
}

impl<T> Stay<T> {
    /// The same with another answer.
    pub(crate) fn map<U>(self, f: impl FnOnce(T) -> U) -> Stay<U> {
        match self {
            Self::Done(answer, took) => Stay::Done(f(answer), took),
            Self::Moved(why, took) => Stay::Moved(why, took),
            Self::Unfit => Stay::Unfit,
        }
    }

    /// For how long it held the thread.
    pub(crate) fn took(&self) -> Duration {
        match self {
            Self::Done(_, took) | Self::Moved(_, took) => *took,
            Self::Unfit => Duration::ZERO,
        }
    }
}

/// Why a call was moved to a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moved {
    /// Its steps took too long: the statement is to blame.
    TooLong,
    /// A value or the result was too large: the statement is to blame.
    TooLarge,
    /// It would have read a page too late: the cache is, or the disk.
    LateRead,
    /// A lock was held, the schema had changed, or it failed.
    Other,
}

impl Moved {
    /// By the extended code of the error.
    pub(crate) fn after(code: Option<i32>) -> Self {
        let Some(code) = code else { return Self::Other };
        match (refused(code), code & 0xff) {
            (Some(Refused::Page), _) => Self::LateRead,
            (None, ffi::SQLITE_INTERRUPT) => Self::TooLong,
            (None, ffi::SQLITE_TOOBIG) => Self::TooLarge,
            _ => Self::Other,
        }
    }

    /// Whether it shows that the statement is not short. What others did, or what the cache had not, says nothing of the next
    /// time.
    pub(crate) fn blames_the_text(self) -> bool {
        matches!(self, Self::TooLong | Self::TooLarge)
    }
}
