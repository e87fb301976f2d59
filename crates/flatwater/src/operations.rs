//! The operations that a database and a transaction share, as requests.
//!
//! Owns: building the request of each operation, and choosing how its result is read, on the caller's thread.
//! Invariant: no work runs here; a call begins when it is polled. Leaves out: the documentation for users, which is at
//! `Database` and `Transaction`.

use std::sync::Arc;

use crate::call::{Call, Read};
use crate::cursor::Cursor;
use crate::engine::dispatch::Caller;
use crate::engine::handle::Handle;
use crate::error::{Error, Result};
use crate::sql::catalogue::StatementInfo;
use crate::values::convert::FromSql;
use crate::values::decoded::{decode_first_column, decode_rows};
use crate::values::executed::{BatchResult, Executed};
use crate::values::into_params::IntoParams;
use crate::values::row::{FromRow, Row, Rows};
use crate::workers::request::{Wanted, Work};

/// The operations of one caller: on a database, or in one open transaction on it.
#[derive(Clone)]
pub(crate) struct Operations(pub(crate) Caller);

/// A way to name a statement: its SQL text, or the catalogue entry that was looked up for it.
pub(crate) trait Text {
    fn text(&self, handle: &Handle) -> Result<Arc<StatementInfo>>;
}

impl Text for str {
    fn text(&self, handle: &Handle) -> Result<Arc<StatementInfo>> {
        // A forked child process would block forever on the catalogue's lock if another thread of the parent held it.
        handle.refuse_inherited()?;
        Ok(handle.engine().text(self))
    }
}

impl Text for Arc<StatementInfo> {
    fn text(&self, _: &Handle) -> Result<Arc<StatementInfo>> {
        Ok(self.clone())
    }
}

impl Operations {
    pub(crate) fn call<T, E: From<Error>>(
        &self,
        operation: &'static str,
        work: Result<Work>,
        read: Read<T, E>,
    ) -> Call<T, E> {
        Call::new(self.0.now(), operation, work, read)
    }

    pub(crate) fn text(&self, sql: &(impl Text + ?Sized)) -> Result<Arc<StatementInfo>> {
        sql.text(&self.0.handle)
    }

    pub(crate) fn execute(&self, sql: &(impl Text + ?Sized), params: impl IntoParams) -> Call<Executed> {
        let work = || Ok(Work::Execute { text: self.text(sql)?, params: params.into_params()? });
        self.call("execute", work(), |answer, _| answer.executed())
    }

    pub(crate) fn batch<'a, I, P>(&self, statements: I) -> Call<Vec<BatchResult>>
    where
        I: IntoIterator<Item = (&'a str, P)>,
        P: IntoParams,
    {
        let statements = statements.into_iter().map(|(sql, params)| Ok((self.text(sql)?, params.into_params()?)));
        self.call("batch", statements.collect::<Result<_>>().map(Work::Batch), |answer, _| answer.batch())
    }

    pub(crate) fn execute_script(&self, sql: &str) -> Call<()> {
        self.call("execute_script", self.text(sql).map(Work::Script), |answer, _| answer.done())
    }

    pub(crate) fn query(&self, sql: &(impl Text + ?Sized), params: impl IntoParams) -> Call<Rows> {
        self.call("query", self.read(sql, params, Wanted::All), |answer, _| answer.rows())
    }

    pub(crate) fn query_one(&self, sql: &(impl Text + ?Sized), params: impl IntoParams) -> Call<Option<Row<'static>>> {
        self.call("query_one", self.read(sql, params, Wanted::First), |answer, _| answer.first_row())
    }

    pub(crate) fn query_value<T: FromSql>(
        &self,
        sql: &(impl Text + ?Sized),
        params: impl IntoParams,
    ) -> Call<Option<T>> {
        self.call("query_value", self.read(sql, params, Wanted::First), |answer, _| {
            answer.rows()?.read_value().map_err(|error| error.in_operation("query_value"))
        })
    }

    pub(crate) fn query_as<T>(&self, sql: &(impl Text + ?Sized), params: impl IntoParams) -> Call<Vec<T>>
    where
        T: FromRow + Send + 'static,
    {
        let work = self.read(sql, params, Wanted::Decoded(decode_rows::<T>));
        self.call("query_as", work, |answer, _| {
            answer.decoded(Rows::read).map_err(|error| error.in_operation("query_as"))
        })
    }

    pub(crate) fn query_values<T>(&self, sql: &(impl Text + ?Sized), params: impl IntoParams) -> Call<Vec<T>>
    where
        T: FromSql + Send + 'static,
    {
        let work = self.read(sql, params, Wanted::Decoded(decode_first_column::<T>));
        self.call("query_values", work, |answer, _| {
            answer.decoded(Rows::read_first_column).map_err(|error| error.in_operation("query_values"))
        })
    }

    pub(crate) fn query_one_as<T: FromRow>(&self, sql: &(impl Text + ?Sized), params: impl IntoParams) -> Call<T> {
        self.call("query_one_as", self.read(sql, params, Wanted::First), |answer, _| {
            answer.rows()?.read_one().map_err(|error| error.in_operation("query_one_as"))
        })
    }

    pub(crate) fn query_optional_as<T: FromRow>(
        &self,
        sql: &(impl Text + ?Sized),
        params: impl IntoParams,
    ) -> Call<Option<T>> {
        self.call("query_optional_as", self.read(sql, params, Wanted::First), |answer, _| {
            answer.rows()?.read_first().map_err(|error| error.in_operation("query_optional_as"))
        })
    }

    pub(crate) fn query_json(&self, sql: &(impl Text + ?Sized), params: impl IntoParams) -> Call<String> {
        let work = self.read(sql, params, Wanted::Json(self.0.json.clone().unwrap_or_default()));
        self.call("query_json", work, |answer, _| answer.json().map_err(|error| error.in_operation("query_json")))
    }

    pub(crate) fn cursor(
        &self,
        operation: &'static str,
        sql: &(impl Text + ?Sized),
        params: impl IntoParams,
    ) -> Cursor {
        Cursor::new(&self.0.now(), operation, self.read(sql, params, Wanted::Batches))
    }

    pub(crate) fn read(&self, sql: &(impl Text + ?Sized), params: impl IntoParams, wanted: Wanted) -> Result<Work> {
        Ok(Work::Query { text: self.text(sql)?, params: params.into_params()?, wanted })
    }
}
