//! The types that a row can be read as: finding their columns once for a result, and then their cells in each row.
//!
//! Owns: `FromRow`, its two steps, the types of the standard library that can be read, and the operations of `Rows` and `Row` that read
//! them. Runs on the thread that reads the rows. Invariants: `Cells` yields the cells in the order in which the same type asked
//! `Columns` for them; the columns of a type are looked up once for a result, also if it has no row. Leaves out: structs, which the
//! derive macro implements with these steps; what a cell is converted to.

use std::fmt::Display;

use rusqlite::types::{FromSqlError, FromSqlResult, ValueRef};

use super::column::ColumnNames;
use super::convert::{FromSql, column_of, short_name};
use super::row::{Row, Rows};
use crate::error::location::{OPTIONAL_AS, OPTIONAL_VALUE, row_not_found};
use crate::error::{Error, ErrorCode, Result};

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
    /// `Decode` that names the column whose value does not fit, or what [`Error::decode`] makes. The caller adds the
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

/// The columns that a type reads from a result.
pub struct Columns<'a> {
    names: &'a ColumnNames,
    found: Vec<Found>,
}

/// What was found for one thing that a type reads.
#[derive(Clone, Copy)]
pub enum Found {
    /// At this position.
    Column(usize),
    /// A column that the result need not have, and does not.
    Absent,
    /// So many of the following belong to one `Option`.
    Optional(usize),
}

impl<'a> Columns<'a> {
    /// Finds the columns of `T`, for the rows of all results with these names.
    fn of<T: FromRow>(names: &'a ColumnNames) -> Result<Vec<Found>> {
        let mut columns = Self { names, found: Vec::new() };
        T::columns(&mut columns)?;
        Ok(columns.found)
    }

    /// Finds the column of a field.
    pub fn find(&mut self, name: &str) -> Result<()> {
        let position = self.names.find(name).map_err(|error| {
            error.with_hint(
                "select it, or say where the field comes from: #[flatwater(rename = \"...\")], or `default` or `skip`",
            )
        })?;
        self.found.push(Found::Column(position));
        Ok(())
    }

    /// Finds the column of a field that may be absent.
    pub fn find_if_any(&mut self, name: &str) {
        self.found.push(self.names.find_name(name).map_or(Found::Absent, Found::Column));
    }

    /// Checks that the result has as many columns as are read by position.
    pub fn exactly(&self, count: usize) -> Result<()> {
        if self.names.len() == count {
            return Ok(());
        }
        Err(Error::new(
            ErrorCode::NoSuchColumn,
            format!("the result has {} column(s) and is read as {count}", self.names.len()),
        ))
    }
}

/// The cells of one row, for a type whose columns were found.
pub struct Cells<'a> {
    row: &'a Row<'a>,
    found: &'a [Found],
}

impl<'a> Cells<'a> {
    #[doc(hidden)]
    pub fn of(row: &'a Row<'a>, found: &'a [Found]) -> Self {
        Self { row, found }
    }

    /// The whole row.
    #[must_use]
    pub fn row(&self) -> &'a Row<'a> {
        self.row
    }

    /// The cell at a position.
    #[must_use]
    pub fn at(&self, position: usize) -> Cell<'a> {
        Cell { row: self.row, position }
    }

    /// The cell of the next column, or `None` if the result has no such column.
    #[inline]
    pub fn next_if_any(&mut self) -> Option<Cell<'a>> {
        match self.found.split_off_first()? {
            Found::Column(position) => Some(self.at(*position)),
            _ => None,
        }
    }

    /// The cell of the next column.
    #[inline]
    #[expect(clippy::should_implement_trait, reason = "the cells end where the type ends, not with None")]
    pub fn next(&mut self) -> Cell<'a> {
        // No result has this position: reading the cell fails.
        self.next_if_any().unwrap_or_else(|| self.at(usize::MAX))
    }

    /// The cells of the next `Option`, or `None` if all of them are NULL.
    fn next_optional(&mut self) -> Option<Self> {
        let length = match self.found.split_off_first() {
            Some(Found::Optional(length)) => *length,
            _ => 0,
        };
        let found = self.found.split_off(..length).unwrap_or_default();
        let is_null = |position: usize| matches!(self.row.value(position), Ok(ValueRef::Null));
        // A type that asks for no column reads the whole row.
        let has_value = if found.iter().all(|one| matches!(one, Found::Optional(_))) {
            (0..self.row.len()).any(|position| !is_null(position))
        } else {
            found.iter().any(|one| matches!(one, Found::Column(position) if !is_null(*position)))
        };
        has_value.then_some(Self { row: self.row, found })
    }
}

/// One cell of a row.
#[derive(Clone, Copy)]
pub struct Cell<'a> {
    row: &'a Row<'a>,
    position: usize,
}

