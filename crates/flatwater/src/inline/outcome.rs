//! What becomes of a call that is tried on its caller's thread.
//!
//! Owns: the ways it may end, and which of them show that the statement is not short. Pure. Leaves out: trying.

use std::time::Duration;

use flatwater_sqlite::{Refused, refused};
use rusqlite::ffi;

/// What became of a call that was tried on its caller's thread.
#[derive(Debug)]
pub(crate) enum InlineRun<T> {
    /// It was answered, and held the thread for so long.
    Done(T, Duration),
    /// It turned out not to be short, or failed: a worker runs it again.
    FellBack(Fallback, Duration),
    /// It was not begun.
    Ineligible,
}

impl<T> InlineRun<T> {
    /// The same with another answer.
    pub(crate) fn map<U>(self, f: impl FnOnce(T) -> U) -> InlineRun<U> {
        match self {
            Self::Done(answer, took) => InlineRun::Done(f(answer), took),
            Self::FellBack(why, took) => InlineRun::FellBack(why, took),
            Self::Ineligible => InlineRun::Ineligible,
        }
    }

    /// For how long it held the thread.
    pub(crate) fn took(&self) -> Duration {
        match self {
            Self::Done(_, took) | Self::FellBack(_, took) => *took,
            Self::Ineligible => Duration::ZERO,
        }
    }
}

/// Why a call was moved to a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fallback {
    /// Its steps took too long: the statement is to blame.
    Interrupted,
    /// A value or the result was too large: the statement is to blame.
    TooLarge,
    /// It would have read a page too late: the cache is, or the disk.
    LateRead,
    /// A lock was held, or no snapshot began at once.
    Locked,
    /// The schema is not the one that the statement was prepared for.
    SchemaChanged,
    /// It failed in another way, which a worker is to find out and tell.
    Failed,
}

impl Fallback {
    /// By the extended code of the error.
    pub(crate) fn after(code: Option<i32>) -> Self {
        let Some(code) = code else { return Self::Failed };
        match (refused(code), code & 0xff) {
            (Some(Refused::Page), _) => Self::LateRead,
            (Some(Refused::Snapshot), _) | (None, ffi::SQLITE_BUSY | ffi::SQLITE_LOCKED) => Self::Locked,
            (None, ffi::SQLITE_INTERRUPT) => Self::Interrupted,
            (None, ffi::SQLITE_TOOBIG) => Self::TooLarge,
            // In an inline run nothing is prepared: the policy denies what SQLite wants to prepare again.
            (None, ffi::SQLITE_SCHEMA | ffi::SQLITE_AUTH) => Self::SchemaChanged,
            _ => Self::Failed,
        }
    }

    /// Whether it shows that the statement is not short. What others did, or what the cache had not, says nothing of the next
    /// time.
    pub(crate) fn blames_the_text(self) -> bool {
        matches!(self, Self::Interrupted | Self::TooLarge)
    }

    /// Whether it tells how long the statement takes, the disk included.
    pub(crate) fn tells_its_time(self) -> bool {
        self.blames_the_text() || self == Self::LateRead
    }
}
