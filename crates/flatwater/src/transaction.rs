//! Interactive transactions and their savepoints.
//!
//! Owns: the caller's side of an open transaction. Invariant: whatever way it goes out of scope without `commit`, it is
//! rolled back; a savepoint's parent cannot be used meanwhile. Leaves out: serving it, which the writer does.

use std::marker::PhantomData;
use std::sync::Arc;

use rusqlite::types::FromSql;

use crate::call::Call;
use crate::database::Handle;
use crate::types::error::{Error, Result};
use crate::types::executed::{BatchResult, Executed};
use crate::types::params::{IntoParams, Params};
use crate::types::request::CallOptions;
use crate::types::row::{FromRow, Row, Rows};
use crate::workers::request::{Answer, Work};
use crate::workers::session::{Lease, Session};

/// An open transaction, or a savepoint inside one. It holds the writer: other writes wait until it ends.
///
/// Its reads see its own writes. A statement that fails changes nothing, and the transaction goes on. Dropping it rolls
/// back; one that is not used for [`Options::transaction_idle`](crate::Options::transaction_idle) is rolled back too, and
/// its next use says so.
#[must_use = "dropping a transaction rolls it back"]
pub struct Transaction<'a> {
    handle: Arc<Handle>,
    options: CallOptions,
    session: Arc<Session>,
    level: Option<Level>,
    parent: PhantomData<&'a mut ()>,
}

/// What is rolled back when this goes out of scope; `None` once it is finished.
enum Level {
    Outermost(#[allow(dead_code, reason = "its drop ends the transaction")] Lease),
    Savepoint,
}

impl<'a> Transaction<'a> {
    pub(crate) fn new(handle: Arc<Handle>, options: CallOptions, lease: Lease) -> Self {
        let session = lease.0.clone();
        Self { handle, options, session, level: Some(Level::Outermost(lease)), parent: PhantomData }
    }

    fn call<T>(&self, operation: &'static str, work: Result<Work>, read: fn(Answer) -> Result<T>) -> Call<T> {
        Call::new(&self.handle, self.options, operation, work, read).in_transaction(&self.session)
    }

    /// Runs one statement that returns no rows. If it fails nothing of it stays, unless it says `OR FAIL`.
    ///
    /// # Errors
    /// As [`Database::execute`](crate::Database::execute); `Misuse` if the transaction is over, with the reason.
    pub fn execute(&self, sql: &str, params: impl IntoParams) -> Call<Executed> {
        let work = params.into_params().map(|params| Work::Execute { text: self.handle.0.text(sql), params });
        self.call("execute", work, Answer::executed)
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
        let rows = rows.into_iter().map(IntoParams::into_params).collect::<Result<Vec<_>>>();
        let work = rows.map(|rows| Work::Many { text: self.handle.0.text(sql), rows });
        self.call("execute_many", work, Answer::changes)
    }

    /// Runs several statements with their parameters, all or nothing, in one trip.
    ///
    /// # Errors
    /// As [`execute`](Self::execute).
    pub fn batch<'s, I>(&self, statements: I) -> Call<Vec<BatchResult>>
    where
        I: IntoIterator<Item = (&'s str, Result<Params>)>,
    {
        let statements = statements.into_iter().map(|(sql, params)| Ok((self.handle.0.text(sql), params?)));
        self.call("batch", statements.collect::<Result<_>>().map(Work::Batch), Answer::batch)
    }

    /// Runs several statements without parameters, all or nothing. Rows are dropped.
    ///
    /// # Errors
    /// As [`execute`](Self::execute).
    pub fn execute_script(&self, sql: &str) -> Call<()> {
        self.call("execute_script", Ok(Work::Script(self.handle.0.text(sql))), Answer::done)
    }

    /// Runs one statement and answers all its rows.
    ///
    /// # Errors
    /// As [`execute`](Self::execute); `Misuse` for a statement that returns no rows.
    pub fn query(&self, sql: &str, params: impl IntoParams) -> Call<Rows> {
        self.call("query", self.query_work(sql, params, usize::MAX), Answer::rows)
    }

    /// Runs one statement and answers its first row, if there is one.
    ///
    /// # Errors
    /// As [`query`](Self::query).
    pub fn query_one(&self, sql: &str, params: impl IntoParams) -> Call<Option<Row<'static>>> {
        self.call("query_one", self.query_work(sql, params, 1), Answer::first_row)
    }

    /// Runs one statement and answers the first value of its first row, if there is one.
    ///
    /// # Errors
    /// As [`query`](Self::query); `Misuse` if the value is not a `T`.
    pub fn query_value<T: FromSql>(&self, sql: &str, params: impl IntoParams) -> Call<Option<T>> {
        self.call("query_value", self.query_work(sql, params, 1), Answer::first_value)
    }

    /// Runs one statement and answers every row as a `T`, such as a tuple.
    ///
    /// # Errors
    /// As [`query`](Self::query); `Misuse` if a row is not a `T`.
    pub fn query_as<T: FromRow>(&self, sql: &str, params: impl IntoParams) -> Call<Vec<T>> {
        self.call("query_as", self.query_work(sql, params, usize::MAX), Answer::read_rows)
    }

    fn query_work(&self, sql: &str, params: impl IntoParams, limit: usize) -> Result<Work> {
        Ok(Work::Query { text: self.handle.0.text(sql), params: params.into_params()?, limit })
    }

    /// Begins a nested transaction: a savepoint. Until it ends this one cannot be used.
    ///
    /// # Errors
    /// `Misuse` if the transaction is over, with the reason.
    pub async fn begin(&mut self) -> Result<Transaction<'_>> {
        self.call("begin", Ok(Work::Savepoint), Answer::done).await?;
        Ok(Transaction {
            handle: self.handle.clone(),
            options: self.options,
            session: self.session.clone(),
            level: Some(Level::Savepoint),
            parent: PhantomData,
        })
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
        match body(&mut self).await {
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
    /// open: either all of it is committed or nothing.
    ///
    /// # Errors
    /// `Constraint` for a deferred foreign key; `Io`, `Full`; `CommitUnknown` if the outcome cannot be known. After any
    /// error the transaction is rolled back.
    pub async fn commit(mut self) -> Result<()> {
        let level = self.level.take();
        let work = if matches!(level, Some(Level::Savepoint)) { Work::Release } else { Work::Commit };
        let ended = self.call("commit", Ok(work), Answer::done).await;
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
        let ended = self.call("rollback", Ok(work), Answer::done).await;
        drop(level);
        ended
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        if let Some(Level::Savepoint) = self.level {
            self.session.undo();
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
