//! The leases of the pool: read transactions that readers keep open between requests.
//!
//! Owns: ending the due leases of idle readers. One alarm of the timer for the whole pool does that; it is set while idle
//! readers hold leases. Runs on the thread that gives a reader back, on the timer's, and on the checkpointer's.
//! Invariants: when a reader is given back with a lease, an alarm is set; no lock is held while a transaction ends.
//! Leaves out: the lease of one reader (`holder`).

use std::sync::Weak;
use std::time::Instant;

use super::holder::NoLeases;
use super::reader::Reader;
use super::{Readers, Shared};
use crate::time::timer::{self, Alarm, if_alive};

/// The alarm for the leases of idle readers. Guarded by the pool's lock.
pub(super) struct Watch {
    pool: Weak<Shared>,
    /// Goes off when the first of these leases is due, or earlier.
    alarm: Option<(Instant, Alarm)>,
}

impl Watch {
    pub(super) fn new(pool: Weak<Shared>) -> Self {
        Self { pool, alarm: None }
    }

    /// Called when a reader is given back: sets the alarm for its lease, if it has one and no earlier alarm is set.
    pub(super) fn given_back(&mut self, reader: &Reader) {
        if let Some(until) = reader.lease_until()
            && self.alarm.as_ref().is_none_or(|(when, _)| until < *when)
        {
            self.set(until);
        }
    }

    /// Sets the alarm. What goes off takes it out under the pool's lock, and so after it is stored.
    fn set(&mut self, when: Instant) {
        let alarm = timer::at(when, if_alive(self.pool.clone(), |pool| Readers(pool).end_due_leases()));
        self.alarm = Some((when, alarm));
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

    /// Takes the idle readers whose lease is due out of the pool, ends their transactions, and gives the readers back.
    fn end_due_leases(&self) {
        let now = Instant::now();
        let mut state = self.0.lock();
        let went_off = state.leases.alarm.take();
        let is_due = |reader: &mut Box<Reader>| reader.lease_until().is_some_and(|until| until <= now);
        let due: Vec<_> = state.idle.extract_if(.., is_due).collect();
        drop(state);
        drop(went_off);
        let taken = due.len();
        let usable: Vec<_> = due.into_iter().filter_map(|mut reader| reader.rest(now).then_some(reader)).collect();
        let mut state = self.0.lock();
        state.connections -= taken - usable.len();
        state.idle.extend(usable);
        state.idle.sort_by_key(|reader| reader.last_used());
        if state.leases.alarm.is_none()
            && let Some(next) = state.idle.iter().filter_map(|reader| reader.lease_until()).min()
        {
            state.leases.set(next);
        }
        self.0.freed(state);
    }
}
