//! The database as a program sees it.
//!
//! Owns: the operations outside a transaction, and the handle whose last drop closes the database. Leaves out: how they
//! are served.

use std::sync::Arc;
use std::time::Duration;

use flatwater_sqlite::{CheckpointMode, Checkpointed};
use rusqlite::types::FromSql;

use crate::call::Call;
use crate::engine::handle::{Handle, called_from_within, refuse_forked};
use crate::error::{Error, Result};
use crate::operations::Operations;
use crate::options::Options;
use crate::prepared::Prepared;
use crate::queue::reply::{Reply, reply};
use crate::queue::ticket::CallOptions;
use crate::stats::Stats;
use crate::thread::park::in_closure;
use crate::transaction::Transaction;
use crate::values::executed::{BatchResult, Executed};
use crate::values::into_params::IntoParams;
use crate::values::params::Params;
use crate::values::row::{FromRow, Row, Rows};
use crate::workers::request::{Answer, Work};

/// A SQLite database: one writer, several readers, any number of callers. A cheap clone of one handle; when the last
/// clone, call and transaction is dropped the database is closed in the background.
///
/// A statement that is known to be short may run on the thread that polls its [`Call`]; everything else runs on threads of
/// the database.
///
/// ```no_run
/// # async fn example() -> flatwater::Result<()> {
/// let db = flatwater::Database::open("app.db").await?;
/// db.execute("CREATE TABLE IF NOT EXISTS users (id INTEGER PRIMARY KEY, name TEXT)", ()).await?;
/// let ada = db.execute("INSERT INTO users (name) VALUES (?)", ("Ada",)).await?;
/// let name: Option<String> = db.query_value("SELECT name FROM users WHERE id = ?", (ada.last_insert_rowid,)).await?;
/// assert_eq!(name.as_deref(), Some("Ada"));
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Database {
    pub(crate) operations: Operations,
}

impl Database {
    /// Opens or creates the database file at `path` with the default [`Options`].
    ///
    /// The file is opened on a thread of its own; if the caller leaves meanwhile it is closed again.
    ///
    /// # Errors
    /// `Open` if the path, the file or its directory will not do; `Busy` if another process keeps it locked.
    pub async fn open(path: impl AsRef<std::path::Path>) -> Result<Self> {
        Options::new(path).open().await
    }

    fn from_handle(handle: Handle) -> Self {
        let options = handle.call_options();
        Self { operations: Operations { handle: Arc::new(handle), options, inside: None } }
    }

    /// A handle whose writes are never members of a group: each runs in a transaction of its own.
    #[must_use]
    pub fn alone(&self) -> Self {
        self.with_options(CallOptions { alone: true, ..self.operations.options })
    }

    /// A handle whose calls end with `Timeout` if they are not answered in time. The time covers the queue, locks and
    /// the execution; a call that timed out has done nothing, unless [`Error::applied`] says otherwise. A write that
    /// shares a transaction with others is not interrupted once it runs, which takes about a millisecond, nor is a short
    /// one that runs on the thread that polls it.
    #[must_use]
    pub fn timeout(&self, timeout: Duration) -> Self {
        self.with_options(CallOptions { timeout: Some(timeout), ..self.operations.options })
    }

    fn with_options(&self, options: CallOptions) -> Self {
        Self { operations: Operations { options, ..self.operations.clone() } }
    }

    /// Looks a text up once, for a loop that runs it many times. Nothing is prepared yet: what is wrong with the SQL is
    /// told by the first call.
    ///
    /// # Errors
    /// `Misuse` in a process that was forked while the database was open.
    pub fn prepare(&self, sql: &str) -> Result<Prepared> {
        Prepared::new(&self.operations, sql)
    }

    /// Runs one statement that returns no rows.
    ///
    /// The answer comes when the write is committed, perhaps together with others that arrived at the same time; each
    /// keeps its own result. If the call is dropped while it waits the write does not happen; while it runs, it does.
    ///
    /// # Errors
    /// `Constraint` or `Sql` from SQLite; `Misuse` for several statements, parameters that do not fit, or a statement
    /// that returns rows; `Busy`, `Full`, `Io`, `Closed`; `CommitUnknown` if the outcome cannot be known.
    pub fn execute(&self, sql: &str, params: impl IntoParams) -> Call<Executed> {
        self.operations.execute(sql, params)
    }

