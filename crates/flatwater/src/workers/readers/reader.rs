//! One reader: a read-only connection, with its lease and its cursors.
//!
//! Owns: the connection between two requests. Runs on the thread that borrowed the connection. Invariant: between `leave` and
//! `enter` no transaction is open except that of a lease. Leaves out: the pool, and what a request does (`perform_read`).

use std::sync::Arc;
use std::time::Instant;

use flatwater_sqlite::Busy;

use super::reader_lease::{Holder, ReleaseRequests, may_hold};
use crate::connection::EngineConnection;
use crate::connection::open::Role;
use crate::connection::repair::is_idle;
use crate::connection::run::batches::Cursors;
use crate::options::Options;
use crate::queue::ticket::Ticket;
use crate::workers::Answer;
use crate::workers::context::Context;
use crate::workers::work::Work;
use flatwater_base::busy_handler::BusyWait;
use flatwater_base::error::{Error, Result};
use flatwater_base::time::later;
use flatwater_base::values::row::Rows;
use flatwater_sql::catalogue::Catalogue;

/// The outcome of a request on a reader.
pub(super) enum Performed {
    Answered(Result<Answer>),
    /// The reader is kept: for a cursor, with its first rows, or for a snapshot.
    Opened(Option<(Rows, u64)>),
    /// The work is a write. The error is present if the statement could not be prepared.
    Write(Work, Option<Error>),
}

impl Performed {
    pub(super) fn is_ok(&self) -> bool {
        !matches!(self, Self::Answered(Err(_)))
    }
}

pub(super) struct Reader {
    pub(super) connection: EngineConnection,
    pub(super) busy_timeout: BusyWait,
    /// The catalogue's epoch when this connection last checked the schema.
    pub(super) epoch: u64,
    /// `None` if leases are not possible on this connection.
    leases: Option<Holder>,
    last_used: Instant,
    /// The number of the last drain when the connection was opened.
    pub(super) drain: u64,
    pub(super) cursors: Cursors,
    /// The transaction of a snapshot is open.
    pub(super) in_snapshot: Option<SnapshotSchema>,
    /// An inline run in a snapshot panicked. The connection is closed when the snapshot ends.
    pub(super) panicked: bool,
}

/// The schema of a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SnapshotSchema {
    /// The one that the connection has seen when it was the newest: what is known of texts holds in the snapshot.
    Seen,
    /// It may be an older one, so nothing is learnt from it.
    Other,
}

impl Reader {
    pub(super) fn open(
        context: &Arc<Context>,
        requests: &Arc<ReleaseRequests>,
        drain: u64,
        ticket: &Arc<Ticket>,
    ) -> Result<Self> {
        let busy_timeout = BusyWait::default();
        let (now, options) = (Instant::now(), &context.options);
        wait_for_locks(&busy_timeout, now, options, ticket);
        let connection = EngineConnection::open(options, &context.functions, Role::Reader, busy(&busy_timeout))?;
        let leases = may_hold(context, &connection).then(|| Holder::new(requests, context));
        Ok(Self {
            connection,
            busy_timeout,
            epoch: u64::MAX,
            leases,
            last_used: now,
            drain,
            cursors: Cursors::default(),
            in_snapshot: None,
            panicked: false,
        })
    }

    pub(super) fn journal(&self) -> &str {
        &self.connection.journal
    }

    /// Returns the address at which the wal-index is mapped.
    pub(super) fn index(&self) -> Option<usize> {
        self.connection.sqlite.wal().index_address()
    }

    /// Returns what every commit to a file with a WAL changes, for the main file and each attached one. `None` for a file
    /// in whose WAL a commit is being published.
    pub(super) fn stamps(&self) -> impl Iterator<Item = Option<u32>> {
        let EngineConnection { sqlite, attached, .. } = &self.connection;
        let main = sqlite.wal().state().map(|state| state.stamp());
        std::iter::once(main).chain(attached.in_wal_mode.iter().map(|name| sqlite.wal().attached_change(name)))
    }

    /// Sets how long the request may wait for locks. Returns the time.
    pub(super) fn wait_for_locks(&mut self, options: &Options, ticket: &Arc<Ticket>) -> Instant {
        let now = Instant::now();
        wait_for_locks(&self.busy_timeout, now, options, ticket);
        now
    }

    /// Ends the lease, if the reader has one. Returns false if the connection cannot be used.
    pub(super) fn end_lease(&mut self) -> bool {
        if let Some(leases) = &mut self.leases {
            leases.end(&mut self.connection);
        }
        self.is_usable()
    }

