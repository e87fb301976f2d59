//! Results: one flat row-major block of cells with a shared schema, and rows as views into it.
//!
//! Owns: `Rows`, `Row` and reading them as Rust types. Runs on the caller's thread. Invariant: the block has a cell for
//! each column of each row. Leaves out: filling the block, which a sink does.

use std::sync::Arc;

use rusqlite::types::{FromSql, FromSqlError, Type, ValueRef};

use super::block::Block;
use super::columns::{Column, Names};
use crate::error::{Error, Result};

/// The rows of one query, in order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Rows {
    pub(crate) names: Names,
    pub(crate) block: Block,
}

impl Rows {
    /// The number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.block.cells().checked_div(self.names.len()).unwrap_or(0)
    }

    /// Returns true if there is no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.block.cells() == 0
    }

    /// The column names, in order. Two columns may have the same name.
    pub fn columns(&self) -> impl ExactSizeIterator<Item = &str> {
        self.names.iter().map(|name| &**name)
    }

    /// Returns a column, by position from 0 or by name: its name, its declared type, and where it comes from.
    ///
    /// # Errors
    /// `Misuse` if there is no such column.
    pub fn column(&self, column: impl ColumnIndex) -> Result<Column<'_>> {
        Ok(self.names.column(column.position(&self.names)?))
    }

    /// The row at `index`.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<Row<'_>> {
        (index < self.len()).then_some(Row { rows: Source::Borrowed(self), index })
    }

    /// The rows in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Row<'_>> {
        (0..self.len()).map(|index| Row { rows: Source::Borrowed(self), index })
    }

    /// Converts every row to a `T`.
    ///
    /// # Errors
    /// `Misuse` that names the column whose value does not fit.
    pub fn read<T: FromRow>(&self) -> Result<Vec<T>> {
        self.iter().map(|row| T::from_row(&row)).collect()
    }

    /// Returns the first row, detached from the others.
    pub(crate) fn into_first(self) -> Option<Row<'static>> {
        (!self.is_empty()).then(|| Row { rows: Source::Owned(Box::new(self)), index: 0 })
    }

    fn value(&self, row: usize, column: usize) -> ValueRef<'_> {
        self.block.value(row * self.names.len() + column)
    }
}

/// One row: a view into its [`Rows`], or the single row of a `query_one`.
#[derive(Debug, Clone)]
pub struct Row<'a> {
    rows: Source<'a>,
    index: usize,
}

#[derive(Debug, Clone)]
enum Source<'a> {
    Borrowed(&'a Rows),
    Owned(Box<Rows>),
    Shared(Arc<Rows>),
}

impl<'a> Row<'a> {
    /// The row of a batch at an index that the batch has.
    pub(crate) fn of(batch: &'a Rows, index: usize) -> Self {
        Row { rows: Source::Borrowed(batch), index }
    }

    /// The same, which keeps the batch in memory.
    pub(crate) fn of_batch(batch: &Arc<Rows>, index: usize) -> Self {
        Row { rows: Source::Shared(batch.clone()), index }
    }
}

impl Row<'_> {
    fn rows(&self) -> &Rows {
        match &self.rows {
            Source::Borrowed(rows) => rows,
            Source::Owned(rows) => rows,
            Source::Shared(rows) => rows,
        }
    }

    /// The number of columns.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows().names.len()
    }

    /// Returns true if the row has no column, which never happens in a result of SQLite.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The column names, in order.
    pub fn columns(&self) -> impl ExactSizeIterator<Item = &str> {
        self.rows().columns()
    }

    /// Returns a column, as [`Rows::column`] does.
    ///
    /// # Errors
    /// `Misuse` if there is no such column.
    pub fn column(&self, column: impl ColumnIndex) -> Result<Column<'_>> {
        self.rows().column(column)
    }

    /// The values of the row as SQLite stores them, in the order of the columns.
    pub fn values(&self) -> impl ExactSizeIterator<Item = ValueRef<'_>> {
        let rows = self.rows();
        (0..rows.names.len()).map(|column| rows.value(self.index, column))
    }

    /// Returns the value of a column, by position from 0 or by name, as a `T`.
    ///
    /// # Errors
    /// `Misuse` if there is no such column, or if its value is not a `T`.
    pub fn get<T: FromSql>(&self, column: impl ColumnIndex) -> Result<T> {
        let rows = self.rows();
        let column = column.position(&rows.names)?;
        let value = rows.value(self.index, column);
        T::column_result(value).map_err(|error| mismatch(&rows.names[column], column, &error, value.data_type()))
    }

    /// Returns the value of a column as SQLite stores it.
    ///
    /// # Errors
    /// `Misuse` if there is no such column.
    pub fn value(&self, column: impl ColumnIndex) -> Result<ValueRef<'_>> {
        let rows = self.rows();
        Ok(rows.value(self.index, column.position(&rows.names)?))
    }

    /// Converts the whole row to a `T`, such as a tuple.
    ///
    /// # Errors
    /// `Misuse` that names the column whose value does not fit.
    pub fn read<T: FromRow>(&self) -> Result<T> {
        T::from_row(self)
    }
}

