//! The operations that a database and a transaction have in common, as requests.
//!
//! Owns: building the request of each operation and choosing how its answer is read, on the caller's thread. Invariant:
//! nothing runs here; a call begins when it is polled. Leaves out: the documentation for users, which is at `Database`
//! and `Transaction`.

use std::sync::Arc;

use rusqlite::types::FromSql;

use crate::call::Call;
use crate::engine::handle::{Handle, refuse_forked};
use crate::error::Result;
use crate::queue::ticket::CallOptions;
use crate::sql::catalogue::StatementInfo;
use crate::values::executed::{BatchResult, Executed};
use crate::values::into_params::IntoParams;
use crate::values::param_rows::ParamRows;
use crate::values::params::Params;
use crate::values::row::{FromRow, Row, Rows};
use crate::workers::request::{Answer, Work};
use crate::workers::session::Inside;

/// Where operations go: a database, or one open transaction on it.
#[derive(Clone)]
pub(crate) struct Operations {
    pub(crate) handle: Arc<Handle>,
    pub(crate) options: CallOptions,
    pub(crate) inside: Option<Arc<Inside>>,
}

/// A way to name a statement: its SQL text, or the catalogue entry that was looked up for it.
pub(crate) trait Sql {
    fn text(&self, handle: &Handle) -> Result<Arc<StatementInfo>>;
}

impl Sql for str {
    fn text(&self, handle: &Handle) -> Result<Arc<StatementInfo>> {
        // The catalogue's lock may be one that a thread held which a forked child does not have.
        refuse_forked()?;
        Ok(handle.engine().text(self))
    }
}

impl Sql for Arc<StatementInfo> {
    fn text(&self, _: &Handle) -> Result<Arc<StatementInfo>> {
        Ok(self.clone())
    }
}

impl Operations {
    pub(crate) fn call<T>(
        &self,
        operation: &'static str,
        work: Result<Work>,
        read: fn(Answer) -> Result<T>,
    ) -> Call<T> {
        Call::new(&self.handle, self.inside.as_ref(), self.options, operation, work, read)
    }

    pub(crate) fn text(&self, sql: &(impl Sql + ?Sized)) -> Result<Arc<StatementInfo>> {
        sql.text(&self.handle)
    }

    pub(crate) fn execute(&self, sql: &(impl Sql + ?Sized), params: impl IntoParams) -> Call<Executed> {
        let work = || Ok(Work::Execute { text: self.text(sql)?, params: params.into_params()? });
        self.call("execute", work(), Answer::executed)
    }

    pub(crate) fn execute_many<I>(&self, sql: &(impl Sql + ?Sized), rows: I) -> Call<u64>
    where
        I: IntoIterator,
        I::Item: IntoParams,
    {
        let mut params = ParamRows::new();
        let added = rows.into_iter().try_for_each(|row| row.add_to(&mut params));
        let work = added.and_then(|()| Ok(Work::Many { text: self.text(sql)?, rows: params }));
        self.call("execute_many", work, Answer::changes)
    }

    pub(crate) fn batch<'a, I>(&self, statements: I) -> Call<Vec<BatchResult>>
    where
        I: IntoIterator<Item = (&'a str, Result<Params>)>,
    {
        let statements = statements.into_iter().map(|(sql, params)| Ok((self.text(sql)?, params?)));
        self.call("batch", statements.collect::<Result<_>>().map(Work::Batch), Answer::batch)
    }

    pub(crate) fn execute_script(&self, sql: &str) -> Call<()> {
        self.call("execute_script", self.text(sql).map(Work::Script), Answer::done)
    }

    pub(crate) fn query(&self, sql: &(impl Sql + ?Sized), params: impl IntoParams) -> Call<Rows> {
        self.call("query", self.read(sql, params, usize::MAX), Answer::rows)
    }

    pub(crate) fn query_one(&self, sql: &(impl Sql + ?Sized), params: impl IntoParams) -> Call<Option<Row<'static>>> {
        self.call("query_one", self.read(sql, params, 1), Answer::first_row)
    }

    pub(crate) fn query_value<T: FromSql>(
        &self,
        sql: &(impl Sql + ?Sized),
        params: impl IntoParams,
    ) -> Call<Option<T>> {
        self.call("query_value", self.read(sql, params, 1), Answer::first_value)
    }

    pub(crate) fn query_as<T: FromRow>(&self, sql: &(impl Sql + ?Sized), params: impl IntoParams) -> Call<Vec<T>> {
        self.call("query_as", self.read(sql, params, usize::MAX), Answer::read_rows)
    }

    fn read(&self, sql: &(impl Sql + ?Sized), params: impl IntoParams, limit: usize) -> Result<Work> {
        Ok(Work::Query { text: self.text(sql)?, params: params.into_params()?, limit })
    }
}
