//! Reading one row, or one column, as a type: the calls of a database, a transaction and a prepared statement.
//!
//! Owns: their documentation and signatures. Runs on the caller's thread; no work runs here. Leaves out: making the
//! requests (`operations`), and how a row becomes a type (`values`).

use crate::call::Call;
use crate::database::Database;
use crate::prepared::Prepared;
use crate::transaction::Transaction;
use crate::values::convert::FromSql;
use crate::values::into_params::IntoParams;
use crate::values::row::FromRow;

impl Database {
    /// Runs one statement and returns its first row as a `T`. Further rows are ignored.
    ///
    /// Where no row is an answer and not an error, use [`query_optional_as`](Self::query_optional_as).
    ///
    /// # Errors
    /// As [`query`](Self::query); `RowNotFound` if there is no row; `Misuse` if the row cannot be read as a `T`. If
    /// the statement writes, its changes are committed even when this error is returned.
    pub fn query_one_as<T: FromRow>(&self, sql: &str, params: impl IntoParams) -> Call<T> {
        self.operations.query_one_as(sql, params)
    }

    /// Runs one statement and returns its first row as a `T`, or `None` if there is no row. Further rows are ignored.
    ///
    /// # Errors
    /// As [`query`](Self::query); `Misuse` if the row cannot be read as a `T`.
    pub fn query_optional_as<T: FromRow>(&self, sql: &str, params: impl IntoParams) -> Call<Option<T>> {
        self.operations.query_optional_as(sql, params)
    }

    /// Runs one statement and returns the first value of every row. Read values that may be NULL as an `Option`.
    ///
    /// More than 256 rows are read as `T` on one of the database's threads. If `T` panics, the call does.
    ///
    /// # Errors
    /// As [`query`](Self::query); `Misuse` if a value cannot be read as a `T`.
    pub fn query_values<T>(&self, sql: &str, params: impl IntoParams) -> Call<Vec<T>>
    where
        T: FromSql + Send + 'static,
    {
        self.operations.query_values(sql, params)
    }
}

impl Transaction<'_> {
    /// Runs one statement and returns its first row as a `T`. Further rows are ignored.
    ///
    /// # Errors
    /// As [`Database::query_one_as`]; `Misuse`, with the reason, if the transaction is over.
    pub fn query_one_as<T: FromRow>(&self, sql: &str, params: impl IntoParams) -> Call<T> {
        self.operations.query_one_as(sql, params)
    }

    /// Runs one statement and returns its first row as a `T`, or `None` if there is no row. Further rows are ignored.
    ///
    /// # Errors
    /// As [`Database::query_optional_as`]; `Misuse`, with the reason, if the transaction is over.
    pub fn query_optional_as<T: FromRow>(&self, sql: &str, params: impl IntoParams) -> Call<Option<T>> {
        self.operations.query_optional_as(sql, params)
    }

    /// Runs one statement and returns the first value of every row. Read values that may be NULL as an `Option`.
    ///
    /// # Errors
    /// As [`Database::query_values`]; `Misuse`, with the reason, if the transaction is over.
    pub fn query_values<T>(&self, sql: &str, params: impl IntoParams) -> Call<Vec<T>>
    where
        T: FromSql + Send + 'static,
    {
        self.operations.query_values(sql, params)
    }
}

impl Prepared {
    /// See [`Database::query_one_as`].
    pub fn query_one_as<T: FromRow>(&self, params: impl IntoParams) -> Call<T> {
        self.operations.query_one_as(&self.text, params)
    }

    /// See [`Database::query_optional_as`].
    pub fn query_optional_as<T: FromRow>(&self, params: impl IntoParams) -> Call<Option<T>> {
        self.operations.query_optional_as(&self.text, params)
    }

    /// See [`Database::query_values`].
    pub fn query_values<T>(&self, params: impl IntoParams) -> Call<Vec<T>>
    where
        T: FromSql + Send + 'static,
    {
        self.operations.query_values(&self.text, params)
    }
}
