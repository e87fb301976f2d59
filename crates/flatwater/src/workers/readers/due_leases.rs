//! The leases of the pool: read transactions that readers keep open between requests.
//!
//! Owns: ending the due leases of idle readers. One tick of the timer for the whole pool does that; it is set while idle
//! readers hold leases. Runs on the thread that gives a reader back, on the timer's, and on the checkpointer's.
//! Invariants: when a reader is given back with a lease, a tick is set; no lock is held while a transaction ends.
//! Leaves out: the lease of one reader (`reader_lease`).

use std::sync::Weak;
use std::time::Instant;

use super::reader::Reader;
use super::reader_lease::NoLeases;
use super::{Readers, ReadersShared};
use flatwater_base::time::recurring::Recurring;

/// The tick for the leases of idle readers. Guarded by the pool's lock.
pub(super) struct Watch {
    pool: Weak<ReadersShared>,
    ticks: Recurring,
    /// A tick begins by then, when the first of these leases is due or earlier. `None`: there is none, or one runs.
    due: Option<Instant>,
}

impl Watch {
    pub(super) fn new(pool: Weak<ReadersShared>) -> Self {
        Self { pool, ticks: Recurring::default(), due: None }
    }

    /// Called when a reader is given back: asks for a tick for its lease, if it has one and no earlier tick is due.
    pub(super) fn given_back(&mut self, reader: &Reader) {
        if let Some(until) = reader.lease_until()
            && self.due.is_none_or(|due| until < due)
        {
            self.due = Some(until);
            let pool = self.pool.clone();
            self.ticks.by(until, move || Readers(pool.upgrade()?).tick());
        }
    }
}

impl Readers {
    /// Ends the leases of idle readers now, and those of readers in use when they are given back. No lease is taken
    /// until the returned value is dropped.
    pub(crate) fn end_leases(&self) -> NoLeases {
        let release = NoLeases::new(&self.0.requests);
        self.end_due_leases();
        release
    }

    /// Runs on the timer's thread. A reader that is given back from here on asks for another tick.
    fn tick(&self) -> Option<Instant> {
        self.0.lock().leases.due = None;
        self.end_due_leases()
    }

    /// Takes the idle readers whose lease is due out of the pool, ends their transactions, and gives the readers back. Returns
    /// when the next lease is due.
    fn end_due_leases(&self) -> Option<Instant> {
        let now = Instant::now();
        let mut state = self.0.lock();
        let is_due = |reader: &mut Box<Reader>| reader.lease_until().is_some_and(|until| until <= now);
        let due: Vec<_> = state.idle.extract_if(.., is_due).collect();
        drop(state);
        let taken = due.len();
        let usable: Vec<_> = due.into_iter().filter_map(|mut reader| reader.rest(now).then_some(reader)).collect();
        let mut state = self.0.lock();
        state.connections -= taken - usable.len();
        state.idle.extend(usable);
        state.idle.sort_by_key(|reader| reader.last_used());
        let next = state.idle.iter().filter_map(|reader| reader.lease_until()).min();
        self.0.freed(state);
        next
    }
}
