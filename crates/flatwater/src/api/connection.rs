//! A connection of the caller's own.
//!
//! Owns: the caller's side of it; its methods run on the caller's thread. Invariant: a connection that goes out of
//! scope is closed, and what is open on it is rolled back. Leaves out: serving it, which is beside the writer.

use std::time::Duration;

use crate::api::call::Call;
use crate::api::database::Database;
use crate::api::session::Session;
use crate::engine::caller::Caller;

use crate::workers::own_connections::OwnGuard;
use crate::workers::work;

impl Database {
    /// Returns a connection of its own, for what a pooled connection refuses: transaction control as text, TEMP objects,
    /// ATTACH, PRAGMAs. Its first statement opens it. [`ConnectionOptions::connect`] returns one with options of its own.
    pub fn connection(&self) -> Connection {
        Connection::new(self, ConnectionOptions::new())
    }
}

/// How a [`Connection`] differs from the database's others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[must_use]
pub struct ConnectionOptions {
    busy_timeout: Option<Duration>,
    foreign_keys: Option<bool>,
}

impl ConnectionOptions {
    /// Returns the options of the database.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a connection with these options, as [`Database::connection`] does.
    pub fn connect(self, database: &Database) -> Connection {
        Connection::new(database, self)
    }

    /// Sets how long a statement waits for the writer, and for locks of other processes. Default: that of the database.
    pub fn busy_timeout(self, timeout: Duration) -> Self {
        Self { busy_timeout: Some(timeout), ..self }
    }

    /// Sets whether foreign keys are enforced on this connection. Default: that of the database.
    pub fn foreign_keys(self, enforced: bool) -> Self {
        Self { foreign_keys: Some(enforced), ..self }
    }
}

/// A connection of the caller's own: what SQLite lets a connection do is allowed on it, such as BEGIN, COMMIT and
/// SAVEPOINT as text, TEMP objects, ATTACH, and PRAGMAs. Its operations are those of a [`Session`]. It is opened by its
/// first statement, and closed when it is dropped.
///
/// Statements run one after the other, in the order of their first polls, whichever tasks they are from. A read waits
/// for nobody. A write waits for the database's writer, up to [`ConnectionOptions::busy_timeout`], and keeps it until
/// its transaction is over: after BEGIN IMMEDIATE from there on, after BEGIN from the first write on. If somebody has
/// committed since a transaction began to read, its first write fails with SQLITE_BUSY_SNAPSHOT. A transaction that is
/// not used for [`Tuning::transaction_idle`](crate::options::Tuning::transaction_idle) is rolled back, and the next statement
/// fails with `Expired`, once.
///
/// [`batch`](Session::batch) and [`execute_many`](Session::execute_many) are all or nothing, so transaction control
/// is refused in them. [`run`](Session::run) takes any one statement, with rows or without.
/// [`execute_script`](Session::execute_script) runs statement by statement; if one fails, those before it stay.
///
/// In a database with one connection ([`Stats::one_connection`](crate::stats::Stats::one_connection)) reads wait for
/// the writer too, and in memory the connection is the database's only one: what is set on it is set for all.
#[must_use = "a connection is closed when it is dropped"]
pub struct Connection {
    /// Dropped before the handle to the database.
    pub(crate) guard: OwnGuard,
    pub(crate) session: Session,
}

impl Connection {
    pub(crate) fn new(database: &Database, options: ConnectionOptions) -> Self {
        let (engine, caller) = (&database.engine, &database.session.0);
        let mut own = engine.context.options.clone();
        own.busy_timeout = options.busy_timeout.unwrap_or(own.busy_timeout);
        own.foreign_keys = options.foreign_keys.unwrap_or(own.foreign_keys);
        own.read_only |= caller.handle.read_only;
        let guard = OwnGuard(engine.own_connection(own));
        let caller = Caller { kept: Some(guard.0.clone()), inside: None, ..caller.clone() };
        Self { guard, session: Session(caller) }
    }

    /// Closes the connection, when its earlier statements are done. An open transaction is rolled back. Closing twice
    /// is not an error.
    ///
    /// # Errors
    /// `Misuse` inside a closure or a function of the database.
    pub fn close(&self) -> Call<()> {
        self.session.call("close", Ok(work::leave()), |answer, _| answer.done())
    }

    /// Interrupts the statement that runs now, or waits for the writer: it fails with `Cancelled`. In a transaction a write that
    /// is interrupted while it runs rolls the transaction back. Does not block, and does nothing if there is none.
    pub fn interrupt(&self) {
        if !self.session.0.handle.is_inherited() {
            self.guard.0.interrupt();
        }
    }

    /// Returns how many rows INSERT, UPDATE and DELETE have changed on this connection, up to the last statement that
    /// ended (<https://sqlite.org/c3ref/total_changes.html>). Does not block.
    #[must_use]
    pub fn total_changes(&self) -> u64 {
        self.guard.0.total_changes()
    }
}

impl std::ops::Deref for Connection {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.session
    }
}
opaque!(Connection);
