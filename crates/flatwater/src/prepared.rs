//! A statement whose SQL was looked up once, for hot loops.
//!
//! Owns: the handle and its operations, which make their requests on the caller's thread. Leaves out: compiling the
//! SQL, which one connection does for `prepare`, and each other connection when it first runs it.

use std::sync::Arc;

use crate::call::Call;
use crate::error::Error;
use crate::many::ExecuteMany;
use crate::operations::Operations;
use crate::sql::catalogue::StatementInfo;
use crate::values::convert::FromSql;
use crate::values::executed::Executed;
use crate::values::into_params::IntoParams;
use crate::values::row::{FromRow, Row, Rows};
use crate::workers::request::Work;

/// One SQL statement of a database, for running it many times; made by [`Database::prepare`](crate::Database::prepare).
/// Cloning it is cheap. Its operations do what those of the same names on the database do, with the same errors, but
/// skip looking up the SQL. Its calls have the deadline and the other options of the handle that made it, and do not
/// belong to a transaction. A connection that has not compiled the SQL yet does so when it first runs it. A `Prepared`
/// keeps the database open.
///
/// ```no_run
/// # async fn example(db: flatwater::Database, ids: Vec<i64>) -> flatwater::Result<()> {
/// let name = db.prepare("SELECT name FROM users WHERE id = ?").await?;
/// for id in ids {
///     let name: Option<String> = name.query_value((id,)).await?;
/// }
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Prepared {
    pub(crate) operations: Operations,
    pub(crate) text: Arc<StatementInfo>,
}

impl Prepared {
    /// Returns the call of `prepare`.
    pub(crate) fn call(operations: &Operations, sql: &str) -> Call<Self> {
        let text = operations.text(sql).inspect(|text| text.mark_used_again());
        operations.call("prepare", text.map(Work::Prepare), |answer, caller| {
            let text = answer.prepared()?;
            let caller = caller.ok_or_else(Error::closed)?;
            Ok(Self { operations: Operations(caller.clone()), text })
        })
    }

    /// The SQL text, as it was given to `prepare`.
    #[must_use]
    pub fn sql(&self) -> &str {
        &self.text.sql
    }

    /// See [`Database::execute`](crate::Database::execute).
    pub fn execute(&self, params: impl IntoParams) -> Call<Executed> {
        self.operations.execute(&self.text, params)
    }

    /// See [`Database::execute_many`](crate::Database::execute_many).
    pub fn execute_many<I>(&self, rows: I) -> ExecuteMany<I::IntoIter>
    where
        I: IntoIterator,
        I::Item: IntoParams,
    {
        ExecuteMany::new(&self.operations, Ok(self.text.clone()), rows.into_iter())
    }

    /// See [`Database::query`](crate::Database::query).
    pub fn query(&self, params: impl IntoParams) -> Call<Rows> {
        self.operations.query(&self.text, params)
    }

    /// See [`Database::query_one`](crate::Database::query_one).
    pub fn query_one(&self, params: impl IntoParams) -> Call<Option<Row<'static>>> {
        self.operations.query_one(&self.text, params)
    }

    /// See [`Database::query_value`](crate::Database::query_value).
    pub fn query_value<T: FromSql>(&self, params: impl IntoParams) -> Call<Option<T>> {
        self.operations.query_value(&self.text, params)
    }

    /// See [`Database::query_as`](crate::Database::query_as).
    pub fn query_as<T>(&self, params: impl IntoParams) -> Call<Vec<T>>
    where
        T: FromRow + Send + 'static,
    {
        self.operations.query_as(&self.text, params)
    }

    /// See [`Database::query_json`](crate::Database::query_json).
    pub fn query_json(&self, params: impl IntoParams) -> Call<String> {
        self.operations.query_json(&self.text, params)
    }
}

impl std::fmt::Debug for Prepared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Prepared").field("sql", &self.sql()).finish_non_exhaustive()
    }
}
