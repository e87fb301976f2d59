//! The columns of a result: their names, what they were declared as, and finding one by position or name.
//!
//! Owns: the names, with the SQL they are of, their sources, and the lookup. Pure, on any thread. Invariants: there is a
//! source for each name; a name that stands there exactly is found before one that differs in case. Leaves out: reading
//! them from SQLite, which floor 0 does; finding all columns of a type (`from_row`).

use std::ops::Deref;
use std::sync::Arc;

use flatwater_sqlite::{ColumnOrigin, ColumnSource};

use crate::error::{Error, Result};

/// What a result shares with all its rows, and with later results of the same prepared statement.
pub(crate) type Names = Arc<ColumnNames>;

/// The column names of a result, and the SQL that it is of.
#[derive(Debug, Default)]
pub(crate) struct ColumnNames {
    names: Box<[Box<str>]>,
    sources: Box<[ColumnSource]>,
    pub(super) sql: Arc<str>,
}

impl ColumnNames {
    pub(crate) fn new(names: Vec<Box<str>>, sources: Vec<ColumnSource>, sql: Arc<str>) -> Names {
        Arc::new(Self { names: names.into(), sources: sources.into(), sql })
    }

    /// What the columns were declared as, in order.
    pub(crate) fn sources(&self) -> &[ColumnSource] {
        &self.sources
    }

    /// The column at `index`.
    pub(crate) fn column(&self, index: usize) -> Column<'_> {
        Column { name: &self.names[index], source: &self.sources[index] }
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

/// One column of a result: its name, and what it was declared as.
///
/// The origin of a column is known with the bundled SQLite, and with feature `column_metadata` if another one is linked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column<'a> {
    name: &'a str,
    source: &'a ColumnSource,
}

impl<'a> Column<'a> {
    /// The name given with AS. Without AS, SQLite chooses it.
    #[must_use]
    pub fn name(&self) -> &'a str {
        self.name
    }

    /// The type in the table's definition, as it is written there. `None` for an expression, and for a column that was
    /// declared without a type. SQLite stores values of any type in a column, unless the table is STRICT.
    #[must_use]
    pub fn decl_type(&self) -> Option<&'a str> {
        self.source.declared_type.as_deref()
    }

    /// The database that the column comes from: `main`, `temp`, or the name of an attached one. `None` for an
    /// expression.
    #[must_use]
    pub fn database_name(&self) -> Option<&'a str> {
        self.origin().map(|origin| &*origin.database)
    }

    /// The table that the column comes from, without its alias; also if the column comes through a view or a subquery.
    /// `None` for an expression.
    #[must_use]
    pub fn table_name(&self) -> Option<&'a str> {
        self.origin().map(|origin| &*origin.table)
    }

    /// The name of the column in its table. `None` for an expression.
    #[must_use]
    pub fn origin_name(&self) -> Option<&'a str> {
        self.origin().map(|origin| &*origin.column)
    }

    fn origin(&self) -> Option<&'a ColumnOrigin> {
        self.source.origin.as_ref()
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

#[cold]
fn no_column(position: usize, names: &[Box<str>]) -> Error {
    Error::misuse(format!("there is no column {position}: the result has {} column(s)", names.len()))
}

impl ColumnIndex for usize {
    #[inline]
    fn position(&self, names: &[Box<str>]) -> Result<usize> {
        if *self < names.len() { Ok(*self) } else { Err(no_column(*self, names)) }
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
