//! How many databases copy the rest of their WALs at a time, when many are closed at once.
//!
//! Owns: the places. Runs on the threads that close databases, which may block. Invariants: there are never more copies at a
//! time than places, so that the disk has a bounded number of syncs to do when the time of a close is over; who gets no place in
//! time copies nothing, and its WAL stays for the next open. Leaves out: copying (`workers::writer`).

use std::sync::{Condvar, PoisonError};
use std::time::Instant;

use flatwater_sqlite::PerProcess;

/// A disk syncs several files in little more time than one.
const PLACES: usize = 16;

static TAKEN: PerProcess<usize> = PerProcess::new(|| 0);
/// Signalled when a place is free.
static FREE: Condvar = Condvar::new();

/// A place. Dropping it gives it to another one.
pub(super) struct CheckpointPermit(());

impl CheckpointPermit {
    /// Waits for a place. Returns `None` if there is none until then. Blocks.
    pub(super) fn wait(until: Instant) -> Option<Self> {
        let left = until.saturating_duration_since(Instant::now());
        let waited = FREE.wait_timeout_while(TAKEN.lock(), left, |taken| **taken >= PLACES);
        let (mut taken, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let is_free = **taken < PLACES;
        **taken += usize::from(is_free);
        is_free.then(|| Self(()))
    }
}

impl Drop for CheckpointPermit {
    fn drop(&mut self) {
        **TAKEN.lock() -= 1;
        FREE.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn there_are_so_many_places_and_who_waits_in_vain_gets_none() {
        let until = Instant::now() + Duration::from_secs(600);
        let places: Vec<_> = (0..PLACES).map(|_| CheckpointPermit::wait(until).unwrap()).collect();
        assert!(CheckpointPermit::wait(Instant::now()).is_none());
        let waits = std::thread::spawn(move || CheckpointPermit::wait(until).is_some());
        drop(places);
        assert!(waits.join().unwrap());
    }
}
