//! The database handle: the operations a program calls on it.
//!
//! Owns: the operations outside a transaction, and the handle whose last drop closes the database. Leaves out: how
//! requests are served, and on which thread.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::api::call::Call;
use crate::api::prepared::{Prepared, prepare};
use crate::api::session::{Session, with_options};
use crate::api::statement::Statement;
use crate::api::transaction::{self, Snapshot, Transaction};
use crate::api::transaction_call::{self, TransactionCall};
use crate::engine::awaited::{Awaited, Submitted};
use crate::engine::caller::Caller;
use crate::engine::handle::{Handle, called_from_within};
use crate::engine::{Engine, registry};
use crate::options::Options;
use crate::queue::reply::reply;
use crate::stats::Stats;
use crate::workers::shared_errors::waits_for_itself;
use flatwater_base::error::hint::with_other_hint;
use flatwater_base::error::{Error, Result};
use flatwater_base::thread::current::{in_closure, is_inside};

/// A SQLite database: one writer, several readers, any number of callers. Its operations are those of a [`Session`].
/// Cloning it is cheap; all clones are one handle. When the last clone, call and transaction is dropped, the database is closed in the background.
///
/// A statement that is known to be short may run on the thread that polls its [`Call`]; everything else runs on the
/// database's own threads.
///
/// ```no_run
/// # async fn example() -> flatwater::Result<()> {
/// let db = flatwater::Database::open("app.db").await?;
/// db.execute("CREATE TABLE IF NOT EXISTS users (id INTEGER PRIMARY KEY, name TEXT)", ()).await?;
/// let ada = db.execute("INSERT INTO users (name) VALUES (?)", ("Ada",)).await?;
/// let name: String = db.query_value("SELECT name FROM users WHERE id = ?", (ada.last_insert_rowid,)).await?;
/// assert_eq!(name, "Ada");
/// # Ok(()) }
/// ```
pub struct Database {
    pub(crate) session: Session,
    /// The engine of the handle.
    pub(crate) engine: Arc<Engine>,
}

impl Database {
    /// Opens or creates the database file at `path` with the default [`Options`].
    ///
    /// The file is opened on a separate thread, so the caller's thread does not block. If the future is dropped before
    /// it completes, the database is closed again.
    ///
    /// # Errors
    /// `Open` if the path, the file or its directory cannot be used; `Busy` if another process keeps it locked.
    pub fn open(path: impl AsRef<std::path::Path>) -> Call<Self> {
        Options::new(path).open()
    }

    /// Returns a handle whose writes are never grouped: each runs in its own transaction.
    #[doc(alias = "alone")]
    #[must_use]
    pub fn ungrouped(&self) -> Self {
        of(self, with_options(&self.session, |options| options.alone = true))
    }

    /// Returns a handle whose calls fail with `Timeout` if they do not finish in time. For one call there is
    /// [`Call::timeout`], for every call [`Options::timeout`](crate::Options::timeout). The time covers waiting in the
    /// queue, waiting for locks, and execution; with a timeout of zero no call runs. A call that timed out has changed
    /// nothing, unless [`Error::applied`] says otherwise. A running write is not interrupted if it shares a transaction
    /// with others, which takes about a millisecond, or if it is short and runs on the thread that polls it.
    #[doc(alias = "timeout")]
    #[must_use]
    pub fn with_timeout(&self, timeout: Duration) -> Self {
        of(self, with_options(&self.session, |options| options.set_timeout(timeout)))
    }

    /// Returns a handle whose calls fail with `Timeout` if they do not finish by then, however many they are: one deadline for
    /// all that a request of a service does. Its transactions, snapshots and prepared statements have the same deadline; after
    /// it a transaction is not committed. A [`Call::timeout`] may end a call earlier. Otherwise as
    /// [`with_timeout`](Self::with_timeout).
    #[must_use]
    pub fn with_deadline(&self, deadline: Instant) -> Self {
        of(self, with_options(&self.session, |options| options.set_deadline(deadline)))
    }

