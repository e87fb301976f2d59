//! The counters of the pool of readers, without atomics: short reads are so fast that an atomic per counter would be
//! measurable. And the data of `stats().leases`: how often a connection kept its snapshot for its next use, and why
//! leases ended.
//!
//! Owns: the counters, and the snapshot of those of leases. Invariants: the pool's lock, which each read takes anyway,
//! guards its own; each counter of leases is a single atomic, written by readers and the writer. Runs on the threads of
//! callers and workers. Leaves out: latencies of reads that workers run, all reads in a transaction, and deciding when
//! to take or end a lease.

use std::time::Duration;

use super::counters::{Counter, counters};
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

counters! {
    pub(crate) struct LeaseRecorder {}

    /// Leases: snapshots that a reader kept from one read for the next, or the writer from one short write for the next.
    /// All zero without leases, see [`Tuning::leases`](crate::options::Tuning::leases).
    #[derive(Debug, Clone, Default, PartialEq, Eq)]
    #[non_exhaustive]
    pub struct LeaseStats {
        /// Leases taken.
        pub taken: u64 = Counter,
        /// Reads that used a lease again.
        pub reused: u64,
        /// Leases that ended because a commit of any process, or a WAL restart, changed the WAL.
        pub ended_by_commit: u64 = Counter,
        /// Leases that ended because no read used them for some milliseconds.
        pub ended_by_idle: u64 = Counter,
        /// Leases that ended at their maximum age.
        pub ended_by_age: u64 = Counter,
        /// Leases that ended because the checkpointer was about to restart or truncate the WAL.
        pub ended_by_checkpoint: u64 = Counter,
        /// Leases that ended with a failed read, a closure, or their connection.
        pub ended_otherwise: u64 = Counter,
        /// Leases held at the moment.
        pub held: u64,
        /// Short writes on their callers' threads that continued in the snapshot of the previous write. The other counters
        /// count readers only.
        pub reused_by_writes: u64 = Counter,
    }
}

impl LeaseRecorder {
    pub(crate) fn snapshot(&self, readers: &ReaderCounters) -> LeaseStats {
        let mut stats = LeaseStats { reused: readers.reused, ..self.counted() };
        stats.held = stats.taken.saturating_sub(stats.ended());
        stats
    }
}

impl LeaseStats {
    fn ended(&self) -> u64 {
        self.ended_by_commit + self.ended_by_idle + self.ended_by_age + self.ended_by_checkpoint + self.ended_otherwise
    }
}
