//! Interactive transactions and their savepoints.
//!
//! Owns: the caller's side of an open transaction; its methods run on the caller's thread. Invariant: a transaction
//! that goes out of scope without `commit` is rolled back, however that happens; a savepoint's parent cannot be used
//! while the savepoint is open. Leaves out: serving the transaction, which the writer does.

use std::marker::PhantomData;
use std::sync::Arc;

use crate::call::{Call, Read};
use crate::engine::dispatch::Caller;
use crate::error::{Error, Result};
use crate::many::ExecuteMany;
use crate::operations::Operations;
use crate::stream::RowStream;
use crate::thread::scope;
use crate::values::convert::FromSql;
use crate::values::executed::{BatchResult, Executed};
use crate::values::into_params::IntoParams;
use crate::values::row::{FromRow, Row, Rows};
use crate::workers::request::Work;
use crate::workers::session::{Inside, Level, TransactionGuard};

/// An open transaction, or a savepoint inside one. It holds the writer: other writes wait until it ends.
///
/// Its reads see its own writes. A statement that fails changes nothing, and the transaction stays open, unless SQLite
/// ends it: because of ROLLBACK in a trigger, a failing disk, or the deadline of a call that interrupts a write.
/// Dropping the transaction rolls it back. A transaction that is not used for
/// [`Options::transaction_idle`](crate::Options::transaction_idle) is rolled back too, and its next use returns an
/// error that says so.
///
/// Its statements run on the writer's thread. A statement that is known to be short, from earlier uses on the same
/// connection, may run on the thread that polls its call.
#[must_use = "dropping a transaction rolls it back"]
pub struct Transaction<'a> {
    pub(crate) operations: Operations,
    /// What is rolled back when the transaction goes out of scope.
    level: Level,
    parent: PhantomData<&'a mut ()>,
}

impl<'a> Transaction<'a> {
    pub(crate) fn new(caller: &Caller, guard: TransactionGuard) -> Self {
        let inside = Inside { session: guard.0.clone(), savepoints: Vec::new() };
        let operations = Operations(Caller { inside: Some(Arc::new(inside)), ..caller.clone() });
        Self { operations, level: Level::Outermost(guard), parent: PhantomData }
    }

    /// Creates the handle of the savepoint `number`, nested in the transaction of `caller`.
    pub(crate) fn nested(caller: &Caller, number: u64) -> Self {
        let mut caller = caller.clone();
        let mut level = Level::Ended;
        if let Some(inside) = &mut caller.inside {
            Arc::make_mut(inside).savepoints.push(number);
            level = Level::Savepoint(inside.clone());
        }
        Self { operations: Operations(caller), level, parent: PhantomData }
    }

    /// Runs one statement that returns no rows. A statement that fails changes nothing, unless it says `OR FAIL`.
    ///
    /// # Errors
    /// As [`Database::execute`](crate::Database::execute); `Misuse`, with the reason, if the transaction is over.
    pub fn execute(&self, sql: &str, params: impl IntoParams) -> Call<Executed> {
        self.operations.execute(sql, params)
    }

    /// Runs one statement once per row of parameters, all or nothing, and returns the number of rows it changed.
    ///
    /// # Errors
    /// As [`execute`](Self::execute).
    pub fn execute_many<I>(&self, sql: &str, rows: I) -> ExecuteMany<I::IntoIter>
    where
        I: IntoIterator,
        I::Item: IntoParams,
    {
        ExecuteMany::new(&self.operations, self.operations.text(sql), rows.into_iter())
    }

