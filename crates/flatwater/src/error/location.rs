//! The place of a failure in a script, in the parameters, or in the rows of them.
//!
//! Owns: adding it to an error. Runs where the failure happens. Leaves out: the rows of a result (`of_rows`).

use super::Error;

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
