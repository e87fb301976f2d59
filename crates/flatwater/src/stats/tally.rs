//! What the pool of readers counts: its short reads take so little time that an atomic for each number would show.
//!
//! Owns: the numbers; guarded by the pool's lock, which each read takes anyway. Leaves out: reads of workers, and those
//! in a transaction.

use std::time::Duration;

use hdrhistogram::Histogram;

use super::{histogram, us};

#[derive(Clone)]
pub(crate) struct Tally {
    /// Of the reads that ran on their caller's thread.
    pub(super) stays: Histogram<u32>,
    /// Reads that used a lease again.
    pub(super) reused: u64,
}

impl Tally {
    pub(crate) fn new() -> Self {
        Self { stays: histogram(), reused: 0 }
    }

    /// A read ran on its caller's thread and took so long.
    pub(crate) fn stayed(&mut self, took: Duration) {
        self.stays.saturating_record(us(took));
    }

    /// How many did.
    pub(crate) fn stays(&self) -> u64 {
        self.stays.len()
    }

    /// So many reads used a lease again.
    pub(crate) fn reused(&mut self, reads: u64) {
        self.reused += reads;
    }
}
