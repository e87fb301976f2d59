//! The database handle: the operations a program calls on it.
//!
//! Owns: the operations outside a transaction, and the handle whose last drop closes the database. Leaves out: how
//! requests are served, and on which thread.

use std::sync::Arc;
use std::time::Duration;

use flatwater_sqlite::{CheckpointMode, Checkpointed};
use rusqlite::types::FromSql;

use crate::call::Call;
use crate::engine::dispatch::{Caller, Submitted};
use crate::engine::handle::{Handle, called_from_within, refuse_forked};
use crate::error::{Error, Kind, Result};
use crate::many::ExecuteMany;
use crate::operations::Operations;
use crate::options::Options;
use crate::prepared::Prepared;
use crate::queue::reply::{reply, wake};
use crate::queue::ticket::CallOptions;
use crate::stats::Stats;
use crate::thread::park::in_closure;
use crate::transaction::Transaction;
use crate::values::executed::{BatchResult, Executed};
use crate::values::into_params::IntoParams;
use crate::values::params::Params;
use crate::values::row::{FromRow, Row, Rows};
use crate::workers::request::{Answer, Work};

/// A SQLite database: one writer, several readers, any number of callers. Cloning it is cheap; all clones are one
/// handle. When the last clone, call and transaction is dropped, the database is closed in the background.
///
/// A statement that is known to be short may run on the thread that polls its [`Call`]; everything else runs on the
/// database's own threads.
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
    /// The file is opened on a separate thread, so the caller's thread does not block. If the future is dropped
    /// meanwhile, the database is closed again.
    ///
    /// # Errors
    /// `Open` if the path, the file or its directory cannot be used; `Busy` if another process keeps it locked.
    pub fn open(path: impl AsRef<std::path::Path>) -> Call<Self> {
        Options::new(path).open()
    }

    fn from_handle(handle: Handle) -> Self {
        let options = handle.call_options();
        Self { operations: Operations(Caller { handle: Arc::new(handle), options, inside: None }) }
    }

    /// Returns a handle whose writes are never members of a group: each runs in its own transaction.
    #[must_use]
    pub fn alone(&self) -> Self {
        self.with_options(CallOptions { alone: true, ..self.operations.0.options })
    }

    /// Returns a handle whose calls fail with `Timeout` if they do not finish in time. The time covers waiting in the
    /// queue, waiting for locks, and execution. A call that timed out has done nothing, unless [`Error::applied`] says
    /// otherwise. Two kinds of write are not interrupted once they run: a write that shares a transaction with others,
    /// which takes about a millisecond, and a short write that runs on the thread that polls it.
    #[must_use]
    pub fn timeout(&self, timeout: Duration) -> Self {
        self.with_options(CallOptions { timeout: Some(timeout), ..self.operations.0.options })
    }

    fn with_options(&self, options: CallOptions) -> Self {
        Self { operations: Operations(Caller { options, ..self.operations.0.clone() }) }
    }

    /// Looks up `sql` once, for a loop that runs it many times. Nothing is compiled yet: the first call reports any
    /// error in the SQL.
    ///
    /// # Errors
    /// `Misuse` in a process that was forked while the database was open.
    pub fn prepare(&self, sql: &str) -> Result<Prepared> {
        Prepared::new(&self.operations, sql)
    }

    /// Runs one statement that returns no rows.
    ///
    /// The call completes when the write is committed, perhaps in one commit with other writes that arrived at the same
    /// time; each write keeps its own result. If the call is dropped while it waits, the write does not happen; if it
    /// is dropped while the write runs, the write is completed.
    ///
    /// # Errors
    /// `Constraint` or `Sql` from SQLite; `Misuse` for more than one statement, for parameters that do not match the
    /// statement, or for a statement that returns rows; `Busy`, `Full`, `Io`, `Closed`; `CommitUnknown` if the outcome
    /// cannot be known.
    pub fn execute(&self, sql: &str, params: impl IntoParams) -> Call<Executed> {
        self.operations.execute(sql, params)
    }

    /// Runs one statement once per row of parameters, all or nothing, and returns the number of rows it changed.
    ///
    /// The rows are taken from the iterator while the future is polled, in slices of half a millisecond, between which
    /// other tasks run. The call takes its place in the queue when it has the last row. Dropping the future before that
    /// does nothing to the database.
    ///
    /// # Errors
    /// As [`execute`](Self::execute); if one row fails, all rows are undone.
    pub fn execute_many<I>(&self, sql: &str, rows: I) -> ExecuteMany<I::IntoIter>
    where
        I: IntoIterator,
        I::Item: IntoParams,
    {
        ExecuteMany::new(&self.operations, self.operations.text(sql), rows.into_iter())
    }

    /// Runs several statements with their parameters, all or nothing, in one request. Returns one result per statement,
    /// with the rows of those statements that return rows.
    ///
    /// Unlike a [`transaction`](Self::transaction), a batch does not make other writes wait for its caller, and a short
    /// batch can share a commit with other writes.
    ///
    /// # Errors
    /// As [`execute`](Self::execute); if one statement fails, all statements are undone.
    pub fn batch<'a, I>(&self, statements: I) -> Call<Vec<BatchResult>>
    where
        I: IntoIterator<Item = (&'a str, Result<Params>)>,
    {
        self.operations.batch(statements)
    }

    /// Runs several statements without parameters, separated by semicolons, all or nothing. Any rows they return are
    /// discarded.
    ///
    /// # Errors
    /// As [`execute`](Self::execute); if one statement fails, all statements are undone.
    pub fn execute_script(&self, sql: &str) -> Call<()> {
        self.operations.execute_script(sql)
    }

    /// Runs one statement and returns all its rows. A write is allowed here if it has a RETURNING clause.
    ///
    /// A read sees every write that completed before the read began. If the call is dropped, a running read is
    /// interrupted.
    ///
    /// # Errors
    /// As [`execute`](Self::execute); `Misuse` for a statement that returns no rows.
    pub fn query(&self, sql: &str, params: impl IntoParams) -> Call<Rows> {
        self.operations.query(sql, params)
    }

    /// Runs one statement and returns its first row, or `None` if there is no row.
    ///
    /// # Errors
    /// As [`query`](Self::query).
    pub fn query_one(&self, sql: &str, params: impl IntoParams) -> Call<Option<Row<'static>>> {
        self.operations.query_one(sql, params)
    }

    /// Runs one statement and returns the first value of its first row, or `None` if there is no row. Read a value that
    /// may be NULL as an `Option`.
    ///
    /// # Errors
    /// As [`query`](Self::query); `Misuse` if the value cannot be read as a `T`.
    pub fn query_value<T: FromSql>(&self, sql: &str, params: impl IntoParams) -> Call<Option<T>> {
        self.operations.query_value(sql, params)
    }

    /// Runs one statement and returns every row as a `T`, such as a tuple.
    ///
    /// More than 256 rows are read as `T` on one of the database's threads. If `T` panics, the call does.
    ///
    /// # Errors
    /// As [`query`](Self::query); `Misuse` if a row cannot be read as a `T`.
    pub fn query_as<T>(&self, sql: &str, params: impl IntoParams) -> Call<Vec<T>>
    where
        T: FromRow + Send + 'static,
    {
        self.operations.query_as(sql, params)
    }

    /// Begins a transaction with BEGIN IMMEDIATE. The transaction holds the writer until it ends, so other writes wait
    /// for it. Dropping the transaction rolls it back.
    ///
    /// # Errors
    /// `Busy` if another process keeps holding the write lock; `Timeout`, `Closed`, `Io`.
    pub fn begin(&self) -> Call<Transaction<'static>> {
        self.operations.call("begin", Ok(Work::Begin), |answer, caller| {
            let guard = answer.transaction()?;
            caller.map(|caller| Transaction::new(caller, guard)).ok_or_else(Error::closed)
        })
    }

    /// Runs `body` in a transaction. Commits if `body` returns `Ok`; rolls back if it returns an error, panics, or is
    /// dropped. The error may be the caller's own type.
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
    /// The error `body` returns, or a failure to begin or to commit.
    pub async fn transaction<F, R, E>(&self, body: F) -> Result<R, E>
    where
        F: AsyncFnOnce(&mut Transaction<'_>) -> Result<R, E>,
        E: From<Error>,
    {
        let transaction = self.begin().await?;
        transaction.run(body).await
    }

    /// Runs a checkpoint of the main database now, and returns how many frames its WAL has and how many of them are
    /// copied into the database (<https://sqlite.org/c3ref/wal_checkpoint_v2.html>). You do not have to call this: see
    /// [`Checkpoint`](crate::Checkpoint).
    ///
    /// The checkpoint waits its turn among the writes, and the writes behind it wait for it. If another checkpoint is
    /// in the way, or in all modes but [`Passive`](CheckpointMode::Passive) a reader or another process, it waits until
    /// [`Options::busy_timeout`](crate::Options::busy_timeout) or the deadline ends. In a journal mode other than WAL
    /// it returns 0 frames. If the call is dropped while it waits, nothing is done; if it is dropped while the
    /// checkpoint runs, the checkpoint is completed.
    ///
    /// # Errors
    /// `Busy` or `Timeout` if another checkpoint, a reader or another process was in the way for that long; `Misuse` on
    /// a read-only handle; `Io`, `Full`, `Closed`. After a failed sync, writes are refused until the database is opened
    /// again.
    pub fn checkpoint(&self, mode: CheckpointMode) -> Call<Checkpointed> {
        self.operations.call("checkpoint", Ok(Work::Checkpoint(mode)), |answer, _| answer.checkpointed())
    }

    /// Returns what the database has done since it was opened, through all its handles. Does not block. In a process
    /// that was forked while the database was open, the result is empty.
    #[must_use]
    pub fn stats(&self) -> Stats {
        if refuse_forked().is_err() {
            return Stats::default();
        }
        self.operations.0.handle.engine().stats()
    }

    /// Closes the database: executes the writes submitted before, waits for an open transaction (5 s by default) and
    /// then rolls it back, and closes the connections. Calls that begin later fail with `Closed`. Closing twice is not
    /// an error. If the future is dropped after its first poll, the database is closed all the same.
    ///
    /// If the file was opened more than once in this process, this ends only the handle of this `open` and its clones,
    /// at once; the requests they submitted still run. Closing the last such handle closes the database.
    ///
    /// # Errors
    /// `Misuse` if called from inside a closure on one of the database's connections, which would wait for itself;
    /// nothing is closed then. If SQLite fails to close the file, the file is left as after a crash, and the next open
    /// recovers it.
    pub fn close(&self) -> Call<()> {
        let handle = self.operations.0.handle.clone();
        let start = move |_| {
            refuse_forked()?;
            if in_closure() {
                return Err(called_from_within());
            }
            let (promise, ended) = reply();
            handle.close(Some(promise));
            Ok(Submitted::Queued(None, ended))
        };
        Call::starting(Some(&self.operations.0), "close", Box::new(start), |answer, _| answer.done())
    }
}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Database").finish_non_exhaustive()
    }
}

