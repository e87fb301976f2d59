//! Interactive transactions and their savepoints.
//!
//! Owns: the caller's side of an open transaction. Invariant: whatever way it goes out of scope without `commit`, it is
//! rolled back; a savepoint's parent cannot be used meanwhile. Leaves out: serving it, which the writer does.

use std::marker::PhantomData;
use std::sync::Arc;

use flatwater_sqlite::is_stranded;
use rusqlite::types::FromSql;

use crate::call::Call;
use crate::error::{Error, Result};
use crate::operations::Operations;
use crate::thread::scope;
use crate::values::executed::{BatchResult, Executed};
use crate::values::into_params::IntoParams;
use crate::values::params::Params;
use crate::values::row::{FromRow, Row, Rows};
use crate::workers::request::{Answer, Work};
use crate::workers::session::{Inside, TransactionGuard};

/// An open transaction, or a savepoint inside one. It holds the writer: other writes wait until it ends.
///
/// Its reads see its own writes. A statement that fails changes nothing, and the transaction goes on, unless SQLite ends
/// it: by ROLLBACK in a trigger, a failing disk, or the deadline of a call that interrupts a write. Dropping it rolls
/// back; one that is not used for [`Options::transaction_idle`](crate::Options::transaction_idle) is rolled back too, and
/// its next use says so.
///
/// Its statements run on the writer's thread. One that is known to be short, from earlier uses on its connection, may run
/// on the thread that polls its call.
#[must_use = "dropping a transaction rolls it back"]
pub struct Transaction<'a> {
    operations: Operations,
    level: Option<Level>,
    parent: PhantomData<&'a mut ()>,
}

/// What is rolled back when this goes out of scope; `None` once it is finished.
enum Level {
    Outermost(#[allow(dead_code, reason = "its drop ends the transaction")] TransactionGuard),
    Savepoint,
}

impl<'a> Transaction<'a> {
    pub(crate) fn new(database: &Operations, claim: TransactionGuard) -> Self {
        let inside = Inside { session: claim.0.clone(), savepoints: Vec::new() };
        let operations = Operations { inside: Some(Arc::new(inside)), ..database.clone() };
        Self { operations, level: Some(Level::Outermost(claim)), parent: PhantomData }
    }

    /// Runs one statement that returns no rows. If it fails nothing of it stays, unless it says `OR FAIL`.
    ///
    /// # Errors
    /// As [`Database::execute`](crate::Database::execute); `Misuse` if the transaction is over, with the reason.
    pub fn execute(&self, sql: &str, params: impl IntoParams) -> Call<Executed> {
        self.operations.execute(sql, params)
    }

    /// Runs one statement once per row of parameters, all or nothing, and answers how many rows it changed.
    ///
    /// # Errors
    /// As [`execute`](Self::execute).
    pub fn execute_many<I>(&self, sql: &str, rows: I) -> Call<u64>
    where
        I: IntoIterator,
        I::Item: IntoParams,
    {
        self.operations.execute_many(sql, rows)
    }

    /// Runs several statements with their parameters, all or nothing, in one trip.
    ///
    /// # Errors
    /// As [`execute`](Self::execute).
    pub fn batch<'s, I>(&self, statements: I) -> Call<Vec<BatchResult>>
    where
        I: IntoIterator<Item = (&'s str, Result<Params>)>,
    {
        self.operations.batch(statements)
    }

    /// Runs several statements without parameters, all or nothing. Rows are dropped.
    ///
    /// # Errors
    /// As [`execute`](Self::execute).
    pub fn execute_script(&self, sql: &str) -> Call<()> {
        self.operations.execute_script(sql)
    }

    /// Runs one statement and answers all its rows.
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

    /// Runs one statement and answers the first value of its first row, if there is one.
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

    /// Begins a nested transaction: a savepoint. Until it ends this one cannot be used.
    ///
    /// # Errors
    /// `Misuse` if the transaction is over, with the reason.
    pub async fn begin(&mut self) -> Result<Transaction<'_>> {
        let mut operations = self.operations.clone();
        let number = operations.inside.as_ref().map_or(0, |inside| inside.session.next_savepoint());
        operations.call("begin", Ok(Work::Savepoint(number)), Answer::done).await?;
        if let Some(inside) = &mut operations.inside {
            Arc::make_mut(inside).savepoints.push(number);
        }
        Ok(Transaction { operations, level: Some(Level::Savepoint), parent: PhantomData })
    }

    /// Runs `body` in a nested transaction: kept if it answers Ok, undone if it answers an error, panics, or is dropped.
    ///
    /// # Errors
    /// What `body` answers; `Misuse` if the transaction is over.
    pub async fn transaction<F, R, E>(&mut self, body: F) -> Result<R, E>
    where
        F: AsyncFnOnce(&mut Transaction<'_>) -> Result<R, E>,
        E: From<Error>,
    {
        let nested = self.begin().await?;
        nested.run(body).await
    }

    /// Runs `body` and ends the transaction as it says.
    pub(crate) async fn run<F, R, E>(mut self, body: F) -> Result<R, E>
    where
        F: AsyncFnOnce(&mut Transaction<'_>) -> Result<R, E>,
        E: From<Error>,
    {
        let database = self.operations.handle.id();
        match scope::inside(database, body(&mut self)).await {
            Ok(result) => {
                self.commit().await?;
                Ok(result)
            }
            Err(error) => {
                // The body's error is what counts; a failed rollback ends in a replaced connection.
                let _ = self.rollback().await;
                Err(error)
            }
        }
    }

    /// Commits, or keeps what was done since the savepoint. If the call is dropped before it is answered the outcome is
    /// open: either all of it is committed (or kept), or nothing.
    ///
    /// # Errors
    /// `Constraint` for a deferred foreign key; `Io`, `Full`; `CommitUnknown` if the outcome cannot be known. After any
    /// error the transaction is rolled back.
    pub async fn commit(mut self) -> Result<()> {
        let level = self.level.take();
        let work = if matches!(level, Some(Level::Savepoint)) { Work::Release } else { Work::Commit };
        let ended = self.operations.call("commit", Ok(work), Answer::done).await;
        drop(level);
        ended
    }

    /// Rolls back, or undoes what was done since the savepoint. Dropping does the same without waiting.
    ///
    /// # Errors
    /// `Misuse` if the transaction is over, with the reason.
    pub async fn rollback(mut self) -> Result<()> {
        let level = self.level.take();
        let work = if matches!(level, Some(Level::Savepoint)) { Work::Undo } else { Work::Rollback };
        let ended = self.operations.call("rollback", Ok(work), Answer::done).await;
        drop(level);
        ended
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        if is_stranded() {
            return;
        }
        if let (Some(Level::Savepoint), Some(inside)) = (&self.level, &self.operations.inside) {
            inside.session.undo(&inside.savepoints);
        }
    }
}

impl std::fmt::Debug for Transaction<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let level = match self.level {
            Some(Level::Outermost(_)) => "transaction",
            Some(Level::Savepoint) => "savepoint",
            None => "finished",
        };
        f.debug_tuple("Transaction").field(&level).finish()
    }
}
