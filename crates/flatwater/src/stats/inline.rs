//! The data of `stats().inline`: how many calls ran on their caller's thread, and how many did not.
//!
//! Owns: the recorder, written by the thread that ran a call or sent it to a worker. Invariant: each counter is a
//! single atomic. Leaves out: deciding where a call runs.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::reader_counters::ReaderCounters;
use crate::inline::outcome::Fallback;

#[derive(Default)]
pub(crate) struct InlineRecorder {
    /// Without the calls that readers ran.
    reads: AtomicU64,
    writes: AtomicU64,
    moved: AtomicU64,
    interrupted: AtomicU64,
    queued: AtomicU64,
    yields: AtomicU64,
    longest_us: AtomicU64,
}

impl InlineRecorder {
    /// Records how long a call held its caller's thread.
    pub(super) fn held(&self, time: Duration) {
        let us = super::us(time);
        if us > self.longest_us.load(Ordering::Relaxed) {
            self.longest_us.fetch_max(us, Ordering::Relaxed);
        }
    }

    pub(super) fn done(&self, writes: bool, took: Duration) {
        let counter = if writes { &self.writes } else { &self.reads };
        counter.fetch_add(1, Ordering::Relaxed);
        self.held(took);
    }

    pub(super) fn moved(&self, why: Fallback, took: Duration) {
        self.moved.fetch_add(1, Ordering::Relaxed);
        if matches!(why, Fallback::Interrupted | Fallback::LateRead) {
            self.interrupted.fetch_add(1, Ordering::Relaxed);
        }
        self.held(took);
    }

    /// Counts a call that went to a worker without an attempt on its caller's thread.
    pub(crate) fn queued(&self) {
        self.queued.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a call that suspended once so that other tasks could run.
    pub(crate) fn yielded(&self) {
        self.yields.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn snapshot(&self, readers: &ReaderCounters) -> InlineStats {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        InlineStats {
            reads: load(&self.reads) + readers.answered.len(),
            writes: load(&self.writes),
            moved: load(&self.moved),
            interrupted: load(&self.interrupted),
            queued: load(&self.queued),
            yields: load(&self.yields),
            longest_us: load(&self.longest_us),
        }
    }
}

/// Calls that ran on the thread that polled them, and calls that did not. With [`Inline::Never`](crate::options::Inline::Never)
/// no call is tried on its thread and none is counted. Blocking calls are tried and counted too.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct InlineStats {
    /// Reads that ran on the thread that polled them.
    pub reads: u64,
    /// Writes that ran on the thread that polled them, and nested transactions that were opened or kept there.
    pub writes: u64,
    /// Calls that began on that thread, turned out not to be short, and were run again by a worker.
    pub moved: u64,
    /// The calls among `moved` that ran for too long, or were stopped before they read a page, because their time was over.
    pub interrupted: u64,
    /// Calls that did not begin on that thread, because they are not a single short statement, or because no connection
    /// was free. A worker ran them, or the calling thread in the case of a blocking call.
    pub queued: u64,
    /// Times a call suspended so that other tasks could run, after 1 ms of such calls on its thread.
    pub yields: u64,
    /// The longest time one call held its caller's thread, in wall-clock microseconds.
    pub longest_us: u64,
}
