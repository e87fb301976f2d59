//! The columns of a result: their names, what they were declared as, and finding one by position or name.
//!
//! Owns: the names, with the SQL they are of, their sources, and the lookup. Pure, on any thread. Invariants: there is a
//! source for each name; a name that stands there exactly is found before one that differs in case, and in a time that does
//! not grow with their number. Leaves out: reading
//! them from SQLite, which `flatwater-sqlite` does; finding all columns of a type (`from_row`).

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use flatwater_sqlite::{ColumnOrigin, ColumnSource};

use crate::error::{Error, ErrorCode, Result};
use crate::growth_counter::step;

/// What a result shares with all its rows, and with later results of the same prepared statement.
pub type Names = Arc<ColumnNames>;

/// The column names of a result, and the SQL that it is of.
#[derive(Debug, Default)]
pub struct ColumnNames {
    names: Box<[Box<str>]>,
    sources: Box<[ColumnSource]>,
    /// The SQL of the statement.
    pub sql: Arc<str>,
    /// The statement changes the database, so by the time its rows are read it has.
    pub is_of_write: bool,
    /// Made when a column of many is first looked up by name.
    positions: OnceLock<Positions>,
}

/// The first position of each name.
#[derive(Debug, Default)]
struct Positions {
    exact: HashMap<Box<str>, usize>,
    /// In lower case.
    lower: HashMap<Box<str>, usize>,
}

/// So few names are compared one by one.
const FEW: usize = 16;

impl ColumnNames {
    /// Makes those of a statement that only reads.
    pub fn new(names: Vec<Box<str>>, sources: Vec<ColumnSource>, sql: Arc<str>) -> Names {
        Self::of(names, sources, sql, false)
    }

    /// As [`Self::new`], and says whether the statement changes the database.
    pub fn of(names: Vec<Box<str>>, sources: Vec<ColumnSource>, sql: Arc<str>, is_of_write: bool) -> Names {
        Arc::new(Self { names: names.into(), sources: sources.into(), sql, is_of_write, positions: OnceLock::new() })
    }

    /// Returns the position of the column.
    #[inline]
    pub fn find(&self, column: impl ColumnIndex) -> Result<usize> {
        match column.name().filter(|_| self.names.len() > FEW) {
            Some(name) => self.find_name(name).ok_or_else(|| no_name(name, &self.names)),
            None => column.position(&self.names),
        }
    }

    /// Returns the position of the column of this name; if there is none, of one whose name differs in case only.
    pub fn find_name(&self, name: &str) -> Option<usize> {
        if self.names.len() <= FEW {
            return position(name, &self.names);
        }
        let positions = self.positions.get_or_init(|| Positions::of(&self.names));
        step(1);
        let exact = positions.exact.get(name);
        exact.or_else(|| positions.lower.get(&*name.to_ascii_lowercase())).copied()
    }

    /// What the columns were declared as, in order.
    pub fn sources(&self) -> &[ColumnSource] {
        &self.sources
    }

    /// The column at `index`.
    pub fn column(&self, index: usize) -> Column<'_> {
        Column { name: &self.names[index], source: &self.sources[index] }
    }
}

impl Positions {
    fn of(names: &[Box<str>]) -> Self {
        let mut positions = Self::default();
        for (position, name) in names.iter().enumerate() {
            step(1);
            positions.exact.entry(name.clone()).or_insert(position);
            positions.lower.entry(name.to_ascii_lowercase().into()).or_insert(position);
        }
        positions
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

    /// Returns the name, if it is one: it is then found in many without comparing it with each.
    #[doc(hidden)]
    fn name(&self) -> Option<&str> {
        None
    }
}

#[cold]
fn no_column(position: usize, names: &[Box<str>]) -> Error {
    Error::new(
        ErrorCode::NoSuchColumn,
        format!("there is no column {position}: the result has {} column(s)", names.len()),
    )
}

#[cold]
fn no_name(name: &str, names: &[Box<str>]) -> Error {
    Error::new(
        ErrorCode::NoSuchColumn,
        format!("there is no column named {name:?}; the result has {}", names.join(", ")),
    )
}

impl ColumnIndex for usize {
    #[inline]
    fn position(&self, names: &[Box<str>]) -> Result<usize> {
        if *self < names.len() { Ok(*self) } else { Err(no_column(*self, names)) }
    }
}

impl ColumnIndex for &str {
    fn position(&self, names: &[Box<str>]) -> Result<usize> {
        position(self, names).ok_or_else(|| no_name(self, names))
    }

    fn name(&self) -> Option<&str> {
        Some(self)
    }
}

fn position(name: &str, names: &[Box<str>]) -> Option<usize> {
    let exact = names.iter().position(|known| **known == *name);
    exact.or_else(|| names.iter().position(|known| known.eq_ignore_ascii_case(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_the_same_way_in_few_and_in_many() {
        for others in [0, 100] {
            let names: Vec<Box<str>> = ["a", "B", "b", "a", "\u{c4}"].map(Into::into).into();
            let names = names.into_iter().chain((0..others).map(|number| format!("c{number}").into())).collect();
            let names = ColumnNames::new(names, Vec::new(), "".into());
            let found = ["a", "A", "b", "B", "\u{c4}", "\u{e4}", "c100"].map(|name| names.find(name).ok());
            assert_eq!(found, [Some(0), Some(0), Some(2), Some(1), Some(4), None, None], "{others}");
            assert_eq!(names.find("x"), "x".position(&names));
            assert_eq!((names.find(1).unwrap(), names.find(500)), (1, 500.position(&names)));
        }
    }
}
