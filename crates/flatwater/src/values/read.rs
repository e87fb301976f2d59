//! Reading a result, or one of its rows, as a type.
//!
//! Owns: the operations of `Rows` and `Row` that do it. Runs on the thread that reads the rows. Invariant: the columns
//! of the type are looked up once for a result, also if it has no row. Leaves out: the types (`from_row`).

use super::convert::FromSql;
use super::from_row::{Cells, Columns, Found, FromRow};
use super::row::{Row, Rows};
use crate::error::Result;
use crate::error::location::{OPTIONAL_AS, OPTIONAL_VALUE, row_not_found};

impl Rows {
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
        self.read_first()?.ok_or_else(|| self.explain(row_not_found(OPTIONAL_AS)))
    }

    /// Reads the first value of the first row, if there is a row.
    pub(crate) fn read_optional_value<T: FromSql>(&self) -> Result<Option<T>> {
        self.get(0).map(|row| row.at(0)).transpose()
    }

    /// Reads the first value of the only row, which must be there.
    pub(crate) fn read_value<T: FromSql>(&self) -> Result<T> {
        self.read_optional_value()?.ok_or_else(|| self.explain(row_not_found(OPTIONAL_VALUE)))
    }
}

impl Row<'_> {
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
}
