//! The place of a failure, and the SQL that an error shows: in a script, in the parameters, in the rows of them, or in the rows of a
//! result; and the errors of reading those as types.
//!
//! Owns: adding it to an error, shortening SQL, and recognising the key of a database in it. Runs where the failure happens.
//! Invariants: of a result the number of the row and the SQL are added where the row is known, and the first that is added stays;
//! what sets a key by SQLCipher's own means (`PRAGMA key`, ATTACH with KEY) is not shown, with some texts that do not. Leaves out: the
//! cell that does not fit (`values::convert`), and refusing SQL that sets a key (`flatwater_sql::policy`).

use std::borrow::Cow;
use std::fmt;

use super::cause::caused_by;
use super::hint::{Sentence, hint};
use super::{Error, ErrorCode, TimeoutEffect};

/// Shows the SQL around the failure of the statement that begins there, behind white space, in a script.
pub fn in_script(mut error: Error, sql: &str, statement: usize) -> Error {
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

/// Names the parameter whose value was refused: by its number, which counts from 1, or by its name in quotes.
pub fn at_parameter(error: Error, which: impl fmt::Display) -> Error {
    let message = format!("parameter {which}: {}", error.0.message);
    error.with_message(message)
}

/// Adds `bytes` to the offset, for an offset that is relative to the SQL from that byte on, or, if negative, to a text
/// that begins so many bytes earlier.
pub fn offset_by(mut error: Error, bytes: isize) -> Error {
    error.0.offset = error.0.offset.and_then(|offset| offset.checked_add_signed(bytes));
    error
}

/// The hints of the calls that need a row.
pub const OPTIONAL_ROW: &Sentence = hint!["if no row is a valid answer, use " QueryOptional];
/// The hint of a query for one row as a type.
pub const OPTIONAL_AS: &Sentence = hint!["if no row is a valid answer, use " QueryOptionalAs];
/// The hint of a query for one value.
pub const OPTIONAL_VALUE: &Sentence = hint!["if no row is a valid answer, use " QueryOptionalValue];

impl Error {
    /// Returns the error for a value of `column`, by name or position, that a type of yours refuses, in an
    /// implementation of [`FromRow`](crate::FromRow). The call that reads the rows adds the number of the row and the
    /// SQL. The text of `error` becomes part of the message, so keep the value out of it if it must not be logged.
    ///
    /// A type that implements `FromSql` returns `FromSqlError::other` instead, to the same effect.
    #[cold]
    #[must_use]
    pub fn decode(column: impl fmt::Display, error: impl std::error::Error + Send + Sync + 'static) -> Self {
        caused_by(Self::new(ErrorCode::UnreadableValue, format!("column {column}: {error}")), error)
    }

    /// Returns the number of the row that could not be read as the type asked for, counted from 0.
    #[must_use]
    pub fn row(&self) -> Option<usize> {
        self.0.row
    }
}

/// `hint` names the call that needs no row.
#[cold]
pub fn row_not_found(hint: &'static Sentence) -> Error {
    Error::new(ErrorCode::NoRow, "the query returned no row").with_hint(hint)
}

/// Of a result that cannot be made: says that its statement was executed.
#[must_use]
pub fn after_the_write(mut error: Error) -> Error {
    error.0.applied = Some(TimeoutEffect::Yes);
    let message = format!("{}; the call was executed", error.0.message);
    error.with_message(message)
}

/// Adds the number of the row that could not be read.
pub fn at_row(mut error: Error, row: usize) -> Error {
    error.0.row.get_or_insert(row);
    error
}

/// Counts so many rows before the one that could not be read.
pub fn after_rows(mut error: Error, rows: usize) -> Error {
    error.0.row = error.0.row.map(|row| row + rows);
    error
}

/// The PRAGMAs that take a key (<https://www.zetetic.net/sqlcipher/sqlcipher-api/>).
pub const KEY_PRAGMAS: [&str; 6] = ["key", "rekey", "hexkey", "hexrekey", "textkey", "textrekey"];

/// The maximum number of bytes of SQL in an error, and how many of them stand before the place of the failure.
pub(super) const SQL_SHOWN_BYTES: usize = 200;
const SQL_BEFORE_BYTES: usize = 60;

/// Returns the SQL, cut to `SQL_SHOWN_BYTES` if it is longer.
pub fn shorten(sql: &str) -> Cow<'_, str> {
    shorten_around(sql, 0)
}

/// Returns the part of the SQL around the byte `place`, with dots where something is left out.
pub(super) fn shorten_around(sql: &str, place: usize) -> Cow<'_, str> {
    let shown = without_key(sql.trim_end());
    let Cow::Borrowed(sql) = shown else { return shown };
    if sql.len() <= SQL_SHOWN_BYTES {
        return sql.into();
    }
    let is_near_begin = place <= SQL_SHOWN_BYTES - SQL_BEFORE_BYTES;
    let start = if is_near_begin { 0 } else { beginning(sql, place - SQL_BEFORE_BYTES).len() };
    let end = beginning(sql, start + SQL_SHOWN_BYTES).len();
    let dots = |is_left_out| if is_left_out { "..." } else { "" };
    format!("{}{}{}", dots(start > 0), &sql[start..end], dots(end < sql.len())).into()
}

/// Returns as many of the first bytes of the text as make whole characters.
pub fn beginning(text: &str, bytes: usize) -> &str {
    let end = (0..=bytes.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}

/// Returns the SQL, or what stands for it if it may have a key in it.
fn without_key(sql: &str) -> Cow<'_, str> {
    if has_key(sql) { "(not shown, because it has a key in it)".into() } else { sql.into() }
}

/// Looks at the words alone. Between the word PRAGMA and the name there may be that of a database, and comments.
fn has_key(sql: &str) -> bool {
    let mut words = sql.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty());
    let is_key = |word: &str| KEY_PRAGMAS.iter().any(|key| word.eq_ignore_ascii_case(key));
    match words.find(|word| ["pragma", "attach"].iter().any(|begin| word.eq_ignore_ascii_case(begin))) {
        Some(_) => words.any(is_key),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sql_that_sets_a_key_is_not_shown() {
        for sql in
            ["PRAGMA key = 's'", "pragma main . \"ReKey\"('s')", "PRAGMA/**/hexkey='73'", "ATTACH 'a' AS b KEY 's'"]
        {
            assert!(without_key(sql).starts_with("(not shown"), "{sql}");
        }
        for sql in ["PRAGMA foreign_keys = ON", "SELECT key FROM t", "INSERT INTO keys (key) VALUES (1)"] {
            assert_eq!(without_key(sql), sql);
        }
    }
}
