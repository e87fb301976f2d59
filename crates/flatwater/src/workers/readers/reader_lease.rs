//! The lease of one reader: the read transaction that it keeps open between requests.
//!
//! Owns: beginning and ending that transaction as `lease` decides, and the release requests, which ask that leases end.
//! Runs on the thread that has taken the reader out of the pool, which may be the timer's. Invariants: that thread ends
//! the reader's transaction, and holds no lock while it does; while a release request is pending no reader takes a lease,
//! and a lease that is given back nevertheless is ended at once. Leaves out: when leases begin and end, and the alarm for
//! those of idle readers (`due_leases`).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use flatwater_sqlite::WalState;

use crate::connection::EngineConnection;
use crate::lease::{Ended, Lease, LeaseRun, are_possible};
use crate::workers::context::Context;

/// The number of pending release requests. A release request asks that leases end and that none is taken, because the
/// WAL is to be restarted.
#[derive(Default)]
pub(super) struct ReleaseRequests(AtomicUsize);

impl ReleaseRequests {
    fn are_pending(&self) -> bool {
        self.0.load(Ordering::SeqCst) > 0
    }
}

/// A pending release request. No lease is taken until it is dropped.
pub(crate) struct NoLeases(Arc<ReleaseRequests>);

impl NoLeases {
    pub(super) fn new(requests: &Arc<ReleaseRequests>) -> Self {
        requests.0.fetch_add(1, Ordering::SeqCst);
        Self(requests.clone())
    }
}

impl Drop for NoLeases {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A lease is renewed at this age, because other processes may wait for its snapshot to end.
const AGE: Duration = Duration::from_millis(50);

/// The lease of one reader, and its transaction.
pub(super) struct Holder {
    lease: Lease<WalState>,
    /// Reads that continued a lease since the last call of `take_reused`.
    reused: u64,
    requests: Arc<ReleaseRequests>,
    context: Arc<Context>,
}

impl Holder {
    pub(super) fn new(requests: &Arc<ReleaseRequests>, context: &Arc<Context>) -> Self {
        Self { lease: Lease::None, reused: 0, requests: requests.clone(), context: context.clone() }
    }

    /// Returns true if no lease may be held: the WAL is to be restarted, or Litestream checkpoints it.
    fn must_release(&self) -> bool {
        self.requests.are_pending() || self.context.is_beside_litestream()
    }

    /// Called before a read. Continues the lease, renews it, begins one, or makes sure that there is none. Returns true
    /// if the read continues a lease.
    pub(super) fn enter(&mut self, connection: &mut EngineConnection, now: Instant) -> bool {
        let sqlite = &connection.sqlite;
        let release = self.must_release();
        let (ended, run) =
            self.lease.enter(AGE, |state| sqlite.wal().is_state(state), || sqlite.wal().state(), release, now);
        self.ended(connection, ended);
        match run {
            LeaseRun::Alone => {}
            LeaseRun::Continue => self.reused += 1,
            LeaseRun::Begin => {
                self.context.recorder.leases.taken.count();
                if connection.control.begin_read(&mut connection.sqlite).is_err() {
                    self.end(connection);
                }
            }
        }
        run == LeaseRun::Continue
    }

    /// Called after a read. A failed read may have rolled the transaction back, which ends the lease.
    pub(super) fn leave(&mut self, connection: &mut EngineConnection, well: bool, now: Instant) {
        let well = well && !connection.sqlite.handle().is_autocommit();
        let ended = self.lease.leave(well, self.must_release(), now);
        self.ended(connection, ended);
    }

    /// Called while the reader is idle. Ends the lease if it is due.
    pub(super) fn rest(&mut self, connection: &mut EngineConnection, now: Instant) {
        let ended = self.lease.rest(self.must_release(), now);
        self.ended(connection, ended);
    }

    /// Ends the lease in any case.
    pub(super) fn end(&mut self, connection: &mut EngineConnection) {
        let ended = self.lease.drop_it().then_some(Ended::Other);
        self.ended(connection, ended);
    }

    fn ended(&self, connection: &mut EngineConnection, ended: Option<Ended>) {
        let Some(ended) = ended else { return };
        // A failure is ignored here: the caller checks whether the transaction ended before the connection is used
        // again.
        let _ = connection.control.rollback(&mut connection.sqlite);
        self.count(ended);
    }

    fn count(&self, ended: Ended) {
        let leases = &self.context.recorder.leases;
        match ended {
            Ended::Changed => leases.ended_by_commit.count(),
            Ended::Idle => leases.ended_by_idle.count(),
            Ended::Old => leases.ended_by_age.count(),
            Ended::Checkpoint => leases.ended_by_checkpoint.count(),
            Ended::Other => leases.ended_otherwise.count(),
        }
    }

    pub(super) fn take_reused(&mut self) -> u64 {
        std::mem::take(&mut self.reused)
    }

    pub(super) fn is_held(&self) -> bool {
        self.lease.is_held()
    }

    /// Returns when the lease ends if the reader stays idle.
    pub(super) fn until(&self) -> Option<Instant> {
        self.lease.until(self.must_release())
    }
}

impl Drop for Holder {
    /// Counts the end of the lease. The transaction itself ends with the connection.
    fn drop(&mut self) {
        if self.lease.drop_it() {
            self.count(Ended::Other);
        }
    }
}

/// Returns true if a reader may keep its transaction open between reads.
pub(super) fn may_hold(context: &Context, connection: &EngineConnection) -> bool {
    are_possible(&context.options, &connection.journal)
        && context.look_for_litestream(&connection.sqlite).is_ok_and(|is_there| !is_there)
}
