//! The place of a failure: in a script, in the parameters, in the rows of them, or in the rows of a result; and the
//! errors of reading those as types.
//!
//! Owns: adding it to an error. Runs where the failure happens. Invariant: of a result the number of the row and the
//! SQL are added where the row is known, and the first that is added stays. Leaves out: the cell that does not fit
//! (`values::mismatch`).

use std::fmt;

use super::hint::{Sentence, hint};
use super::{Error, ErrorKind};

/// Shows the SQL around the failure of the statement that begins there, behind white space, in a script.
#[must_use]
pub(crate) fn in_script(mut error: Error, sql: &str, statement: usize) -> Error {
    let blank = sql[statement..].len() - sql[statement..].trim_start().len();
    error.0.offset = Some(error.0.offset.map_or(statement + blank, |offset| statement + offset));
    error.0.sql = None;
    error.with_sql(sql)
}

/// Names the row of `execute_many` that failed.
#[must_use]
pub fn in_row(error: Error, row: usize) -> Error {
    let message = format!("row {row}, counted from 0: {}", error.0.message);
    error.with_message(message)
}

/// Names the parameter whose value was refused, by its number, which counts from 1.
#[must_use]
pub(crate) fn at_parameter(error: Error, number: usize) -> Error {
    let message = format!("parameter {number}: {}", error.0.message);
    error.with_message(message)
}

/// Names the parameter whose value was refused.
#[must_use]
pub(crate) fn at_named(error: Error, name: &str) -> Error {
    let message = format!("parameter {name:?}: {}", error.0.message);
    error.with_message(message)
}

/// Adds `bytes` to the offset, for an offset that is relative to the SQL from that byte on, or, if negative, to a text
/// that begins so many bytes earlier.
#[must_use]
pub(crate) fn offset_by(mut error: Error, bytes: isize) -> Error {
    error.0.offset = error.0.offset.and_then(|offset| offset.checked_add_signed(bytes));
    error
}

/// The hints of the calls that need a row.
pub(crate) const OPTIONAL_ROW: &Sentence = hint!["if no row is a valid answer, use " QueryOptional];
pub(crate) const OPTIONAL_AS: &Sentence = hint!["if no row is a valid answer, use " QueryOptionalAs];
pub(crate) const OPTIONAL_VALUE: &Sentence = hint!["if no row is a valid answer, use " QueryOptionalValue];

impl Error {
    /// Returns the error for a value of `column`, by name or position, that a type of yours refuses, in an
    /// implementation of [`FromRow`](crate::FromRow). The call that reads the rows adds the number of the row and the
    /// SQL. The text of `error` becomes part of the message, so keep the value out of it if it must not be logged.
    ///
    /// A type that implements `FromSql` returns `FromSqlError::other` instead, to the same effect.
    #[cold]
    #[must_use]
    pub fn decode(column: impl fmt::Display, error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::misuse(format!("column {column}: {error}")).caused_by(error)
    }

    /// Returns the number of the row that could not be read as the type asked for, counted from 0.
    #[must_use]
    pub fn row(&self) -> Option<usize> {
        self.0.row
    }
}

/// `hint` names the call that needs no row.
#[cold]
pub(crate) fn row_not_found(hint: &'static Sentence) -> Error {
    Error::new(ErrorKind::RowNotFound, "the query returned no row").with_hint(hint)
}

/// Adds the number of the row that could not be read.
#[must_use]
pub(crate) fn at_row(mut error: Error, row: usize) -> Error {
    error.0.row.get_or_insert(row);
    error
}

/// Counts so many rows before the one that could not be read.
#[must_use]
pub(crate) fn after_rows(mut error: Error, rows: usize) -> Error {
    error.0.row = error.0.row.map(|row| row + rows);
    error
}
