//! The data of `stats().inline`: how many calls ran on their caller's thread, and how many did not.
//!
//! Owns: the recorder, written by the thread that ran a call or sent it to a worker, and the snapshot. Invariant: each
//! counter is a single atomic. Leaves out: deciding where a call runs.

use std::time::Duration;

use super::counters::{Counter, counters};
use super::reader_counters::ReaderCounters;
use crate::inline::outcome::{Fallback, NotTried};

counters! {
    pub(crate) struct InlineRecorder {}

    /// Calls that ran on the thread that polled them, and calls that did not. With [`Inline::Never`](crate::options::Inline::Never)
    /// no call is tried on its thread and none is counted. Blocking calls are tried and counted too.
    #[derive(Debug, Clone, Default, PartialEq, Eq)]
    #[non_exhaustive]
    pub struct InlineStats {
        /// Reads that ran on the thread that polled them.
        pub reads: u64 = Counter,
        /// Writes that ran on the thread that polled them, and nested transactions that were opened or kept there.
        pub writes: u64 = Counter,
        /// Calls that began on that thread, turned out not to be short, and were run again by a worker.
        pub moved: u64 = Counter,
        /// The calls among `moved` that exceeded the time limit, or were stopped before they read another page.
        pub interrupted: u64 = Counter,
        /// The calls among `moved` whose statement SQLite would have had to prepare again, because the schema had changed or
        /// because it plans the statement by the values that were bound.
        pub moved_to_prepare: u64 = Counter,
        /// Calls that did not begin on that thread, because they are not a single short statement, or because no connection
        /// was free. A worker ran them, or the calling thread in the case of a blocking call.
        pub queued: u64 = Counter,
        /// The calls among `queued` for which no reader was free.
        pub queued_busy: u64 = Counter,
        /// The calls among `queued` whose statement was not prepared on the reader, or used there once at most.
        pub queued_unknown: u64 = Counter,
        /// The calls among `queued` whose statement is known not to be short.
        pub queued_long: u64 = Counter,
        /// The calls among `queued` whose statement was not tried for a while, because earlier runs were not short.
        pub queued_backoff: u64 = Counter,
        /// The calls among `queued` that came while no read was tried, because several had waited for the disk.
        pub queued_breaker: u64 = Counter,
        /// Times a call suspended so that other tasks could run, after 1 ms of results that were there at once on its thread.
        pub yields: u64 = Counter,
        /// The longest time one call held its caller's thread, in wall-clock microseconds.
        pub longest_us: u64 = Counter,
    }
}

impl InlineRecorder {
    /// Records how long a call held its caller's thread.
    pub(super) fn held(&self, time: Duration) {
        self.longest_us.raise(super::us(time));
    }

    pub(super) fn done(&self, writes: bool, took: Duration) {
        let counter = if writes { &self.writes } else { &self.reads };
        counter.count();
        self.held(took);
    }

    pub(super) fn moved(&self, why: Fallback, took: Duration) {
        self.moved.count();
        match why {
            Fallback::Interrupted | Fallback::LateRead | Fallback::Late => self.interrupted.count(),
            Fallback::SchemaChanged => self.moved_to_prepare.count(),
            _ => {}
        }
        self.held(took);
    }

    /// Returns what is permitted, or counts why it is not.
    pub(crate) fn permitted<T>(&self, permitted: Result<T, NotTried>) -> Option<T> {
        permitted.inspect_err(|why| self.not_tried(*why)).ok()
    }

    pub(crate) fn not_tried(&self, why: NotTried) {
        self.queued.count();
        match why {
            NotTried::Busy => self.queued_busy.count(),
            NotTried::Unknown => self.queued_unknown.count(),
            NotTried::Long => self.queued_long.count(),
            NotTried::Backoff => self.queued_backoff.count(),
            NotTried::Breaker => self.queued_breaker.count(),
            NotTried::Other => {}
        }
    }

    pub(super) fn snapshot(&self, readers: &ReaderCounters) -> InlineStats {
        let mut stats = self.counted();
        // The counter is without the calls that readers ran.
        stats.reads += readers.answered.len();
        stats
    }
}
