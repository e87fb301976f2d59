//! Results: one flat row-major block of cells with a shared schema, and rows as views into it.
//!
//! Owns: `Rows`, `Row` and reading them as Rust types. Runs on the caller's thread. Invariant: the block has a cell for
//! each column of each row. Leaves out: filling the block, which a sink does; the types that a row can be read as
//! (`from_row`).

use std::sync::Arc;

use rusqlite::types::ValueRef;

use super::block::Block;
use super::column::{Column, ColumnIndex, ColumnNames, Names};
use super::convert::FromSql;
use super::from_row::{Cells, Columns, Found};
use super::mismatch::mismatch;
use super::row_iter::RowIter;
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

    /// Returns true if comparing it with another result takes microseconds, whatever that other one is.
    pub(crate) fn is_small(&self) -> bool {
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

    /// The rows in order.
    #[must_use]
    pub fn iter(&self) -> RowIter<'_> {
        RowIter::new(Source::Borrowed(self), self.len())
    }

    /// Converts every row to a `T`. The columns of `T` are looked up once.
    ///
    /// # Errors
    /// `Misuse` for a column that the result lacks, even if it has no row, and for a value that does not fit; it names
    /// the column, the row and both types.
    pub fn read<T: FromRow>(&self) -> Result<Vec<T>> {
        let columns = Columns::of::<T>(&self.names).map_err(|error| self.explain(error))?;
        let mut values = Vec::with_capacity(self.len());
        for row in self {
            let value = T::from_cells(&mut Cells::new(&row, &columns));
            values.push(value.map_err(|error| row.explain(error))?);
        }
        Ok(values)
    }

    /// Finds the columns of `T`.
    pub(crate) fn find<T: FromRow>(&self) -> Result<Vec<Found>> {
        Columns::of::<T>(&self.names).map(Columns::into_found).map_err(|error| self.explain(error))
    }

    /// Reads the first column of every row.
    pub(crate) fn read_first_column<T: FromSql>(&self) -> Result<Vec<T>> {
        let mut values = Vec::with_capacity(self.len());
        for row in self {
            values.push(row.at(0)?);
        }
        Ok(values)
    }

    /// Reads the first row, if there is one. The columns of `T` must be there in any case.
    pub(crate) fn read_first<T: FromRow>(&self) -> Result<Option<T>> {
        match self.get(0) {
            Some(row) => row.read().map(Some),
            None => Columns::of::<T>(&self.names).map(|_| None).map_err(|error| self.explain(error)),
        }
    }

    /// Reads the only row, which must be there.
    pub(crate) fn read_one<T: FromRow>(&self) -> Result<T> {
        self.read_first()?.ok_or_else(|| self.explain(Error::row_not_found()))
    }

    /// Reads the first value of the first row, if there is a row.
    pub(crate) fn read_optional_value<T: FromSql>(&self) -> Result<Option<T>> {
        self.get(0).map(|row| row.at(0)).transpose()
    }

    /// Reads the first value of the only row, which must be there.
    pub(crate) fn read_value<T: FromSql>(&self) -> Result<T> {
        self.read_optional_value()?.ok_or_else(|| self.explain(Error::row_not_found()))
    }

    /// Returns the first row, detached from the others.
    pub(crate) fn into_first(self) -> Option<Row<'static>> {
        self.into_iter().next()
    }

    #[inline]
    pub(crate) fn value(&self, row: usize, column: usize) -> ValueRef<'_> {
        self.block.value(row * self.names.len() + column)
    }

    /// Adds the SQL to an error.
    pub(crate) fn explain(&self, error: Error) -> Error {
        if self.names.sql.is_empty() { error } else { error.with_sql(&self.names.sql) }
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
            Source::Shared(rows) => rows,
        }
    }

    pub(crate) fn names(&self) -> &ColumnNames {
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
        let rows = self.rows();
        (0..rows.names.len()).map(|column| rows.value(self.index, column))
    }

    /// Returns the value of a column, by position from 0 or by name, as a `T`.
    ///
    /// # Errors
    /// `Misuse` if there is no such column, or if its value is not a `T`; it names the column, the row and both types.
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
    pub(crate) fn at<T: FromSql>(&self, position: usize) -> Result<T> {
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

    /// Converts the whole row to a `T`: a tuple, a struct that derives [`FromRow`], or an `Option` of one.
    ///
    /// This looks up the columns of `T`. [`Rows::read`] does so once for all rows.
    ///
    /// # Errors
    /// As [`Rows::read`].
    pub fn read<T: FromRow>(&self) -> Result<T> {
        let columns = Columns::of::<T>(self.names()).map_err(|error| self.rows().explain(error))?;
        T::from_cells(&mut Cells::new(self, &columns)).map_err(|error| self.explain(error))
    }

    /// Adds the number of the row and the SQL to an error.
    pub(crate) fn explain(&self, error: Error) -> Error {
        self.rows().explain(error.at_row(self.index))
    }
}

/// A type that can be read from a row: tuples of up to 16 [`FromSql`] values, which need as many columns; structs that
/// derive it; an `Option` of such a type, which is `None` if all columns that the type reads are NULL.
///
/// To implement it by hand, write `from_row`:
///
/// ```
/// use flatwater::{Error, FromRow, Result, Row};
///
/// struct Host(std::net::IpAddr);
///
/// impl FromRow for Host {
///     fn from_row(row: &Row<'_>) -> Result<Self> {
///         let address: String = row.get("address")?;
///         Ok(Self(address.parse().map_err(|error| Error::decode("address", error))?))
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be read from a row",
    label = "not a type that rows are read as",
    note = "derive it: `#[derive(flatwater::FromRow)]`, or read a tuple, also for one column: `(i64,)`",
    note = "to read the first column of every row as a value, call `query_values`; of one row, `query_value`"
)]
pub trait FromRow: Sized {
    /// Reads a value of this type from the row.
    ///
    /// # Errors
    /// `Misuse` that names the column whose value does not fit, or what [`Error::decode`] makes. The caller adds the
    /// number of the row and the SQL.
    fn from_row(row: &Row<'_>) -> Result<Self>;

    /// Finds the columns of this type, once for all rows of a result, in the order in which `from_cells` reads them.
    #[doc(hidden)]
    fn columns(_: &mut Columns<'_>) -> Result<()> {
        Ok(())
    }

    /// Reads a value of this type from the cells of the columns that were found.
    #[doc(hidden)]
    fn from_cells(cells: &mut Cells<'_>) -> Result<Self> {
        Self::from_row(cells.row())
    }
}

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
        assert_eq!(error.kind(), ErrorKind::Misuse);
        assert!(error.message().contains("column 0 (id)") && !error.message().contains("300"), "{error}");
        assert!(rows.get(1).unwrap().get::<String>(1).unwrap_err().hint().unwrap().contains("Option"));
        assert!(rows.get(0).unwrap().get::<i64>("age").unwrap_err().message().contains("id, name"));
        assert!(rows.read::<(i64,)>().unwrap_err().message().contains("2 column(s)"));
    }
}
