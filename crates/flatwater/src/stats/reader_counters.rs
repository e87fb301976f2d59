//! What the pool of readers counts: its short reads take so little time that an atomic for each number would show.
//!
//! Owns: the numbers; guarded by the pool's lock, which each read takes anyway. Leaves out: latencies of reads that
//! workers run, and all of reads in a transaction.

use std::time::Duration;

use hdrhistogram::Histogram;

use super::{histogram, us};

#[derive(Clone)]
pub(crate) struct ReaderCounters {
    /// Of the reads that were answered on their caller's thread.
    pub(super) answered: Histogram<u32>,
    /// Those that were given up.
    moved: u64,
    /// Reads that used a lease again.
    pub(super) reused: u64,
}

impl ReaderCounters {
    pub(crate) fn new() -> Self {
        Self { answered: histogram(), moved: 0, reused: 0 }
    }

    /// A read ran on its caller's thread and took so long.
    pub(crate) fn stayed(&mut self, is_answered: bool, took: Duration) {
        if is_answered {
            self.answered.saturating_record(us(took));
        } else {
            self.moved += 1;
        }
    }

    /// How many did.
    pub(crate) fn stays(&self) -> u64 {
        self.answered.len() + self.moved
    }

    /// So many reads used a lease again.
    pub(crate) fn reused(&mut self, reads: u64) {
        self.reused += reads;
    }
}
