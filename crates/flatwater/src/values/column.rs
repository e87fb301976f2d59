//! The columns of a result: their names, and finding one by position or name.
//!
//! Owns: the names, with the SQL they are of, and the lookup. Pure, on any thread. Invariant: a name that stands there
//! exactly is found before one that differs in case. Leaves out: finding all columns of a type (`from_row`).

use std::ops::Deref;
use std::sync::Arc;

use crate::error::{Error, Result};

/// What a result shares with all its rows, and with later results of the same text.
pub(crate) type Names = Arc<ColumnNames>;

/// The column names of a result, and the SQL that it is of.
#[derive(Debug, Default)]
pub(crate) struct ColumnNames {
    names: Box<[Box<str>]>,
    pub(super) sql: Arc<str>,
}

impl ColumnNames {
    pub(crate) fn new(names: Vec<Box<str>>, sql: Arc<str>) -> Names {
        Arc::new(Self { names: names.into(), sql })
    }
}

impl Deref for ColumnNames {
    type Target = [Box<str>];

    fn deref(&self) -> &Self::Target {
        &self.names
    }
}

/// Results of different texts are equal if their names and values are.
impl PartialEq for ColumnNames {
    fn eq(&self, other: &Self) -> bool {
        self.names == other.names
    }
}

/// A column's position from 0, or its name.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not name a column",
    label = "expected a `usize` or a `&str`",
    note = "a column is named by its position from 0, a `usize`, or by its name, a `&str`"
)]
pub trait ColumnIndex {
    /// Returns the position of the column in `names`.
    ///
    /// # Errors
    /// `Misuse` if there is no such column.
    fn position(&self, names: &[Box<str>]) -> Result<usize>;
}

impl ColumnIndex for usize {
    fn position(&self, names: &[Box<str>]) -> Result<usize> {
        if *self < names.len() {
            return Ok(*self);
        }
        Err(Error::misuse(format!("there is no column {self}: the result has {} column(s)", names.len())))
    }
}

impl ColumnIndex for &str {
    fn position(&self, names: &[Box<str>]) -> Result<usize> {
        let exact = names.iter().position(|name| **name == **self);
        exact.or_else(|| names.iter().position(|name| name.eq_ignore_ascii_case(self))).ok_or_else(|| {
            Error::misuse(format!("there is no column named {self:?}; the result has {}", names.join(", ")))
        })
    }
}