    /// Runs one statement once per row of parameters, all or nothing, and answers how many rows it changed.
    ///
    /// # Errors
    /// As [`execute`](Self::execute); the first row that fails undoes all.
    pub fn execute_many<I>(&self, sql: &str, rows: I) -> Call<u64>
    where
        I: IntoIterator,
        I::Item: IntoParams,
    {
        self.operations.execute_many(sql, rows)
    }

    /// Runs several statements with their parameters, all or nothing, in one trip. Answers a result for each, with the
    /// rows of those that return some.
    ///
    /// Unlike a [`transaction`](Self::transaction) a batch does not keep others waiting for its caller, and a short one
    /// can share a commit with other writes.
    ///
    /// # Errors
    /// As [`execute`](Self::execute); the first statement that fails undoes all.
    pub fn batch<'a, I>(&self, statements: I) -> Call<Vec<BatchResult>>
    where
        I: IntoIterator<Item = (&'a str, Result<Params>)>,
    {
        self.operations.batch(statements)
    }

    /// Runs several statements without parameters, separated by semicolons, all or nothing. Rows are dropped.
    ///
    /// # Errors
    /// As [`execute`](Self::execute); the first statement that fails undoes all.
    pub fn execute_script(&self, sql: &str) -> Call<()> {
        self.operations.execute_script(sql)
    }

    /// Runs one statement and answers all its rows. A write is allowed here if it has RETURNING.
    ///
    /// A read sees every write that was answered before the read began. If the call is dropped a running read is
    /// interrupted.
    ///
    /// # Errors
    /// As [`execute`](Self::execute); `Misuse` for a statement that returns no rows.
    pub fn query(&self, sql: &str, params: impl IntoParams) -> Call<Rows> {
        self.operations.query(sql, params)
    }

    /// Runs one statement and answers its first row, if there is one.
    ///
    /// # Errors
    /// As [`query`](Self::query).
    pub fn query_one(&self, sql: &str, params: impl IntoParams) -> Call<Option<Row<'static>>> {
        self.operations.query_one(sql, params)
    }

    /// Runs one statement and answers the first value of its first row, if there is one. Read what may be NULL as an
    /// `Option`.
    ///
    /// # Errors
    /// As [`query`](Self::query); `Misuse` if the value is not a `T`.
    pub fn query_value<T: FromSql>(&self, sql: &str, params: impl IntoParams) -> Call<Option<T>> {
        self.operations.query_value(sql, params)
    }

    /// Runs one statement and answers every row as a `T`, such as a tuple.
    ///
    /// # Errors
    /// As [`query`](Self::query); `Misuse` if a row is not a `T`.
    pub fn query_as<T: FromRow>(&self, sql: &str, params: impl IntoParams) -> Call<Vec<T>> {
        self.operations.query_as(sql, params)
    }