impl Options {
    /// Opens the database on a separate thread, so the caller's thread does not block. A file that is already open in
    /// this process, by whatever path or link, is not opened a second time: the result is another handle to the same
    /// database. That handle may have fewer rights ([`read_only`](Self::read_only)).
    ///
    /// # Errors
    /// `Misuse` for options that cannot work (checked before anything is opened), for options that differ from those
    /// the file is already open with, and for a second SQLite library in this process that has the file open; `Open` if
    /// the path, the file or its directory cannot be used; `Busy` if another process keeps it locked; `Io` if the file
    /// was replaced while it was open.
    pub fn open(self) -> Call<Database> {
        let start = move |may_block| {
            refuse_forked()?;
            let open = || Answer::Returned(Box::new(open_migrated(self)));
            if may_block {
                return Ok(Submitted::Now(Ok(open())));
            }
            let (promise, opened) = reply();
            let open = move || {
                // If the caller has dropped the call, the database is dropped here, which closes it.
                if let Ok(waker) = promise.fill(Ok(open())) {
                    wake(waker);
                }
            };
            let thread = std::thread::Builder::new().name("fw-open".into()).spawn(open);
            thread.map_err(|error| Error::new(Kind::Io, format!("a thread cannot be started: {error}")))?;
            Ok(Submitted::Queued(None, opened))
        };
        Call::starting(None, "open", Box::new(start), |answer, _| answer.returned())
    }
}

/// Opens the database and applies the migrations of its options. Blocks.
fn open_migrated(options: Options) -> Result<Database> {
    let migrations = options.migrations.clone();
    let db = Database::from_handle(Handle::open(options)?);
    if let Some(migrations) = migrations {
        let migrate: Call<Vec<String>> =
            db.operations.call("migrate", Ok(Work::Migrate(migrations)), |answer, _| answer.returned());
        migrate.wait()?;
    }
    Ok(db)
}