    /// Runs several statements with their parameters, all or nothing, in one request.
    ///
    /// # Errors
    /// As [`execute`](Self::execute).
    pub fn batch<'s, I, P>(&self, statements: I) -> Call<Vec<BatchResult>>
    where
        I: IntoIterator<Item = (&'s str, P)>,
        P: IntoParams,
    {
        self.operations.batch(statements)
    }

    /// Runs several statements without parameters, all or nothing. Any rows they return are discarded.
    ///
    /// # Errors
    /// As [`execute`](Self::execute).
    pub fn execute_script(&self, sql: &str) -> Call<()> {
        self.operations.execute_script(sql)
    }

    /// Runs one statement and returns all its rows.
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

    /// Runs one statement and returns the first value of its first row, or `None` if there is no row, or if the value is a
    /// NULL that `T` cannot hold.
    ///
    /// # Errors
    /// As [`query`](Self::query); `Misuse` if the value cannot be read as a `T`.
    pub fn query_value<T: FromSql>(&self, sql: &str, params: impl IntoParams) -> Call<Option<T>> {
        self.operations.query_value(sql, params)
    }

    /// Runs one statement and returns every row as a `T`, such as a tuple.
    ///
    /// # Errors
    /// As [`query`](Self::query); `Misuse` if a row cannot be read as a `T`.
    pub fn query_as<T>(&self, sql: &str, params: impl IntoParams) -> Call<Vec<T>>
    where
        T: FromRow + Send + 'static,
    {
        self.operations.query_as(sql, params)
    }

    /// Runs one statement and returns all its rows as JSON, as [`Database::query_json`](crate::Database::query_json)
    /// does.
    ///
    /// # Errors
    /// As [`query`](Self::query); `Misuse` if two columns have the same name, or if a TEXT is not UTF-8.
    pub fn query_json(&self, sql: &str, params: impl IntoParams) -> Call<String> {
        self.operations.query_json(sql, params)
    }

    /// Runs one statement and returns its rows one by one. Inside a transaction the whole result is read first.
    pub fn stream(&self, sql: &str, params: impl IntoParams) -> RowStream {
        RowStream::new(self.operations.cursor("stream", sql, params))
    }

    /// Runs one statement and returns its rows one by one, each as a `T`. Inside a transaction the whole result is read
    /// first.
    pub fn stream_as<T: FromRow>(&self, sql: &str, params: impl IntoParams) -> RowStream<T> {
        RowStream::typed(self.operations.cursor("stream_as", sql, params))
    }

    /// Begins a nested transaction: a savepoint. The outer transaction cannot be used until the nested one ends.
    ///
    /// # Errors
    /// `Misuse`, with the reason, if the transaction is over.
    pub fn begin(&mut self) -> Call<Transaction<'_>> {
        let number = self.operations.0.inside.as_ref().map_or(0, |inside| inside.session.next_savepoint());
        self.operations.call("begin", Ok(Work::Savepoint(number)), |answer, caller| {
            let number = answer.savepoint()?;
            caller.map(|caller| Transaction::nested(caller, number)).ok_or_else(|| Error::misuse("no transaction"))
        })
    }

    /// Runs `body` in a nested transaction. Its changes are kept if `body` returns `Ok`, and undone if it returns an
    /// error, panics, or is dropped.
    ///
    /// # Errors
    /// The error `body` returns; `Misuse` if the transaction is over.
    pub async fn transaction<F, R, E>(&mut self, body: F) -> Result<R, E>
    where
        F: AsyncFnOnce(&mut Transaction<'_>) -> Result<R, E>,
        E: From<Error>,
    {
        let nested = self.begin().await?;
        nested.run(body).await
    }

    /// Runs `body`, then commits if it returned `Ok` and rolls back if it returned an error.
    pub(crate) async fn run<F, R, E>(mut self, body: F) -> Result<R, E>
    where
        F: AsyncFnOnce(&mut Transaction<'_>) -> Result<R, E>,
        E: From<Error>,
    {
        let database = self.operations.0.handle.id();
        let ended = match self.operations.0.inside.clone() {
            Some(transaction) => scope::inside(database, transaction, body(&mut self)).await,
            None => body(&mut self).await,
        };
        match ended {
            Ok(result) => {
                self.commit().await?;
                Ok(result)
            }
            Err(error) => {
                // The body's error is returned. If the rollback fails, the connection is replaced.
                let _ = self.rollback().await;
                Err(error)
            }
        }
    }

    /// Commits the transaction, or releases the savepoint and keeps what was done since it began. If the call is
    /// dropped before it completes, the outcome is open: either all of it is committed (or kept), or nothing.
    ///
    /// # Errors
    /// `Constraint` for a deferred foreign key; `Io`, `Full`; `CommitUnknown` if the outcome cannot be known. After any
    /// error the transaction is rolled back.
    pub fn commit(self) -> Call<()> {
        self.commit_as(|answer, _| answer.done())
    }

    /// Rolls back the transaction, or undoes what was done since the savepoint began. Dropping the transaction does the
    /// same without waiting. It is no error if SQLite, the idle limit or a close has rolled it back already.
    ///
    /// # Errors
    /// `Misuse` in a closure on a connection, and in a forked process.
    /// # Errors
    /// `Closed` if the database was closed and its threads have ended.
    pub fn rollback(self) -> Call<()> {
        self.rollback_as(|answer, _| answer.done())
    }

    pub(crate) fn commit_as<T>(self, read: Read<T, Error>) -> Call<T> {
        self.end("commit", Work::Commit, Work::Release, read)
    }

    pub(crate) fn rollback_as<T>(self, read: Read<T, Error>) -> Call<T> {
        self.end("rollback", Work::Rollback, Work::Undo, read)
    }

    fn end<T>(self, operation: &'static str, outermost: Work, savepoint: Work, read: Read<T, Error>) -> Call<T> {
        let Self { operations, level, .. } = self;
        let work = if matches!(level, Level::Savepoint(_)) { savepoint } else { outermost };
        operations.call(operation, Ok(work), read).ending(level)
    }
}

impl std::fmt::Debug for Transaction<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let level = match self.level {
            Level::Outermost(_) => "transaction",
            Level::Savepoint(_) => "savepoint",
            Level::Ended => "finished",
        };
        f.debug_tuple("Transaction").field(&level).finish()
    }
}
