//! What `stats().inline` tells: how much ran on its caller's thread, and what did not.
//!
//! Owns: the recorder, written by whichever thread ran or sent away a call; single atomics. Leaves out: deciding.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::reader_counters::ReaderCounters;
use crate::inline::outcome::Fallback;

#[derive(Default)]
pub(crate) struct InlineRecorder {
    /// But those of readers.
    reads: AtomicU64,
    writes: AtomicU64,
    moved: AtomicU64,
    interrupted: AtomicU64,
    queued: AtomicU64,
    yields: AtomicU64,
    longest_us: AtomicU64,
}

impl InlineRecorder {
    /// A call held its caller's thread for so long.
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

    /// A call went to a worker without a try.
    pub(crate) fn queued(&self) {
        self.queued.fetch_add(1, Ordering::Relaxed);
    }

    /// A call suspended once for the sake of other tasks.
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

/// Calls that ran on the thread that polled them, and those that did not. With [`Inline::Never`](crate::Inline::Never)
/// nothing is tried and nothing counted. Blocking calls are tried and counted too.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct InlineStats {
    /// Reads that ran on the thread that polled them.
    pub reads: u64,
    /// Writes that ran on the thread that polled them.
    pub writes: u64,
    /// Calls that were begun there, turned out not to be short, and were run again by a worker.
    pub moved: u64,
    /// Those of them that ran for too long, or would have read a page too late.
    pub interrupted: u64,
    /// Calls that were not begun there: they are no single short statement, or no connection was free. A worker ran them,
    /// or, of a blocking call, its own thread.
    pub queued: u64,
    /// Times a call suspended so that other tasks got their turn, after 1 ms of such calls on its thread.
    pub yields: u64,
    /// The longest time one call held its caller's thread, in wall-clock microseconds.
    pub longest_us: u64,
}
