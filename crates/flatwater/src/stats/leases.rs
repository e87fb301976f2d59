//! What `stats().leases` tells: how often a connection kept its snapshot for its next use, and why readers let go.
//!
//! Owns: the recorder, written by readers and the writer, and the snapshot. Counters are single atomics. Leaves out:
//! deciding anything.

use std::sync::atomic::{AtomicU64, Ordering};

use super::tally::Tally;

#[derive(Default)]
pub(crate) struct LeaseRecorder {
    pub(crate) taken: Counter,
    pub(crate) changed: Counter,
    pub(crate) idle: Counter,
    pub(crate) old: Counter,
    pub(crate) wish: Counter,
    pub(crate) other: Counter,
    pub(crate) written: Counter,
}

#[derive(Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn count(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl LeaseRecorder {
    pub(crate) fn snapshot(&self, readers: &Tally) -> LeaseStats {
        let [changed, idle, old, wish, other] =
            [&self.changed, &self.idle, &self.old, &self.wish, &self.other].map(Counter::get);
        let taken = self.taken.get();
        let held = taken.saturating_sub(changed + idle + old + wish + other);
        let written = self.written.get();
        LeaseStats { taken, reused: readers.reused, changed, idle, old, wish, other, held, written }
    }
}

/// Leases: snapshots that a reader kept from one read for the next, or the writer from one short write for the next. All
/// zero without them, see [`Options::leases`](crate::Options::leases).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeaseStats {
    /// Leases taken.
    pub taken: u64,
    /// Reads that used one again.
    pub reused: u64,
    /// Leases that ended because something was committed, by anybody, or the WAL was started over.
    pub changed: u64,
    /// Because nobody read for some milliseconds.
    pub idle: u64,
    /// Because of their age.
    pub old: u64,
    /// Because the WAL was to start over.
    pub wish: u64,
    /// Because of a failed read, a closure, or the end of the connection.
    pub other: u64,
    /// Leases that are held now.
    pub held: u64,
    /// Short writes, on their callers' threads, that went on in the snapshot of the write before. The other numbers are of
    /// readers.
    pub written: u64,
}
