//! The data of `stats().turns`: the turns that this process took among those that write to the file.
//!
//! Owns: the recorder, written by the thread that holds the writer slot and by the one that waits for commits, and the
//! snapshot. Invariant: each counter is a single atomic. Leaves out: when turns are taken (`turnstile`).

use std::path::PathBuf;
use std::time::Duration;

use super::counters::{Counter, counters};
use crate::events;

counters! {
    pub(crate) struct TurnRecorder { path: PathBuf }

    /// Turns among the processes that write to the file, see [`Tuning::fairness`](crate::options::Tuning::fairness). All zero while no
    /// other process writes.
    #[derive(Debug, Clone, Default, PartialEq, Eq)]
    #[non_exhaustive]
    pub struct TurnStats {
        /// Turns that this process took. In a turn it may commit many writes.
        pub taken: u64 = Counter,
        /// How long it waited for them, in microseconds.
        pub waited_us: u64 = Counter,
        /// Turns that it took out of order, because no turn had ended for 20 ms: the process that was next had stopped.
        pub stalled: u64 = Counter,
        /// How often the file `<db>-turn` could not be used, so that writes only polled for the lock.
        pub failures: u64 = Counter,
        /// Commits that this process announced to other processes with live queries.
        pub commits_told: u64 = Counter,
        /// How often the announcement of another process's commit woke the live queries of this one.
        pub commits_heard: u64 = Counter,
    }
}

impl TurnRecorder {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, ..Self::default() }
    }

    /// Records a part of the time that writes waited.
    pub(crate) fn waited(&self, time: Duration) {
        self.waited_us.add(u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
    }

    pub(crate) fn took_turn(&self) {
        self.taken.count();
    }

    /// Records a turn that was taken before it was due.
    pub(crate) fn jumped(&self) {
        self.taken.count();
        self.stalled.count();
    }

    /// Records that the file cannot be used at the moment.
    pub(crate) fn failed(&self, error: &std::io::Error) {
        if self.failures.get() == 0 {
            events::no_turns(&self.path, error);
        }
        self.failures.count();
    }

    pub(crate) fn snapshot(&self) -> TurnStats {
        self.counted()
    }
}
