//! The counters of the pool of readers, without atomics: short reads are so fast that an atomic per counter would be
//! measurable.
//!
//! Owns: the counters. Invariant: the pool's lock, which each read takes anyway, guards them. Runs on the threads of
//! callers and readers. Leaves out: latencies of reads that workers run, and all reads in a transaction.

use std::time::Duration;

use super::{Times, record, times};

#[derive(Clone)]
pub(crate) struct ReaderCounters {
    /// Latencies of the reads that were answered on their caller's thread.
    pub(super) answered: Times,
    /// Reads that began on their caller's thread and were given up there.
    moved: u64,
    /// Reads of snapshots that ran on their caller's thread. Their latencies are counted with those of transactions.
    in_snapshots: u64,
    /// Reads that used a lease again.
    pub(super) reused: u64,
}

impl ReaderCounters {
    pub(crate) fn new() -> Self {
        Self { answered: times(), moved: 0, in_snapshots: 0, reused: 0 }
    }

    /// Records a read that ran on its caller's thread, and how long it took.
    pub(crate) fn ran_inline(&mut self, is_answered: bool, took: Duration) {
        if is_answered {
            record(&mut self.answered, took);
        } else {
            self.moved += 1;
        }
    }

    /// Records a read of a snapshot that ran on its caller's thread.
    pub(crate) fn ran_in_snapshot(&mut self) {
        self.in_snapshots += 1;
    }

    /// Adds to the number of reads that used a lease again.
    pub(crate) fn reused(&mut self, reads: u64) {
        self.reused += reads;
    }
}
