//! The blocking counterpart of the API: the same operations for plain threads.
//!
//! Owns: only a database handle. Each call blocks the thread that makes it; a single statement runs on that thread if a
//! connection is free. Must not be used on a thread that runs an event loop.

use rusqlite::types::FromSql;

use crate::database::Database;
use crate::error::{Error, Result};
use crate::stats::Stats;
use crate::thread::park::block_on;
use crate::values::executed::{BatchResult, Executed};
use crate::values::into_params::IntoParams;
use crate::values::params::Params;
use crate::values::row::{FromRow, Row, Rows};

/// The operations of [`Database`] for plain threads: each blocks its thread until it is done. Not for a thread that
/// runs an event loop.
///
/// ```no_run
/// # fn main() -> flatwater::Result<()> {
/// let db = flatwater::Options::new("app.db").open_blocking()?.blocking();
/// db.execute("CREATE TABLE IF NOT EXISTS t (a)", ())?;
/// let count: Option<i64> = db.query_value("SELECT count(*) FROM t", ())?;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct Blocking(Database);

impl Database {
    /// Returns a handle with the same operations for plain threads, which may block.
    #[must_use]
    pub fn blocking(&self) -> Blocking {
        Blocking(self.clone())
    }
}

impl Blocking {
    /// As [`Database::execute`].
    ///
    /// # Errors
    /// The same as those of the operation on [`Database`].
    pub fn execute(&self, sql: &str, params: impl IntoParams) -> Result<Executed> {
        self.0.execute(sql, params).wait()
    }

    /// As [`Database::execute_many`].
    ///
    /// # Errors
    /// The same as those of the operation on [`Database`].
    pub fn execute_many<I>(&self, sql: &str, rows: I) -> Result<u64>
    where
        I: IntoIterator,
        I::Item: IntoParams,
    {
        self.0.execute_many(sql, rows).wait()
    }

    /// As [`Database::batch`].
    ///
    /// # Errors
    /// The same as those of the operation on [`Database`].
    pub fn batch<'a, I>(&self, statements: I) -> Result<Vec<BatchResult>>
    where
        I: IntoIterator<Item = (&'a str, Result<Params>)>,
    {
        self.0.batch(statements).wait()
    }

    /// As [`Database::execute_script`].
    ///
    /// # Errors
    /// The same as those of the operation on [`Database`].
    pub fn execute_script(&self, sql: &str) -> Result<()> {
        self.0.execute_script(sql).wait()
    }

    /// As [`Database::query`].
    ///
    /// # Errors
    /// The same as those of the operation on [`Database`].
    pub fn query(&self, sql: &str, params: impl IntoParams) -> Result<Rows> {
        self.0.query(sql, params).wait()
    }

    /// As [`Database::query_one`].
    ///
    /// # Errors
    /// The same as those of the operation on [`Database`].
    pub fn query_one(&self, sql: &str, params: impl IntoParams) -> Result<Option<Row<'static>>> {
        self.0.query_one(sql, params).wait()
    }

    /// As [`Database::query_value`].
    ///
    /// # Errors
    /// The same as those of the operation on [`Database`].
    pub fn query_value<T: FromSql>(&self, sql: &str, params: impl IntoParams) -> Result<Option<T>> {
        self.0.query_value(sql, params).wait()
    }

    /// As [`Database::query_as`].
    ///
    /// # Errors
    /// The same as those of the operation on [`Database`].
    pub fn query_as<T: FromRow>(&self, sql: &str, params: impl IntoParams) -> Result<Vec<T>> {
        self.0.query_as(sql, params).wait()
    }

    /// Runs `body` on a rusqlite transaction, on the writer's thread, as [`Database::write_with`].
    ///
    /// # Errors
    /// The same as those of the operation on [`Database`].
    pub fn write_with<F, R, E>(&self, body: F) -> Result<R, E>
    where
        F: FnOnce(&rusqlite::Transaction<'_>) -> Result<R, E> + Send + 'static,
        R: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        block_on(self.0.write_with(body))
    }

    /// As [`Database::read_with`].
    ///
    /// # Errors
    /// The same as those of the operation on [`Database`].
    pub fn read_with<F, R, E>(&self, body: F) -> Result<R, E>
    where
        F: FnOnce(&rusqlite::Connection) -> Result<R, E> + Send + 'static,
        R: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        block_on(self.0.read_with(body))
    }

    /// As [`Database::stats`].
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.0.stats()
    }

    /// As [`Database::close`].
    ///
    /// # Errors
    /// The same as those of the operation on [`Database`].
    pub fn close(&self) -> Result<()> {
        block_on(self.0.close())
    }
}