#[cold]
fn mismatch(name: &str, column: usize, error: &FromSqlError, found: Type) -> Error {
    let error = match error {
        FromSqlError::InvalidType => format!("its {found} value is of another type than was asked for"),
        // The number itself is the database's content and stays out of errors.
        FromSqlError::OutOfRange(_) => "its INTEGER does not fit into the type that was asked for".to_owned(),
        other => other.to_string(),
    };
    let hint =
        if found == Type::Null { "read a column that may be NULL as an Option" } else { "check the column's type" };
    Error::misuse(format!("column {column} ({name}): {error}")).with_hint(hint)
}

/// A column's position from 0, or its name.
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

/// A type that can be read from a row. Implemented for tuples of up to 16 [`FromSql`] values, which need as many
/// columns.
pub trait FromRow: Sized {
    /// Reads a value of this type from the row.
    ///
    /// # Errors
    /// `Misuse` that names the column whose value does not fit.
    fn from_row(row: &Row<'_>) -> Result<Self>;
}

macro_rules! tuples {
    ($count:literal $($name:ident $position:tt)+) => {
        impl<$($name: FromSql),+> FromRow for ($($name,)+) {
            fn from_row(row: &Row<'_>) -> Result<Self> {
                if row.len() != $count {
                    return Err(Error::misuse(format!(
                        "the result has {} column(s) and is read as {}", row.len(), $count
                    )));
                }
                Ok(($(row.get::<$name>($position)?,)+))
            }
        }
    };
}

tuples!(1 A 0);
tuples!(2 A 0 B 1);
tuples!(3 A 0 B 1 C 2);
tuples!(4 A 0 B 1 C 2 D 3);
tuples!(5 A 0 B 1 C 2 D 3 E 4);
tuples!(6 A 0 B 1 C 2 D 3 E 4 F 5);
tuples!(7 A 0 B 1 C 2 D 3 E 4 F 5 G 6);
tuples!(8 A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7);
tuples!(9 A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8);
tuples!(10 A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8 J 9);
tuples!(11 A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8 J 9 K 10);
tuples!(12 A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8 J 9 K 10 L 11);
tuples!(13 A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8 J 9 K 10 L 11 M 12);
tuples!(14 A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8 J 9 K 10 L 11 M 12 N 13);
tuples!(15 A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8 J 9 K 10 L 11 M 12 N 13 O 14);
tuples!(16 A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8 J 9 K 10 L 11 M 12 N 13 O 14 P 15);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;

    fn rows() -> Rows {
        let mut block = Block::default();
        block.integer(1);
        block.text(b"Ada");
        block.integer(300);
        block.null();
        let sources = vec![flatwater_sqlite::ColumnSource::default(); 2];
        Rows { names: Names::new(["id", "name"].map(Box::from).to_vec(), sources), block }
    }

    #[test]
    fn rows_are_read_by_position_by_name_and_as_tuples() {
        let rows = rows();
        assert_eq!(rows.len(), 2);
        assert_eq!(rows.get(0).unwrap().get::<String>("NAME").unwrap(), "Ada");
        let all: Vec<(i64, Option<String>)> = rows.read().unwrap();
        assert_eq!(all, [(1, Some("Ada".to_owned())), (300, None)]);
        assert!(rows.get(2).is_none());
        let first = rows.get(0).unwrap();
        assert_eq!(first.values().collect::<Vec<_>>(), [ValueRef::Integer(1), ValueRef::Text(b"Ada")]);
        assert_eq!(first.column("NAME").unwrap().name(), "name");
        assert!(rows.column(2).unwrap_err().message().contains("2 column(s)"));
    }

    #[test]
    fn a_value_that_does_not_fit_names_its_column_and_not_itself() {
        let rows = rows();
        let error = rows.get(1).unwrap().get::<u8>(0).unwrap_err();
        assert_eq!(error.kind(), Kind::Misuse);
        assert!(error.message().contains("column 0 (id)") && !error.message().contains("300"), "{error}");
        assert!(rows.get(1).unwrap().get::<String>(1).unwrap_err().hint().unwrap().contains("Option"));
        assert!(rows.get(0).unwrap().get::<i64>("age").unwrap_err().message().contains("id, name"));
        assert!(rows.read::<(i64,)>().unwrap_err().message().contains("2 column(s)"));
    }
}
