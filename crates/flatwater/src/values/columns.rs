//! The columns of a result: their names, and what they were declared as.
//!
//! Owns: `Column`, and the form in which all results of a prepared statement share its columns. Runs on any thread.
//! Invariant: there is a source for each name. Leaves out: reading them from SQLite, which floor 0 does.

use std::ops::Deref;
use std::sync::Arc;

use flatwater_sqlite::{ColumnOrigin, ColumnSource};

/// The columns of a result, shared by all its rows and by later results of the same prepared statement. A slice of
/// their names.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names(Arc<Columns>);

#[derive(Debug, Default)]
struct Columns {
    names: Box<[Box<str>]>,
    sources: Box<[ColumnSource]>,
}

impl Names {
    pub(crate) fn new(names: Vec<Box<str>>, sources: Vec<ColumnSource>) -> Self {
        Self(Arc::new(Columns { names: names.into(), sources: sources.into() }))
    }

    /// The column at `index`.
    pub(crate) fn column(&self, index: usize) -> Column<'_> {
        Column { name: &self.0.names[index], source: &self.0.sources[index] }
    }
}

impl Deref for Names {
    type Target = [Box<str>];

    fn deref(&self) -> &[Box<str>] {
        &self.0.names
    }
}

/// Results are equal if their names and values are.
impl PartialEq for Names {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
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
    /// The name: what stands behind AS. Without AS, SQLite chooses it.
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
