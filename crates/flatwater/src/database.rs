//! The database handle: the operations a program calls on it.
//!
//! Owns: the operations outside a transaction, and the handle whose last drop closes the database. Leaves out: how
//! requests are served, and on which thread.

use std::sync::Arc;
use std::time::Duration;

use flatwater_sqlite::{CheckpointMode, Checkpointed};

use crate::call::{Call, Read};
use crate::engine::dispatch::{Awaited, Caller, Submitted};
use crate::engine::handle::{Handle, called_from_within};
use crate::error::{Error, Result};
use crate::many::ExecuteMany;
use crate::operations::Operations;
use crate::options::Options;
use crate::options::json::JsonOptions;
use crate::prepared::Prepared;
use crate::queue::reply::reply;
use crate::queue::ticket::CallOptions;
use crate::stats::Stats;
use crate::thread::park::in_closure;
use crate::transaction::Transaction;
use crate::values::convert::FromSql;
use crate::values::executed::{BatchResult, Executed};
use crate::values::into_params::IntoParams;
use crate::values::row::{FromRow, Row, Rows};
use crate::workers::request::Work;

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

    pub(crate) fn from_handle(handle: Handle) -> Self {
        let options = handle.call_options();
        let handle = Arc::new(handle);
        let caller = Caller { handle, options, inside: None, open_read: None, json: None };
        Self { operations: Operations(caller) }
    }

    /// Returns a handle whose writes are never members of a group: each runs in its own transaction.
    #[must_use]
    pub fn alone(&self) -> Self {
        self.with_options(CallOptions { alone: true, ..self.operations.0.options })
    }

    /// Returns a handle whose calls fail with `Timeout` if they do not finish in time. For one call there is
    /// [`Call::timeout`], for every call [`Options::timeout`](crate::Options::timeout). The time covers waiting in the
    /// queue, waiting for locks, and execution; a timeout of zero has passed before anything runs. A call that timed out
    /// has done nothing, unless [`Error::applied`] says otherwise. Two kinds of write are not interrupted once they run: a
    /// write that shares a transaction with others, which takes about a millisecond, and a short write that runs on the
    /// thread that polls it.
    #[must_use]
    pub fn timeout(&self, timeout: Duration) -> Self {
        self.with_options(CallOptions { timeout: Some(timeout), ..self.operations.0.options })
    }

    /// Returns a handle whose [`query_json`](Self::query_json) writes rows as `options` say. Its transactions and prepared
    /// statements do the same.
    #[must_use]
    pub fn json(&self, options: JsonOptions) -> Self {
        Self { operations: Operations(Caller { json: Some(Arc::new(options)), ..self.operations.0.clone() }) }
    }

    fn with_options(&self, options: CallOptions) -> Self {
        Self { operations: Operations(Caller { options, ..self.operations.0.clone() }) }
    }

    /// Looks up `sql` once, for a loop that runs it many times, and compiles it on one of the database's connections, so
    /// that an error in it is reported here. A PRAGMA or an EXPLAIN is compiled only when it runs.
    ///
    /// Nothing runs. In a database without readers (in memory) the call waits for writes and transactions, as reads do.
    ///
    /// # Errors
    /// `Sql` from SQLite; `Misuse` for more than one statement, for SQL that no call accepts, and in a process that was
    /// forked while the database was open; `Busy`, `Io`, `Closed`.
    pub fn prepare(&self, sql: &str) -> Call<Prepared> {
        Prepared::call(&self.operations, sql)
    }

    /// Runs one statement that returns no rows.
    ///
    /// The call completes when the write is committed, perhaps in one commit with other writes that arrived at the same
    /// time; each write keeps its own result. If the call is dropped while it waits, the write does not happen; if it
    /// is dropped while the write runs, the write is rolled back, unless it shares its commit or the commit has begun.
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
    pub fn batch<'a, I, P>(&self, statements: I) -> Call<Vec<BatchResult>>
    where
        I: IntoIterator<Item = (&'a str, P)>,
        P: IntoParams,
    {
        self.operations.batch(statements)
    }

    /// Runs several statements without parameters, separated by semicolons, all or nothing. Any rows they return are
    /// discarded.
    ///
    /// A script that begins with BEGIN, or with PRAGMAs and BEGIN, and ends with COMMIT is taken for the dump of a database,
    /// as the `sqlite3` shell writes it, and is still one transaction. Unless it changes rows that are there, foreign keys
    /// are off meanwhile, and are checked before the commit.
    ///
    /// # Errors
    /// As [`execute`](Self::execute); if one statement fails, all statements are undone. `Constraint` if a dump leaves a row
    /// without its parent.
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

    /// Runs one statement and returns the first value of its first row. The result is `None` if there is no row, and for
    /// NULL, such as the `sum` of no rows. To tell the two apart, read an `Option`: NULL is then `Some(None)`.
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

    /// Runs one statement and returns all its rows as JSON: an array of objects. It is written straight from SQLite's
    /// values, where the statement runs, and needs no memory but its own.
    ///
    /// INTEGER and REAL are numbers, TEXT is a string, a BLOB is a string in Base64, NULL and infinity are `null`.
    /// [`json`](Self::json) sets other choices. A write is allowed here if it has a RETURNING clause. If the call is
    /// dropped, a running read is interrupted.
    ///
    /// # Errors
    /// As [`query`](Self::query); `Misuse` if two columns have the same name, before the statement runs, or if a TEXT is
    /// not UTF-8. A write is still committed then, as it is if [`query_as`](Self::query_as) cannot read a row.
    pub fn query_json(&self, sql: &str, params: impl IntoParams) -> Call<String> {
        self.operations.query_json(sql, params)
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
    /// it returns 0 frames. If the call is dropped while it waits, the wait ends; what is copied by then is
    /// copied.
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
        let handle = &self.operations.0.handle;
        if handle.is_inherited() { Stats::default() } else { handle.engine().stats() }
    }

    /// Closes the database: executes the writes submitted before, waits for an open transaction
    /// ([`Options::close_wait`](crate::Options::close_wait), 5 s by default) and then rolls it back, and closes the connections.
    /// Calls that begin later fail with `Closed`. Closing twice is not an error. At most two seconds after the
    /// wait the call returns, even if work still runs: running writes are rolled back, and a closure that does not end is left
    /// behind. If the future is dropped after its first poll, the database is closed all the same.
    ///
    /// If the file was opened more than once in this process, this ends only the handle of this `open` and its clones,
    /// at once; the requests they submitted still run. Closing the last such handle closes the database.
    ///
    /// # Errors
    /// `Misuse` if called from inside a closure on one of the database's connections, which would wait for itself;
    /// nothing is closed then. `Busy`, with the name of the closure or statement that does not end. Nothing that it does is
    /// committed any more, and this process keeps the file until it ends; only then can the file be opened again. If SQLite fails to close the file, the file
    /// is left as after a crash, and the next open recovers it.
    pub fn close(&self) -> Call<()> {
        self.close_as(|answer, _| answer.done())
    }

    pub(crate) fn close_as<T>(&self, read: Read<T, Error>) -> Call<T> {
        let handle = self.operations.0.handle.clone();
        let start = move |_| {
            handle.refuse_inherited()?;
            if in_closure() {
                return Err(called_from_within());
            }
            let (promise, ended) = reply();
            handle.close(Some(promise));
            Ok(Submitted::Waits(Awaited::Close, ended))
        };
        Call::starting(Some(&self.operations.0), "close", Box::new(start), read)
    }
}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Database").finish_non_exhaustive()
    }
}
