//! The rows of a result as values of the caller's type, made on a thread of the database.
//!
//! Owns: carrying them to the caller, which knows the type. Runs the caller's code, on the thread that calls `Decode`.
//! Invariant: a panic of that code goes on in the caller. Leaves out: on which thread it runs.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use super::convert::FromSql;
use super::from_row::FromRow;
use super::row::Rows;
use crate::error::{Error, Result};

/// Makes the rows values of a type.
pub(crate) type Decode = fn(Rows) -> Decoded;

/// The values, or a panic of the code that made them.
pub(crate) struct Decoded(Box<dyn Any + Send>);

/// What is in the box.
type Values<T> = std::thread::Result<Result<Vec<T>>>;

/// Reads every row.
pub(crate) fn decode_rows<T: FromRow + Send + 'static>(rows: Rows) -> Decoded {
    decode(|| rows.read::<T>())
}

/// Reads every row of a result that others may read too.
pub(crate) fn decode_shared<T: FromRow + Send + 'static>(rows: &Rows) -> Decoded {
    decode(|| rows.read::<T>())
}

/// Reads the first column of every row.
pub(crate) fn decode_first_column<T: FromSql + Send + 'static>(rows: Rows) -> Decoded {
    decode(|| rows.read_first_column::<T>())
}

fn decode<T: Send + 'static>(read: impl FnOnce() -> Result<Vec<T>>) -> Decoded {
    let values: Values<T> = catch_unwind(AssertUnwindSafe(read));
    Decoded(Box::new(values))
}

impl Decoded {
    /// Returns the values. Panics as the code that made them did.
    pub(crate) fn get<T: 'static>(self) -> Result<Vec<T>> {
        match self.0.downcast::<Values<T>>().map(|values| *values) {
            Ok(Ok(values)) => values,
            Ok(Err(panic)) => resume_unwind(panic),
            Err(_) => Err(Error::misuse("a worker returned values of another type than requested; please report it")),
        }
    }
}