    /// Ends the cursors and the transaction of a held reader. Returns false if the connection cannot be used again.
    pub(super) fn end_held(&mut self) -> bool {
        self.cursors.end_all(&mut self.connection);
        if self.in_snapshot.take() != Some(SnapshotSchema::Seen) {
            self.epoch = u64::MAX;
        }
        let is_over = self.connection.sqlite.handle().is_autocommit()
            || self.connection.control.rollback(&mut self.connection.sqlite).is_ok();
        is_over && is_idle(&self.connection) && !self.panicked && !self.connection.is_spoilt()
    }

    /// Continues the lease, renews it, begins one, or makes sure that there is none. Returns whether the next read
    /// continues a lease, or `None` if the connection cannot be used.
    pub(super) fn enter(&mut self, now: Instant) -> Option<bool> {
        let continues = self.leases.as_mut().is_some_and(|leases| leases.enter(&mut self.connection, now));
        self.is_usable().then_some(continues)
    }

    /// Reads the schema if it may have changed since the connection last read it.
    pub(super) fn see_schema(&mut self, catalogue: &Catalogue) {
        let epoch = catalogue.epoch();
        let EngineConnection { sqlite, control, schema, .. } = &mut self.connection;
        if epoch != self.epoch {
            schema.seen.forget();
        }
        schema.see(sqlite, control, &catalogue.left);
        self.epoch = epoch;
    }

    /// Keeps the lease, or ends it. Returns false if the connection cannot be used again.
    pub(super) fn leave(&mut self, well: bool, now: Instant) -> bool {
        self.last_used = now;
        if let Some(leases) = &mut self.leases {
            leases.leave(&mut self.connection, well, now);
        }
        (well || !self.connection.is_spoilt()) && self.is_usable()
    }

    /// Returns true if no transaction is open except that of a lease. In any other open transaction the next statement
    /// would see an old snapshot.
    pub(super) fn is_usable(&self) -> bool {
        self.leases.as_ref().is_some_and(Holder::is_held) || self.connection.sqlite.handle().is_autocommit()
    }

    /// Returns the number of reads that continued a lease since the last call.
    pub(super) fn take_reused(&mut self) -> u64 {
        self.leases.as_mut().map_or(0, Holder::take_reused)
    }

    /// Returns when the lease of the idle reader ends, if it has one.
    pub(super) fn lease_until(&self) -> Option<Instant> {
        self.leases.as_ref()?.until()
    }

    /// Ends the lease of the idle reader if it is due. Returns false if the connection cannot be used again.
    pub(super) fn rest(&mut self, now: Instant) -> bool {
        if let Some(leases) = &mut self.leases {
            leases.rest(&mut self.connection, now);
        }
        self.is_usable()
    }

    pub(super) fn last_used(&self) -> Instant {
        self.last_used
    }

    /// Begins the transaction of a snapshot or of a closure, and takes its snapshot here, so that the wait for locks ends with
    /// the time of the request. A snapshot that the user's code began would wait as SQLite does.
    pub(super) fn begin_snapshot(&mut self, ticket: &Arc<Ticket>) -> Result<SnapshotSchema> {
        let EngineConnection { sqlite, control, schema, attached, .. } = &mut self.connection;
        control.begin_read(sqlite)?;
        sqlite.hooks().interrupts.arm(ticket.clone());
        let cookie = schema.cookie(sqlite)?;
        // The closure may list what is in the schema.
        schema.load_newest(sqlite)?;
        attached.begin(sqlite)?;
        Ok(if schema.seen.is(cookie) { SnapshotSchema::Seen } else { SnapshotSchema::Other })
    }

    /// The snapshot goes on. If the schema was changed since it began, nothing is learnt from it any more.
    pub(super) fn continue_snapshot(&mut self, catalogue: &Catalogue) {
        if self.epoch != catalogue.epoch() {
            self.in_snapshot = self.in_snapshot.map(|_| SnapshotSchema::Other);
        }
    }

    /// Returns true if what is found out of a text holds outside too.
    pub(super) fn learns(&self) -> bool {
        self.in_snapshot != Some(SnapshotSchema::Other)
    }

    /// Returns true if the transaction of the snapshot is open.
    pub(super) fn is_in_snapshot(&self) -> bool {
        !self.connection.sqlite.handle().is_autocommit()
    }
}

fn wait_for_locks(wait: &BusyWait, now: Instant, options: &Options, ticket: &Arc<Ticket>) {
    let end = later(now, options.busy_timeout);
    wait.until(ticket.deadline.map_or(end, |deadline| deadline.min(end)), ticket.clone());
}

pub(super) fn busy(wait: &BusyWait) -> Busy {
    let wait = wait.clone();
    Box::new(move |tries| wait.again(tries))
}