    /// Begins a transaction with BEGIN IMMEDIATE. It holds the writer until it ends, so other writes wait for it;
    /// dropping it rolls it back.
    ///
    /// # Errors
    /// `Busy` if another process keeps the write lock; `Timeout`, `Closed`, `Io`.
    pub async fn begin(&self) -> Result<Transaction<'static>> {
        let claim = self.operations.call("begin", Ok(Work::Begin), Answer::transaction).await?;
        Ok(Transaction::new(&self.operations, claim))
    }

    /// Runs `body` in a transaction: commits if it answers Ok, rolls back if it answers an error, panics, or is dropped.
    /// The error may be the caller's own type.
    ///
    /// ```no_run
    /// # async fn example(db: flatwater::Database) -> flatwater::Result<()> {
    /// let left: i64 = db.transaction(async |tx| {
    ///     tx.execute("UPDATE accounts SET cents = cents - 500 WHERE id = ?", (1,)).await?;
    ///     tx.execute("UPDATE accounts SET cents = cents + 500 WHERE id = ?", (2,)).await?;
    ///     Ok::<_, flatwater::Error>(tx.query_value("SELECT cents FROM accounts WHERE id = 1", ()).await?.unwrap_or(0))
    /// }).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// What `body` answers, or a failure to begin or to commit.
    pub async fn transaction<F, R, E>(&self, body: F) -> Result<R, E>
    where
        F: AsyncFnOnce(&mut Transaction<'_>) -> Result<R, E>,
        E: From<Error>,
    {
        let transaction = self.begin().await?;
        transaction.run(body).await
    }

    /// Runs a checkpoint of the main database now, and answers how many frames its WAL has and how many of them are copied
    /// (<https://sqlite.org/c3ref/wal_checkpoint_v2.html>). Nobody has to: see [`Checkpoint`](crate::Checkpoint).
    ///
    /// It waits its turn among the writes, and those behind it wait for it. What is in the way (another checkpoint; in all
    /// modes but [`Passive`](CheckpointMode::Passive) readers and other processes too) is waited for until
    /// [`Options::busy_timeout`](crate::Options::busy_timeout) or the deadline ends. In another journal mode than WAL it answers
    /// 0 frames. If the call is dropped while it waits nothing is done; while it runs, it is finished.
    ///
    /// # Errors
    /// `Busy` or `Timeout` if somebody was in the way for that long; `Misuse` on a handle that only reads; `Io`, `Full`,
    /// `Closed`. After a failed sync writes are refused until the database is opened again.
    pub fn checkpoint(&self, mode: CheckpointMode) -> Call<Checkpointed> {
        self.operations.call("checkpoint", Ok(Work::Checkpoint(mode)), Answer::checkpointed)
    }

    /// What the database has done since it was opened, by all its handles. Does not block. In a process that was forked
    /// while the database was open it is empty.
    #[must_use]
    pub fn stats(&self) -> Stats {
        if refuse_forked().is_err() {
            return Stats::default();
        }
        self.operations.handle.engine().stats()
    }

    /// Closes the database: writes submitted before are executed, an open transaction is waited for (5 s by default)
    /// and then rolled back, connections are closed. Calls that begin later get `Closed`. Closing twice is no error;
    /// a dropped call closes all the same.
    ///
    /// If the file was opened more than once in this process, this only ends the handle of this `open` and its clones, at
    /// once, and what they submitted goes on; the last one closes the database.
    ///
    /// # Errors
    /// `Misuse` from inside a closure on one of its connections, which cannot wait for its own end; nothing is closed
    /// then. A close that fails in SQLite leaves the file as a crash would, and the next open repairs that.
    pub async fn close(&self) -> Result<()> {
        refuse_forked().map_err(|error| error.in_operation("close"))?;
        if in_closure() {
            return Err(called_from_within().in_operation("close"));
        }
        let (promise, ended): (_, Reply<Result<Answer>>) = reply();
        self.operations.handle.close(Some(promise));
        match ended.await {
            Some(answer) => answer.map(drop),
            None => refuse_forked().map_err(|error| error.in_operation("close")),
        }
    }
}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Database").finish_non_exhaustive()
    }
}

impl Options {
    /// Opens the database, on a thread of its own. A file that is open in this process already, by whatever path or link,
    /// is not opened a second time: the handle is one more on the same database. It may have fewer rights
    /// ([`read_only`](Self::read_only)).
    ///
    /// # Errors
    /// `Misuse` for options that cannot work, before anything is opened, for options that differ from those the file is
    /// open with, and for a second SQLite library in this process that has the file open; `Open` if the path, the file or
    /// its directory will not do; `Busy` if another process keeps it locked; `Io` if the file was replaced while it is open.
    pub async fn open(self) -> Result<Database> {
        refuse_forked().map_err(|error| error.in_operation("open"))?;
        let (promise, opened) = reply();
        std::thread::Builder::new()
            .name("fw-open".into())
            .spawn(move || {
                let database = Handle::open(self).map(Database::from_handle);
                // If the caller is gone the database is dropped here, and closed.
                if let Ok(Some(waker)) = promise.fill(database) {
                    waker.wake();
                }
            })
            .map_err(|error| {
                Error::new(crate::Kind::Io, format!("a thread cannot be started: {error}")).in_operation("open")
            })?;
        opened.await.unwrap_or_else(|| {
            let lost = refuse_forked().err().unwrap_or_else(|| Error::misuse("opening the database panicked"));
            Err(lost.in_operation("open"))
        })
    }

    /// Opens the database on this thread, which must not be one that runs an event loop.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_blocking(self) -> Result<Database> {
        Handle::open(self).map(Database::from_handle)
    }
}
