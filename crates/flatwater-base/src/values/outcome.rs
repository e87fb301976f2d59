//! Results that are no rows: what a write has changed, the values that rows were read as on another thread, and JSON.
//!
//! Owns: their fields, reading rows for a caller, and the text of a document. Runs on any thread; many rows are read on a worker.
//! Invariants: a panic of the code that reads a row reaches the caller and nobody else; the thread that drops a large document is not
//! held by that. Leaves out: filling them (`connection::run`), and writing JSON, which a sink does.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use super::block::LARGE;
use super::convert::FromSql;
use super::from_row::FromRow;
use super::row::Rows;
use crate::error::{Error, ErrorCode, Result};
use crate::thread::background::dispose;

/// The changes that one statement made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
#[non_exhaustive]
pub struct ExecuteResult {
    /// Rows inserted, updated or deleted by the statement itself, not by its triggers; 0 for a statement that is not an
    /// INSERT, UPDATE or DELETE (<https://sqlite.org/c3ref/changes.html>).
    pub changes: u64,
    /// The rowid of the last row this statement inserted; `None` if it inserted none, or into a table without rowids.
    pub last_insert_rowid: Option<i64>,
}

/// What one statement did, whatever it is.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct RunResult {
    /// As [`ExecuteResult::changes`].
    pub changes: u64,
    /// As [`ExecuteResult::last_insert_rowid`].
    pub last_insert_rowid: Option<i64>,
    /// The rows, with the names of their columns, if the statement returns rows; there may be none.
    pub rows: Option<Rows>,
}

impl ExecuteResult {
    /// Makes one.
    #[doc(hidden)]
    pub fn of(changes: u64, last_insert_rowid: Option<i64>) -> Self {
        Self { changes, last_insert_rowid }
    }
}

impl RunResult {
    /// Makes one.
    #[doc(hidden)]
    pub fn of(executed: ExecuteResult, rows: Option<Rows>) -> Self {
        Self { changes: executed.changes, last_insert_rowid: executed.last_insert_rowid, rows }
    }
}

/// Makes the rows values of a type.
pub type Decode = fn(&Rows) -> Decoded;

/// The values, or a panic of the code that made them.
pub struct Decoded(Box<dyn Any + Send>);

/// What is in the box.
type Values<T> = std::thread::Result<Result<Vec<T>>>;

/// Reads every row.
pub fn decode_rows<T: FromRow + Send + 'static>(rows: &Rows) -> Decoded {
    decode(|| rows.read::<T>())
}

/// Reads the first column of every row.
pub fn decode_first_column<T: FromSql + Send + 'static>(rows: &Rows) -> Decoded {
    decode(|| rows.read_first_column::<T>())
}

fn decode<T: Send + 'static>(read: impl FnOnce() -> Result<Vec<T>>) -> Decoded {
    let values: Values<T> = catch_unwind(AssertUnwindSafe(read));
    Decoded(Box::new(values))
}

impl Decoded {
    /// Returns the values. Panics as the code that made them did.
    pub fn get<T: 'static>(self) -> Result<Vec<T>> {
        match self.0.downcast::<Values<T>>().map(|values| *values) {
            Ok(Ok(values)) => values,
            Ok(Err(panic)) => resume_unwind(panic),
            Err(_) => Err(Error::new(
                ErrorCode::Internal,
                "a worker returned values of another type than requested; please report it",
            )),
        }
    }
}

/// A JSON document.
#[derive(Debug)]
pub struct Document {
    /// The JSON.
    pub text: String,
    /// How many rows it has.
    pub rows: usize,
}

impl Document {
    /// Creates an empty document with capacity for so many bytes.
    pub fn with_room(bytes: usize) -> Self {
        Self { text: String::with_capacity(bytes), rows: 0 }
    }

    /// Returns the text, which is the caller's to drop.
    pub fn into_text(mut self) -> String {
        std::mem::take(&mut self.text)
    }
}

impl Drop for Document {
    fn drop(&mut self) {
        if self.text.capacity() > LARGE {
            dispose(std::mem::take(&mut self.text));
        }
    }
}