impl Cell<'_> {
    /// Reads the cell as a `T`.
    #[inline]
    pub fn read<T: FromSql>(self) -> Result<T> {
        self.row.at(self.position)
    }

    /// Reads the cell as a `T` and converts it.
    pub fn convert<T: FromSql, U: TryFrom<T, Error: Display>>(self) -> Result<U> {
        U::try_from(self.read()?).map_err(|error| {
            let column = column_of(self.position, &self.row.names()[self.position]);
            let (from, to) = (short_name(std::any::type_name::<T>()), short_name(std::any::type_name::<U>()));
            Error::new(ErrorCode::UnreadableValue, format!("{column}: {from} is not a {to}: {error}"))
        })
    }
}

/// Reads a row by both steps: `from_row` of a type that implements them.
pub fn in_two_steps<T: FromRow>(row: &Row<'_>) -> Result<T> {
    T::from_cells(&mut Cells::of(row, &Columns::of::<T>(row.names())?))
}

/// Returns the error of a value that no variant of an enum has.
#[cold]
pub fn unknown<T>(what: &'static str) -> FromSqlResult<T> {
    Err(FromSqlError::Other(what.into()))
}

/// `None` if all columns that `T` reads are NULL, as in a row of a LEFT JOIN without its right side. A tuple, and a type
/// whose `FromRow` was written by hand, reads all columns of the row.
impl<T: FromRow> FromRow for Option<T> {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        in_two_steps(row)
    }

    fn columns(columns: &mut Columns<'_>) -> Result<()> {
        let place = columns.found.len();
        columns.found.push(Found::Optional(0));
        T::columns(columns)?;
        columns.found[place] = Found::Optional(columns.found.len() - place - 1);
        Ok(())
    }

    fn from_cells(cells: &mut Cells<'_>) -> Result<Self> {
        cells.next_optional().map(|mut cells| T::from_cells(&mut cells)).transpose()
    }
}

/// Tuples of the values before the semicolon, and of one more after the other.
macro_rules! tuples {
    (@one $($name:ident $position:tt)+) => {
        impl<$($name: FromSql),+> FromRow for ($($name,)+) {
            fn from_row(row: &Row<'_>) -> Result<Self> {
                in_two_steps(row)
            }

            fn columns(columns: &mut Columns<'_>) -> Result<()> {
                columns.exactly([$($position),+].len())
            }

            fn from_cells(cells: &mut Cells<'_>) -> Result<Self> {
                Ok(($(cells.row.at::<$name>($position)?,)+))
            }
        }
    };
    ($($name:ident $position:tt)*;) => {};
    ($($name:ident $position:tt)*; $next:ident $at:tt $($other:tt)*) => {
        tuples!(@one $($name $position)* $next $at);
        tuples!($($name $position)* $next $at; $($other)*);
    };
}

tuples!(; A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8 J 9 K 10 L 11 M 12 N 13 O 14 P 15);

impl Rows {
    /// Converts every row to a `T`. The columns of `T` are looked up once.
    ///
    /// # Errors
    /// `Misuse` for a column that the result lacks, even if it has no row, `Decode` for a value that does not fit; it names
    /// the column, the row and both types.
    pub fn read<T: FromRow>(&self) -> Result<Vec<T>> {
        let columns = self.find::<T>()?;
        let mut values = Vec::with_capacity(self.len());
        for row in self {
            let value = T::from_cells(&mut Cells::of(&row, &columns));
            values.push(value.map_err(|error| row.explain(error))?);
        }
        Ok(values)
    }

    /// Finds the columns of `T`.
    #[doc(hidden)]
    pub fn find<T: FromRow>(&self) -> Result<Vec<Found>> {
        Columns::of::<T>(&self.names).map_err(|error| self.explain(error))
    }

    /// Reads the first column of every row.
    #[doc(hidden)]
    pub fn read_first_column<T: FromSql>(&self) -> Result<Vec<T>> {
        let mut values = Vec::with_capacity(self.len());
        for row in self {
            values.push(row.at(0)?);
        }
        Ok(values)
    }

    /// Reads the first row, if there is one. The columns of `T` must be there in any case.
    #[doc(hidden)]
    pub fn read_first<T: FromRow>(&self) -> Result<Option<T>> {
        match self.get(0) {
            Some(row) => row.read().map(Some),
            None => self.find::<T>().map(|_| None),
        }
    }

    /// Reads the only row, which must be there.
    #[doc(hidden)]
    pub fn read_one<T: FromRow>(&self) -> Result<T> {
        self.read_first()?.ok_or_else(|| self.explain(row_not_found(OPTIONAL_AS)))
    }

    /// Reads the first value of the first row, if there is a row.
    #[doc(hidden)]
    pub fn read_optional_value<T: FromSql>(&self) -> Result<Option<T>> {
        self.get(0).map(|row| row.at(0)).transpose()
    }

    /// Reads the first value of the only row, which must be there.
    #[doc(hidden)]
    pub fn read_value<T: FromSql>(&self) -> Result<T> {
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
        let columns = self.rows().find::<T>()?;
        T::from_cells(&mut Cells::of(self, &columns)).map_err(|error| self.explain(error))
    }
}
