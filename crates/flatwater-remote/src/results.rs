//! The results of statements, whichever server they are of.
//!
//! Owns: their form, and the rows of a caller that are made of them. Pure. Invariant: rows fit their columns, or there are none.
//! Leaves out: reading them from an answer (`rqlite`, `libsql`).

use flatwater::bindings::server::{RowsRead, sqlite_error};
use flatwater::{Error, Rows, Value, ValueRef};

use crate::messages::code_of;

/// The name of each column, and the type that it was declared with.
pub(crate) type Columns = Vec<(Box<str>, Option<Box<str>>)>;

/// The result of one statement.
pub(crate) enum StatementResult {
    Failed(Failure),
    Rows {
        columns: Columns,
        values: Vec<Vec<RowValue>>,
    },
    /// A statement without rows. What it changed is asked with another statement.
    Done,
}

/// A value of a row.
pub(crate) enum RowValue {
    Whole(Value),
    /// A text whose bytes are no UTF-8, or a BLOB that came as one: the server has replaced some of them, and nobody can tell which.
    Torn(Vec<u8>),
}

impl RowValue {
    pub(crate) fn integer(&self) -> Option<i64> {
        if let Self::Whole(Value::Integer(value)) = self { Some(*value) } else { None }
    }
}

/// What SQLite has said.
pub(crate) struct Failure {
    pub(crate) message: String,
    pub(crate) code: i32,
    /// Where in the SQL, if the server tells.
    pub(crate) offset: Option<usize>,
}

impl Failure {
    /// Of a server that tells the message alone.
    pub(crate) fn of_message(message: String) -> Self {
        Self { code: code_of(&message), message, offset: None }
    }

    pub(crate) fn error(&self) -> Error {
        sqlite_error(self.code, &self.message, self.offset)
    }
}

/// Returns the rows of a result, or `None` if they do not fit its columns.
pub(crate) fn rows(sql: &str, columns: Columns, values: &[Vec<RowValue>], is_of_write: bool) -> Option<Rows> {
    let width = columns.len();
    let mut rows = RowsRead::new(sql, columns, is_of_write);
    for row in values {
        if row.len() != width {
            return None;
        }
        row.iter().for_each(|value| {
            rows.push(match value {
                RowValue::Whole(value) => value.into(),
                RowValue::Torn(bytes) => ValueRef::Text(bytes),
            });
        });
    }
    rows.finish()
}
