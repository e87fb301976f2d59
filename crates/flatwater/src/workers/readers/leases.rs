//! The leases of the pool: read transactions that readers keep open between requests.
//!
//! Owns: beginning and ending them as `lease` decides, and seeing to those of readers that nobody uses. That is done by
//! one alarm of the timer for the pool, set while there are such leases. Invariants: a transaction is ended by whoever
//! has the reader, with no lock held; a reader that is given back with a lease finds an alarm set; while somebody requests
//! that there are no leases none is taken, and one that is given back all the same is ended at once. Leaves out: when
//! leases begin and end.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Instant;

use flatwater_sqlite::WalState;

use super::reader::Reader;
use super::{Readers, Shared, State};
use crate::connection::open::Connection;
use crate::lease::{Ended, Lease, Run, are_possible};
use crate::options::Options;
use crate::stats::Recorder;
use crate::time::timer::{self, Alarm};

/// Those who release that there are no leases.
#[derive(Default)]
pub(super) struct ReleaseRequests(AtomicUsize);

impl ReleaseRequests {
    fn are_pending(&self) -> bool {
        self.0.load(Ordering::SeqCst) > 0
    }
}

/// While it lives no lease is taken.
pub(crate) struct NoLeases(Arc<ReleaseRequests>);

impl NoLeases {
    fn new(requests: &Arc<ReleaseRequests>) -> Self {
        requests.0.fetch_add(1, Ordering::SeqCst);
        Self(requests.clone())
    }
}

impl Drop for NoLeases {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A lease is renewed at this age: other processes may wait for the snapshot to go.
const AGE_US: u64 = 50_000;

/// The lease of one reader, and its transaction.
pub(super) struct Holder {
    lease: Lease<WalState, AGE_US>,
    /// Reads that used a lease again, since they were last asked for.
    reused: u64,
    requests: Arc<ReleaseRequests>,
    recorder: Arc<Recorder>,
}

impl Holder {
    pub(super) fn new(requests: &Arc<ReleaseRequests>, recorder: &Arc<Recorder>) -> Self {
        Self { lease: Lease::None, reused: 0, requests: requests.clone(), recorder: recorder.clone() }
    }

    /// Before a read: continues the lease, renews it, begins one, or sees to it that there is none. Answers whether it
    /// continues.
    pub(super) fn enter(&mut self, connection: &mut Connection, now: Instant) -> bool {
        let sqlite = &connection.sqlite;
        let release = self.requests.are_pending();
        let (ended, run) = self.lease.enter(|state| sqlite.is_wal_state(state), || sqlite.wal_state(), release, now);
        self.ended(connection, ended);
        match run {
            Run::Alone => {}
            Run::Continue => self.reused += 1,
            Run::Begin => {
                self.recorder.leases.taken.count();
                if connection.control.begin_read(&mut connection.sqlite).is_err() {
                    self.end(connection);
                }
            }
        }
        run == Run::Continue
    }

    /// After a read. A failure may have rolled the transaction back.
    pub(super) fn leave(&mut self, connection: &mut Connection, well: bool, now: Instant) {
        let well = well && !connection.sqlite.is_autocommit();
        let ended = self.lease.leave(well, self.requests.are_pending(), now);
        self.ended(connection, ended);
    }

    /// Nobody uses the reader.
    pub(super) fn rest(&mut self, connection: &mut Connection, now: Instant) {
        let ended = self.lease.rest(self.requests.are_pending(), now);
        self.ended(connection, ended);
    }

    /// Ends the lease whatever the reason.
    pub(super) fn end(&mut self, connection: &mut Connection) {
        let ended = self.lease.drop_it().then_some(Ended::Other);
        self.ended(connection, ended);
    }

    fn ended(&self, connection: &mut Connection, ended: Option<Ended>) {
        let Some(ended) = ended else { return };
        // Whether it is gone is asked by whoever uses the connection next.
        let _ = connection.control.rollback(&mut connection.sqlite);
        self.count(ended);
    }

    fn count(&self, ended: Ended) {
        let leases = &self.recorder.leases;
        match ended {
            Ended::Changed => leases.ended_by_commit.count(),
            Ended::Idle => leases.ended_by_idle.count(),
            Ended::Old => leases.ended_by_age.count(),
            Ended::Wish => leases.ended_by_checkpoint.count(),
            Ended::Other => leases.ended_otherwise.count(),
        }
    }

    pub(super) fn take_reused(&mut self) -> u64 {
        std::mem::take(&mut self.reused)
    }

    pub(super) fn is_held(&self) -> bool {
        self.lease.is_held()
    }

    /// When the lease of a reader that nobody uses is to end.
    pub(super) fn until(&self) -> Option<Instant> {
        self.lease.until(self.requests.are_pending())
    }
}

impl Drop for Holder {
    /// The transaction ends with the connection.
    fn drop(&mut self) {
        if self.lease.drop_it() {
            self.count(Ended::Other);
        }
    }
}

/// Whether a reader may keep its transaction open.
pub(super) fn may_hold(options: &Options, connection: &Connection) -> bool {
    are_possible(options, &connection.journal) && connection.has_litestream().is_ok_and(|is_there| !is_there)
}

/// What sees to the leases of readers that nobody uses. Guarded by the pool's lock.
pub(super) struct Watch {
    pool: Weak<Shared>,
    /// Goes off when the first of them is due, or earlier.
    alarm: Option<(Instant, Alarm)>,
}

impl Watch {
    pub(super) fn new(pool: Weak<Shared>) -> Self {
        Self { pool, alarm: None }
    }

    /// Without a timer's thread, which only a machine out of threads lacks, a lease ends at the next read.
    fn set(&mut self, when: Instant) {
        let pool = self.pool.clone();
        let alarm = timer::at(when, move || {
            if let Some(pool) = pool.upgrade() {
                Readers(pool).end_due_leases();
            }
        });
        self.alarm = alarm.ok().map(|alarm| (when, alarm));
    }
}

impl State {
    /// A reader is given back.
    pub(super) fn watch_lease(&mut self, reader: &Reader) {
        if let Some(until) = reader.lease_until()
            && self.leases.alarm.as_ref().is_none_or(|(when, _)| until < *when)
        {
            self.leases.set(until);
        }
    }
}

impl Readers {
    /// Ends the leases, those of readers in use when they are given back. While the answer lives none is taken.
    pub(crate) fn end_leases(&self) -> NoLeases {
        let release = NoLeases::new(&self.0.requests);
        self.end_due_leases();
        release
    }

    /// Takes the readers whose lease is due out of the pool, ends their transactions, and gives them back.
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
        self.0.closed.notify_all();
        // Without a thread the requests that came meanwhile wait for the next push.
        let _ = self.rouse(state);
    }
}