    /// Looks up `sql` once, for a loop that runs it many times, and compiles it on one of the database's connections, so
    /// that an error in it is reported here. A PRAGMA or an EXPLAIN is compiled only when it runs.
    ///
    /// The statement does not run. In a database without readers (in memory) the call waits for writes and
    /// transactions, as reads do.
    ///
    /// # Errors
    /// `Sql` from SQLite; `Misuse` for more than one statement, for SQL that no call accepts, and in a process that was
    /// forked while the database was open; `Busy`, `Io`, `Closed`.
    pub fn prepare(&self, sql: impl Statement) -> Call<Prepared> {
        prepare(&self.session, &sql)
    }

    /// Begins a transaction with BEGIN IMMEDIATE. The transaction holds the writer until it ends, so other writes wait
    /// for it. Dropping the transaction rolls it back. Who holds it and awaits another write of the database waits for itself,
    /// until [`Tuning::transaction_idle`](crate::options::Tuning::transaction_idle); [`transaction`](Self::transaction) refuses that.
    ///
    /// # Errors
    /// `Busy` if another process keeps holding the write lock; `Timeout`, `Closed`, `Io`.
    pub fn begin(&self) -> Call<Transaction<'static>> {
        transaction::begin(&self.session, None)
    }

    /// Runs `body` in a transaction. Commits if `body` returns `Ok`; rolls back if it returns an error, panics, or is
    /// dropped. [`try_transaction`](Self::try_transaction) takes a body with an error of the caller's own type.
    ///
    /// ```no_run
    /// # async fn example(db: flatwater::Database) -> flatwater::Result<()> {
    /// let left: i64 = db.transaction(async |tx| {
    ///     tx.execute("UPDATE accounts SET cents = cents - 500 WHERE id = ?", (1,)).await?;
    ///     tx.execute("UPDATE accounts SET cents = cents + 500 WHERE id = ?", (2,)).await?;
    ///     tx.query_value("SELECT cents FROM accounts WHERE id = 1", ()).await
    /// }).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// What the body itself calls on the database, and would wait for the end of its transaction, is refused at once. A task that
    /// the body spawns is not known as a part of it: a write that such a task makes on the database waits, and if the body awaits
    /// that task, it waits for itself, until the transaction is at
    /// [`Tuning::transaction_idle`](crate::options::Tuning::transaction_idle) and is rolled back. Give such a task what it needs, or
    /// write through the transaction. The same holds for a transaction of [`begin`](Self::begin), which has no body.
    ///
    /// # Errors
    /// The error `body` returns, or a failure to begin or to commit. Inside of the body: `Misuse` for a call on the database that
    /// would wait for itself.
    pub fn transaction<F, R>(&self, body: F) -> TransactionCall<'static, impl Future<Output = Result<R>> + use<F, R>>
    where
        F: AsyncFnOnce(&mut Transaction<'_>) -> Result<R>,
    {
        transaction_call::transaction(self.begin(), body)
    }

    /// The same as [`transaction`](Self::transaction), with a `body` that returns an error of the caller's own type, to which an
    /// [`Error`] is converted by `?` and by this call.
    ///
    /// ```no_run
    /// # async fn example(db: flatwater::Database) -> Result<(), Box<dyn std::error::Error>> {
    /// db.try_transaction(async |tx| {
    ///     let cents: i64 = tx.query_value("SELECT cents FROM accounts WHERE id = ?", (1,)).await?;
    ///     tx.execute("UPDATE accounts SET cents = ? WHERE id = ?", (u32::try_from(cents)?, 1)).await?;
    ///     Ok::<_, Box<dyn std::error::Error>>(())
    /// }).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`transaction`](Self::transaction).
    pub fn try_transaction<F, R, E>(
        &self,
        body: F,
    ) -> TransactionCall<'static, impl Future<Output = Result<R, E>> + use<F, R, E>>
    where
        F: AsyncFnOnce(&mut Transaction<'_>) -> Result<R, E>,
        E: From<Error>,
    {
        transaction_call::transaction(self.begin(), body)
    }

    /// Opens a snapshot: several reads of one point in time, which is that of this call.
    ///
    /// ```no_run
    /// # async fn example(db: flatwater::Database) -> flatwater::Result<()> {
    /// let snapshot = db.snapshot().await?;
    /// let total: Option<i64> = snapshot.query_value("SELECT sum(cents) FROM accounts", ()).await?;
    /// let accounts = snapshot.query("SELECT id, cents FROM accounts", ()).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// `Timeout`, `Closed`, `Io`. If all [`Tuning::extra_readers`](crate::options::Tuning::extra_readers) are held, the call
    /// waits.
    pub fn snapshot(&self) -> Call<Snapshot> {
        transaction::snapshot(&self.session)
    }

    /// Returns what the database has done since it was opened, through all its handles. Does not block. In a process
    /// that was forked while the database was open, the result is empty.
    #[must_use]
    pub fn stats(&self) -> Stats {
        if self.session.0.handle.is_inherited() { Stats::default() } else { self.engine.stats() }
    }

    /// Closes the database: executes the writes submitted before, waits for an open transaction
    /// ([`Tuning::close_wait`](crate::options::Tuning::close_wait), 5 s by default) and then rolls it back, and closes the connections.
    /// Calls that begin later fail with `Closed`. Closing twice is not an error. At most two seconds after the wait the
    /// call returns, even if work still runs: running writes are rolled back, and a closure that does not end keeps
    /// running. If the future is dropped after its first poll, the database is still closed.
    ///
    /// If the file was opened more than once in this process, this closes only the handle of this `open` and its
    /// clones, immediately; the requests they submitted still run. Closing the last such handle closes the database.
    ///
    /// # Errors
    /// `Misuse` inside a closure on one of the database's connections, and in the body of a transaction of it, where it would
    /// wait for itself; nothing is closed then.
    /// `Busy`, with the name of the closure or statement that does not end. Its changes are not committed. The file
    /// stays open until that ends, and cannot be reopened before. If SQLite fails to close the file, the file is left
    /// as after a crash, and the next open recovers it.
    pub fn close(&self) -> Call<()> {
        close(&self.session)
    }
}

/// The session of a handle, outside of any transaction.
pub(crate) fn session_of(handle: Handle) -> Session {
    let options = handle.call_options();
    Session(Caller { handle: Arc::new(handle), options, inside: None, kept: None })
}

pub(crate) fn database(handle: Handle) -> Result<Database> {
    let engine = handle.engine().ok_or_else(Error::closed)?.clone();
    Ok(Database { session: session_of(handle), engine })
}

/// Another handle of the same.
fn of(database: &Database, session: Session) -> Database {
    Database { session, engine: database.engine.clone() }
}

/// Closes the handle of a session.
pub fn close(session: &Session) -> Call<()> {
    let handle = session.0.handle.clone();
    let start = move |_| {
        handle.refuse_inherited()?;
        if in_closure() {
            return Err(called_from_within());
        }
        if is_inside(handle.id()) && handle.engine().is_some_and(|engine| registry::is_last(engine)) {
            return Err(with_other_hint(waits_for_itself(), "close the database when the transaction is over"));
        }
        let (promise, ended) = reply();
        handle.close(Some(promise));
        Ok(Submitted::Waits(Awaited::Close, ended))
    };
    Call::starting(Some(&session.0), "close", Box::new(start), |answer, _| answer.done())
}

impl Clone for Database {
    fn clone(&self) -> Self {
        of(self, self.session.share())
    }
}

impl std::ops::Deref for Database {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.session
    }
}
opaque!(Database);
