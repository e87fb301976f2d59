//! The data of `stats().leases`: how often a connection kept its snapshot for its next use, and why leases ended.
//!
//! Owns: the recorder, written by readers and the writer, and the snapshot. Invariant: each counter is a single atomic.
//! Leaves out: deciding when to take or end a lease.

use super::counters::{Counter, counters};
use super::reader_counters::ReaderCounters;

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
