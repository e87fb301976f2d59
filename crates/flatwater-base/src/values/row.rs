//! Results: one flat row-major block of cells with a shared schema, and rows as views into it.
//!
//! Owns: `Rows`, `Row`, their cells, and iterating over rows, by reference or owned. Runs on the caller's thread. Invariants: the block
//! has a cell for each column of each row; an owned row keeps the whole result alive. Leaves out: filling the block, which a sink
//! does; reading whole rows as a type (`from_row`).

use std::ops::Range;
use std::sync::Arc;

use rusqlite::types::ValueRef;

use super::block::Block;
use super::column::{Column, ColumnIndex, ColumnNames, Names};
use super::convert::{FromSql, mismatch};
use crate::error::location::at_row;
use crate::error::{Error, Result};

/// The rows of one query, in order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Rows {
    #[doc(hidden)]
    pub names: Names,
    #[doc(hidden)]
    pub block: Block,
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

    /// Returns true if comparing it with another result takes microseconds, whatever that other one is.
    #[doc(hidden)]
    pub fn is_small(&self) -> bool {
        self.block.cells() <= 1024 && self.block.bytes() <= 64 << 10
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
        Ok(self.names.column(self.names.find(column)?))
    }

    /// The row at `index`.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<Row<'_>> {
        (index < self.len()).then_some(Row { rows: Source::Borrowed(self), index })
    }

    /// Returns the first row, detached from the others.
    #[doc(hidden)]
    pub fn into_first(self) -> Option<Row<'static>> {
        self.into_iter().next()
    }

    #[inline]
    #[doc(hidden)]
    pub fn value(&self, row: usize, column: usize) -> ValueRef<'_> {
        self.block.value(row * self.names.len() + column)
    }

    /// The values of a row that there is.
    #[inline]
    #[doc(hidden)]
    pub fn values(&self, row: usize) -> impl ExactSizeIterator<Item = ValueRef<'_>> {
        let width = self.names.len();
        self.block.values(row * width..(row + 1) * width)
    }

    /// Adds the SQL to an error.
    #[doc(hidden)]
    pub fn explain(&self, error: Error) -> Error {
        if self.names.sql.is_empty() { error } else { error.with_sql(&self.names.sql) }
    }

    /// The rows in order.
    #[must_use]
    pub fn iter(&self) -> RowIter<'_> {
        RowIter::new(Source::Borrowed(self), self.len())
    }
}

/// One row: a view into its [`Rows`], or a row that owns them, such as the one of a `query_one`.
#[derive(Debug, Clone)]
pub struct Row<'a> {
    pub(super) rows: Source<'a>,
    pub(super) index: usize,
}

/// Where the row is.
#[derive(Debug, Clone)]
pub(super) enum Source<'a> {
    Borrowed(&'a Rows),
    Shared(Arc<Rows>),
}

impl<'a> Row<'a> {
    /// The row of a batch at an index that the batch has.
    #[doc(hidden)]
    pub fn of(batch: &'a Rows, index: usize) -> Self {
        Row { rows: Source::Borrowed(batch), index }
    }

    /// The same, which keeps the batch in memory.
    #[doc(hidden)]
    pub fn of_batch(batch: &Arc<Rows>, index: usize) -> Self {
        Row { rows: Source::Shared(batch.clone()), index }
    }
}

impl Row<'_> {
    pub(super) fn rows(&self) -> &Rows {
        match &self.rows {
            Source::Borrowed(rows) => rows,
            Source::Shared(rows) => rows,
        }
    }

    #[doc(hidden)]
    pub fn names(&self) -> &ColumnNames {
        &self.rows().names
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
        self.rows().values(self.index)
    }

    /// Returns the value of a column, by position from 0 or by name, as a `T`.
    ///
    /// # Errors
    /// `Misuse` if there is no such column; `Decode` if its value is not a `T`. It names the column, the row and both types.
    pub fn get<T: FromSql>(&self, column: impl ColumnIndex) -> Result<T> {
        self.at(self.position(column)?)
    }

    /// Returns the value of a column as SQLite stores it.
    ///
    /// # Errors
    /// `Misuse` if there is no such column.
    pub fn value(&self, column: impl ColumnIndex) -> Result<ValueRef<'_>> {
        Ok(self.rows().value(self.index, self.position(column)?))
    }

    #[inline]
    fn position(&self, column: impl ColumnIndex) -> Result<usize> {
        self.names().find(column).map_err(|error| self.rows().explain(error))
    }

    /// Returns the value of the column at `position`.
    #[inline]
    #[doc(hidden)]
    pub fn at<T: FromSql>(&self, position: usize) -> Result<T> {
        let rows = self.rows();
        if position >= rows.names.len() {
            return self.get(position);
        }
        let value = rows.value(self.index, position);
        T::column_result(value).map_err(|error| {
            let column = (position, &*rows.names[position]);
            self.explain(mismatch(column, value.data_type(), std::any::type_name::<T>(), &error))
        })
    }

    /// Adds the number of the row and the SQL to an error.
    #[doc(hidden)]
    pub fn explain(&self, error: Error) -> Error {
        self.rows().explain(at_row(error, self.index))
    }
}

impl<'a> IntoIterator for &'a Rows {
    type Item = Row<'a>;
    type IntoIter = RowIter<'a>;

    fn into_iter(self) -> RowIter<'a> {
        self.iter()
    }
}

/// The rows keep the whole result in memory until the last of them is dropped.
impl IntoIterator for Rows {
    type Item = Row<'static>;
    type IntoIter = RowIter<'static>;

    fn into_iter(self) -> RowIter<'static> {
        let length = self.len();
        RowIter::new(Source::Shared(Arc::new(self)), length)
    }
}

/// The rows of a result in order; made by [`Rows::iter`] and by iterating over [`Rows`].
#[derive(Debug, Clone)]
pub struct RowIter<'a> {
    rows: Source<'a>,
    left: Range<usize>,
}

impl<'a> RowIter<'a> {
    fn new(rows: Source<'a>, length: usize) -> Self {
        Self { rows, left: 0..length }
    }

    #[inline]
    fn row(&self, index: usize) -> Row<'a> {
        Row { rows: self.rows.clone(), index }
    }
}

impl<'a> Iterator for RowIter<'a> {
    type Item = Row<'a>;

    #[inline]
    fn next(&mut self) -> Option<Row<'a>> {
        self.left.next().map(|index| self.row(index))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.left.size_hint()
    }

    fn nth(&mut self, n: usize) -> Option<Row<'a>> {
        self.left.nth(n).map(|index| self.row(index))
    }
}

impl DoubleEndedIterator for RowIter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.left.next_back().map(|index| self.row(index))
    }
}

impl ExactSizeIterator for RowIter<'_> {}
impl std::iter::FusedIterator for RowIter<'_> {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn rows() -> Rows {
        let mut block = Block::default();
        block.integer(1);
        block.text(b"Ada");
        block.integer(300);
        block.null();
        let sources = vec![flatwater_sqlite::ColumnSource::default(); 2];
        Rows { names: ColumnNames::new(["id", "name"].map(Box::from).to_vec(), sources, "SELECT".into()), block }
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
        assert_eq!(error.kind(), ErrorKind::Decode);
        assert!(error.message().contains("column 0 (id)") && !error.message().contains("300"), "{error}");
        assert!(rows.get(1).unwrap().get::<String>(1).unwrap_err().hint().unwrap().contains("Option"));
        assert!(rows.get(0).unwrap().get::<i64>("age").unwrap_err().message().contains("id, name"));
        assert!(rows.read::<(i64,)>().unwrap_err().message().contains("2 column(s)"));
    }
}
