//! The outcome of a call that is tried inline.
//!
//! Owns: the possible outcomes, and which of them show that the statement is not short. Pure. Leaves out: the inline
//! run.

use std::time::Duration;

use flatwater_sqlite::{Refused, refused};
use rusqlite::ffi;

/// The outcome of a call that was tried inline.
pub enum InlineRun<T> {
    /// The call returned its result, and held the thread for this long.
    Done(T, Held),
    /// The call turned out not to be short, or failed, and held the thread for this long. A worker runs it again.
    FellBack(Fallback, Held),
    /// The call did not begin.
    Ineligible(NotTried),
}

/// Why a call did not begin on its caller's thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotTried {
    /// No connection was free.
    Busy,
    /// Its statement is not prepared on the connection, or its program is not known there.
    Unknown,
    /// Its statement is known not to be short.
    Long,
    /// Runs of its statement turned out not to be short.
    Backoff,
    /// Runs of several statements turned out not to be short, because of the disk.
    Breaker,
    /// All else: it is no statement, its values are large, writes are to share a commit, or its place is not at rest.
    Other,
}

/// How long a run held its caller's thread. Made by its permit alone, which has told the breaker (`eligibility`).
#[derive(Debug, Clone, Copy)]
pub struct Held {
    pub(super) time: Duration,
    /// It took far too long for a reason of its own (`backoff`).
    pub(super) is_slow: bool,
}

impl Held {
    /// Returns the time.
    pub fn time(self) -> Duration {
        self.time
    }
}

#[cfg(test)]
impl From<Duration> for Held {
    fn from(time: Duration) -> Self {
        Self { time, is_slow: false }
    }
}

impl<T> InlineRun<T> {
    /// Returns how long the call held the thread.
    pub fn took(&self) -> Duration {
        match self {
            Self::Done(_, held) | Self::FellBack(_, held) => held.time(),
            Self::Ineligible(_) => Duration::ZERO,
        }
    }
}

/// Why a call fell back to a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fallback {
    /// Its steps, or the pages that they had to read, took too long. This blames the statement.
    Interrupted,
    /// A value or the result was too large. This blames the statement.
    TooLarge,
    /// The time limit passed between two rows. This blames nobody: how long each text took tells.
    Late,
    /// Another connection held a lock, or a snapshot could not begin at once.
    Locked,
    /// The schema differs from the one for which the statement was prepared.
    SchemaChanged,
    /// It failed in another way. A worker runs the call again and reports the error.
    Failed,
}

impl Fallback {
    /// Returns the reason for the extended code of an error.
    pub fn after(code: Option<i32>) -> Self {
        let Some(code) = code else { return Self::Failed };
        match (refused(code), code & 0xff) {
            (Some(Refused::Snapshot), _) | (None, ffi::SQLITE_BUSY | ffi::SQLITE_LOCKED) => Self::Locked,
            (None, ffi::SQLITE_INTERRUPT) => Self::Interrupted,
            (None, ffi::SQLITE_TOOBIG) => Self::TooLarge,
            // An inline run prepares nothing: the policy denies what SQLite would prepare again.
            (None, ffi::SQLITE_SCHEMA | ffi::SQLITE_AUTH) => Self::SchemaChanged,
            _ => Self::Failed,
        }
    }

    /// Returns true if the reason shows that the statement is not short. What other connections did says nothing about the
    /// next run.
    pub fn blames_the_text(self) -> bool {
        matches!(self, Self::Interrupted | Self::TooLarge)
    }

    /// Returns true if the reason shows how long the statement takes, including the disk.
    pub fn tells_its_time(self) -> bool {
        self.blames_the_text() || self == Self::Late
    }
}
