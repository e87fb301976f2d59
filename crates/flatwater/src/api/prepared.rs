//! A statement whose SQL was looked up once, for hot loops.
//!
//! Owns: the handle, whose operations are those of its session. Leaves out: compiling the SQL, which one connection
//! does for `prepare`, and each other connection when it first runs it.

use std::sync::Arc;

use crate::api::call::{Call, Read};
use crate::api::execute_many::ExecuteMany;
use crate::api::json_call::JsonCall;
use crate::api::session::Session;
use crate::api::statement::{Given, IsGiven, Statement};
use crate::workers::work::Work;
use flatwater_base::error::Error;
use flatwater_base::values::{ExecuteResult, FromRow, FromSql, IntoParams, Row, Rows, RunResult};
use flatwater_sql::statement_info::StatementInfo;

/// One SQL statement of a database, for running it many times; made by [`Database::prepare`](crate::Database::prepare).
/// Cloning it is cheap. Its operations are those of the same names of a [`Session`], with the same errors, without the
/// lookup of the SQL. Its calls have the deadline and the other options of the handle that made it, and run outside of
/// transactions; in a transaction pass it as the SQL: `tx.execute(&prepared, (1,))`. A connection that has not compiled
/// the SQL yet does so when it first runs it. A `Prepared` keeps the database open.
///
/// ```no_run
/// # async fn example(db: flatwater::Database, ids: Vec<i64>) -> flatwater::Result<()> {
/// let name = db.prepare("SELECT name FROM users WHERE id = ?").await?;
/// for id in ids {
///     let name: Option<String> = name.query_optional_value((id,)).await?;
/// }
/// # Ok(()) }
/// ```
pub struct Prepared {
    pub(crate) session: Session,
    pub(crate) text: Arc<StatementInfo>,
}

impl Prepared {
    /// The SQL text, as it was given to `prepare`.
    #[must_use]
    pub fn sql(&self) -> &str {
        &self.text.sql
    }

    /// See [`Session::execute`].
    pub fn execute(&self, params: impl IntoParams) -> Call<ExecuteResult> {
        self.session.execute(self, params)
    }

    /// See [`Session::run`].
    pub fn run(&self, params: impl IntoParams) -> Call<RunResult> {
        self.session.run(self, params)
    }

    /// See [`Session::execute_many`].
    pub fn execute_many<I: IntoIterator<Item: IntoParams>>(&self, rows: I) -> ExecuteMany<I::IntoIter> {
        self.session.execute_many(self, rows)
    }

    /// See [`Session::query_many`].
    pub fn query_many<I: IntoIterator<Item: IntoParams>>(&self, rows: I) -> ExecuteMany<I::IntoIter, Rows> {
        self.session.query_many(self, rows)
    }

    /// See [`Session::query`].
    pub fn query(&self, params: impl IntoParams) -> Call<Rows> {
        self.session.query(self, params)
    }

    /// See [`Session::query_one`].
    pub fn query_one(&self, params: impl IntoParams) -> Call<Row<'static>> {
        self.session.query_one(self, params)
    }

    /// See [`Session::query_optional`].
    pub fn query_optional(&self, params: impl IntoParams) -> Call<Option<Row<'static>>> {
        self.session.query_optional(self, params)
    }

    /// See [`Session::query_value`].
    pub fn query_value<T: FromSql>(&self, params: impl IntoParams) -> Call<T> {
        self.session.query_value(self, params)
    }

    /// See [`Session::query_optional_value`].
    pub fn query_optional_value<T: FromSql>(&self, params: impl IntoParams) -> Call<Option<T>> {
        self.session.query_optional_value(self, params)
    }

    /// See [`Session::query_values`].
    pub fn query_values<T: FromSql + Send + 'static>(&self, params: impl IntoParams) -> Call<Vec<T>> {
        self.session.query_values(self, params)
    }

    /// See [`Session::query_as`].
    pub fn query_as<T: FromRow + Send + 'static>(&self, params: impl IntoParams) -> Call<Vec<T>> {
        self.session.query_as(self, params)
    }

    /// See [`Session::query_one_as`].
    pub fn query_one_as<T: FromRow>(&self, params: impl IntoParams) -> Call<T> {
        self.session.query_one_as(self, params)
    }

    /// See [`Session::query_optional_as`].
    pub fn query_optional_as<T: FromRow>(&self, params: impl IntoParams) -> Call<Option<T>> {
        self.session.query_optional_as(self, params)
    }

    /// See [`Session::query_json`].
    pub fn query_json(&self, params: impl IntoParams) -> JsonCall {
        self.session.query_json(self, params)
    }
}

pub(crate) fn prepare(on: &Session, sql: &impl Statement) -> Call<Prepared> {
    compile(on, "prepare", sql, |answer, caller| {
        let text = answer.prepared()?;
        let caller = caller.ok_or_else(Error::closed)?;
        Ok(Prepared { session: Session(caller.clone()), text })
    })
}

/// Compiles a statement, without running it.
pub(crate) fn compile<T>(on: &Session, operation: &'static str, sql: &impl Statement, read: Read<T>) -> Call<T> {
    let text = on.0.only_text(sql).inspect(|text| text.mark_used_again());
    on.call(operation, text.map(Work::prepare), read)
}

impl IsGiven for &Prepared {
    fn given(&self) -> Given<'_> {
        Given::Known(&self.text, self.session.0.handle.id())
    }
}

impl Clone for Prepared {
    fn clone(&self) -> Self {
        Self { session: self.session.share(), text: self.text.clone() }
    }
}

impl std::fmt::Debug for Prepared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Prepared").field("sql", &self.sql()).finish_non_exhaustive()
    }
}
