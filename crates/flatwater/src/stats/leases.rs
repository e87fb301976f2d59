//! The data of `stats().leases`: how often a connection kept its snapshot for its next use, and why leases ended.
//!
//! Owns: the recorder, written by readers and the writer, and the snapshot. Invariant: each counter is a single atomic.
//! Leaves out: deciding when to take or end a lease.

use std::sync::atomic::{AtomicU64, Ordering};

use super::reader_counters::ReaderCounters;

#[derive(Default)]
pub(crate) struct LeaseRecorder {
    pub(crate) taken: Counter,
    pub(crate) ended_by_commit: Counter,
    pub(crate) ended_by_idle: Counter,
    pub(crate) ended_by_age: Counter,
    pub(crate) ended_by_checkpoint: Counter,
    pub(crate) ended_otherwise: Counter,
    pub(crate) reused_by_writes: Counter,
}

#[derive(Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn count(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl LeaseRecorder {
    pub(crate) fn snapshot(&self, readers: &ReaderCounters) -> LeaseStats {
        let mut stats = LeaseStats {
            taken: self.taken.get(),
            reused: readers.reused,
            ended_by_commit: self.ended_by_commit.get(),
            ended_by_idle: self.ended_by_idle.get(),
            ended_by_age: self.ended_by_age.get(),
            ended_by_checkpoint: self.ended_by_checkpoint.get(),
            ended_otherwise: self.ended_otherwise.get(),
            held: 0,
            reused_by_writes: self.reused_by_writes.get(),
        };
        stats.held = stats.taken.saturating_sub(stats.ended());
        stats
    }
}

/// Leases: snapshots that a reader kept from one read for the next, or the writer from one short write for the next.
/// All zero without leases, see [`Tuning::leases`](crate::options::Tuning::leases).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeaseStats {
    /// Leases taken.
    pub taken: u64,
    /// Reads that used a lease again.
    pub reused: u64,
    /// Leases that ended because a commit of any process, or a WAL restart, changed the WAL.
    pub ended_by_commit: u64,
    /// Leases that ended because no read used them for some milliseconds.
    pub ended_by_idle: u64,
    /// Leases that ended at their maximum age.
    pub ended_by_age: u64,
    /// Leases that ended because the checkpointer was about to restart or truncate the WAL.
    pub ended_by_checkpoint: u64,
    /// Leases that ended with a failed read, a closure, or their connection.
    pub ended_otherwise: u64,
    /// Leases held at the moment.
    pub held: u64,
    /// Short writes on their callers' threads that continued in the snapshot of the previous write. The other counters
    /// count readers only.
    pub reused_by_writes: u64,
}

impl LeaseStats {
    fn ended(&self) -> u64 {
        self.ended_by_commit + self.ended_by_idle + self.ended_by_age + self.ended_by_checkpoint + self.ended_otherwise
    }
}
