//! A cluster, as a program uses it.
//!
//! Owns: the handle. Runs on callers' threads. Leaves out: the operations, which are those of a session, and the way to the cluster
//! (`thread`).

use std::ops::Deref;
use std::sync::Arc;
use std::time::{Duration, Instant};

use flatwater::bindings::server;
use flatwater::live::LiveQueries;
use flatwater::values::IntoParams;
use flatwater::{Call, Live, Migrations, Result, Session, Statement};

use crate::options::{Level, RemoteOptions};
use crate::thread::Way;

/// A database on an rqlite cluster, or on a libSQL server ([`Libsql`](crate::Libsql)). Its operations are those of a [`Session`], to which it
/// derefs. Cloning it is cheap.
///
/// **Writes are applied exactly once.** A write is acknowledged when a majority of the nodes has it, or the primary of a libSQL server.
/// If the answer is lost, because the leader fails or a connection breaks, the write is sent again, with a number in the same transaction by which the database
/// itself refuses it if it was applied before; then its caller gets the result that was recorded with it. `CommitUnknown` is the error of a
/// write of which nothing could be learnt until [`RemoteOptions::timeout`]. The rows of a RETURNING are
/// not recorded: if the answer is lost, the error says that the write was applied. Two tables in the database are used for this,
/// `_flatwater_writers` and `_flatwater_results`, with a row for each client and for each statement of its longest request; what a
/// client has left is removed after a week.
///
/// **Writes that wait share a request.** While one request is under way the writes that begin wait for the next, in their order, up to
/// 128 in one transaction. Each has its own result and its own error.
///
/// **Reads** go to the leader unless [`level`](RemoteOptions::level) says otherwise, up to 64 at a time.
///
/// **Deadlines and cancellation** are those of a [`Call`]: a write that was sent is finished although its caller has left; a read that nobody
/// waits for ends, and its connection is free.
///
/// **Results** are read whole, and may have 256 MiB; a libSQL server answers with 10 MB, unless it was told otherwise. `stream` and `batches`
/// of a libSQL server read rows as they come, without a limit.
///
/// What rqlite does otherwise than SQLite in a file: statements run on each node, so one whose result is another each time, such as
/// one with `CURRENT_TIMESTAMP`, leaves other values on each node: bind times and identifiers. Columns that are
/// declared as DATE, DATETIME, TIMESTAMP or BOOLEAN are converted when they are read. Numbers that are infinite have no form in
/// its JSON: reading one fails, on both. The guides list more.
pub struct Remote {
    session: Session,
    name: Arc<str>,
    way: Arc<Way>,
}

impl Remote {
    /// Returns the cluster at an address, such as `rqlite://user:password@host:4001,host:4001`; see [`RemoteOptions::new`]. Starts a thread,
    /// and connects when the first call begins. With TLS it reads the certificates that the system trusts.
    ///
    /// # Errors
    /// `Misuse` for what is not an address.
    pub fn connect(address: &str) -> Result<Self> {
        Self::with(RemoteOptions::new(address)?)
    }

    /// The same with these options.
    ///
    /// # Errors
    /// `Misuse` for a token or a certificate that cannot be used; `Io` if the thread cannot be started.
    pub fn with(options: RemoteOptions) -> Result<Self> {
        let name = options.name();
        let (level, live_poll) = (options.level, options.live_poll);
        let way = Way::start(options)?;
        let session = server::with_way(&server::session(way.clone(), &name, live_poll), way.levels.number(level));
        Ok(Self { session, name: name.into(), way })
    }

    /// Returns a handle whose reads have this level.
    #[must_use]
    pub fn with_level(&self, level: Level) -> Self {
        self.another(server::with_way(&self.session, self.way.levels.number(level)))
    }

    /// Returns a handle whose calls fail with `Timeout` if they do not finish in time. A write whose time is over while the server
    /// has it may have been applied, or be applied yet: [`Error::applied`](flatwater::Error::applied) says `Unknown`.
    #[must_use]
    pub fn with_timeout(&self, timeout: Duration) -> Self {
        self.another(server::with_timeout(&self.session, timeout))
    }

    /// Returns a handle whose calls fail with `Timeout` if they do not finish by then; see
    /// [`Database::with_deadline`](flatwater::Database::with_deadline).
    #[must_use]
    pub fn with_deadline(&self, deadline: Instant) -> Self {
        self.another(server::with_deadline(&self.session, deadline))
    }

    /// Returns the address without the user and the settings, so without a secret.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Applies the migrations that the database does not have yet, in the order of their numbers, and returns the names of those
    /// that this call applied. The history is that of [`Database::migrate`](flatwater::Database::migrate), so a database that was moved
    /// to a server goes on with it.
    ///
    /// Each migration is one request, all or nothing, together with its row of the history. So each is applied once, even if several
    /// programs start at the same time. Foreign keys are as the server has them: a migration that rebuilds a table to
    /// which others refer needs an rqlite cluster without `-fk`, and cannot be run on a libSQL server, which enforces them.
    ///
    /// Dropping the future leaves the migration that was sent to be finished, and begins no other.
    ///
    /// # Errors
    /// The error of the migration that failed, with its name; earlier ones stay applied. `Misuse` for a migration that was changed
    /// after it was applied, for a database that is newer than the list, for a list that is not in order, and for one that must
    /// run outside of a transaction, which the server does not do; and the errors of writes.
    pub fn migrate(&self, migrations: impl Into<Migrations>) -> Call<Vec<String>> {
        server::migrate(&self.session, migrations.into())
    }

    /// Runs a query, and again when something was committed; yields its result when it has changed. The query begins with the first poll.
    ///
    /// The server tells nobody of commits. It is asked every [`RemoteOptions::live_poll`] for a number that changes with each commit, and
    /// the query runs again, on the newest state, when that has changed; a commit of this handle is noticed at once. The queries of a handle
    /// share the question, and those with equal SQL and parameters the run. An rqlite cluster tells the number to users with the
    /// permission `status`; without it the query itself is run as often.
    ///
    /// # Errors
    /// As items, those of a query; the stream goes on when it succeeds. `Misuse`, which ends it, for a statement that does not only read.
    /// [`changes`](flatwater::live::Live::changes) needs a database of this process.
    pub fn live(&self, sql: impl Statement, params: impl IntoParams) -> Live {
        server::live(&self.session, sql, params)
    }

    /// The same for several queries, whose results are of one point in time: see [`Database::live_group`](flatwater::Database::live_group).
    pub fn live_group<Q: LiveQueries>(&self, queries: Q) -> Live<Q::Results> {
        server::live_group(&self.session, queries)
    }

    /// Closes this handle and all that were made of it: calls that begin later fail with `Closed`, and those that were begun are finished.
    pub fn close(&self) -> Call<()> {
        server::close(&self.session)
    }
}

impl Remote {
    fn another(&self, session: Session) -> Self {
        Self { session, name: self.name.clone(), way: self.way.clone() }
    }
}

impl Clone for Remote {
    fn clone(&self) -> Self {
        self.another(server::share(&self.session))
    }
}

impl Deref for Remote {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.session
    }
}

impl std::fmt::Debug for Remote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Remote").finish_non_exhaustive()
    }
}
