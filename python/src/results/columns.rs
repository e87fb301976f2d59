//! A result as columns: its values one column after the other, without an object for each.
//!
//! Owns: `Columns`, and the table while it is made of rows, a large one in slices. Rows are added on the loop's thread;
//! `Columns` is used on any thread of the interpreter. Invariant: a table that is shared does not change. Leaves out: the
//! memory (`table`), the type of a column (`column`), Arrow's structs (`capi::arrow`).

use std::sync::Arc;

use flatwater::bindings::{Schema, cells};
use flatwater::{ErrorCode, Rows};
use pyo3::exceptions::{PyIndexError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList, PyString, PyTuple};

use crate::capi::arrow;
use crate::results::cells::{not_utf8, value_to_python};
use crate::results::column::{Column, Refused};
use crate::results::column_names;
use crate::results::listing::refuse_same_names;
use crate::results::rows::in_range;
use crate::results::table::Table;
use crate::told::errors::{no_column, refused, unexpected, unknown_attribute};
use flatwater_bridge::Slice;

/// A chunk ends with the row with which it has so many rows, or about so many cells in all columns, but not before it has
/// some rows; or so many bytes of texts and blobs. What is copied when its memory grows takes microseconds.
const MOST_ROWS: usize = 65_536;
const MOST_CELLS: usize = 1 << 20;
const SOME_ROWS: usize = 1024;
const MOST_BYTES: usize = 1 << 20;

/// A table that is made of rows.
#[derive(Default)]
pub(crate) struct Gathering {
    table: Table,
    names: Option<Py<PyTuple>>,
    schema: Option<Schema>,
    /// The rows that are being added, and the number of these that are in the table.
    added: Option<(Rows, usize)>,
    /// The number of rows in the chunk that grows.
    in_chunk: usize,
}

impl Gathering {
    /// Adds rows of the same columns as those before, which are all in the table.
    pub(crate) fn add(&mut self, py: Python<'_>, rows: Rows) -> PyResult<()> {
        if self.names.is_none() {
            refuse_same_names(py, rows.columns())?;
            self.names = Some(column_names::names(py, &rows)?);
            self.schema = Some(Schema::of(&rows));
            self.table.names = rows.columns().map(str::to_owned).collect();
            let declared =
                (0..self.table.names.len()).map(|column| rows.column(column).ok().and_then(|one| one.decl_type()));
            self.table.columns = declared.map(Column::new).collect();
        }
        self.added = Some((rows, 0));
        Ok(())
    }

    /// Returns true if all rows that were added are in the table.
    pub(crate) fn is_complete(&self) -> bool {
        self.added.is_none()
    }

    /// Goes on until the slice is over. Returns true if all rows that were added are in the table.
    pub(crate) fn go_on(&mut self, py: Python<'_>, slice: &mut Slice) -> PyResult<bool> {
        let Self { table, added, in_chunk, .. } = self;
        let Some((rows, next)) = added else { return Ok(true) };
        let most = (MOST_CELLS / table.columns.len().max(1)).clamp(SOME_ROWS, MOST_ROWS);
        while *next < rows.len() {
            let mut bytes = 0;
            for ((column, name), value) in table.columns.iter_mut().zip(&table.names).zip(cells(rows, *next)) {
                column.push(table.rows, value).map_err(|refused| refuse(py, name, &refused))?;
                bytes += column.open_bytes();
            }
            *next += 1;
            *in_chunk += 1;
            table.rows += 1;
            if *in_chunk >= most || bytes >= MOST_BYTES {
                table.columns.iter_mut().for_each(Column::end_chunk);
                *in_chunk = 0;
            }
            if slice.is_over() {
                return Ok(false);
            }
        }
        self.added = None;
        Ok(true)
    }

    /// Goes on for a slice, with what is left to do when there are no more rows. Returns the columns if they are complete.
    pub(crate) fn finish(&mut self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let mut slice = Slice::begin();
        if !self.go_on(py, &mut slice)? {
            return Ok(None);
        }
        for column in &mut self.table.columns {
            if self.in_chunk > 0 {
                column.end_chunk();
            }
            column.prefer_declared();
        }
        self.in_chunk = 0;
        for column in &mut self.table.columns {
            for chunk in 0..column.chunks.len() {
                if column.convert(chunk) && slice.look() {
                    return Ok(None);
                }
            }
        }
        let (Some(names), Some(schema)) = (self.names.take(), self.schema.take()) else { return Err(unexpected()) };
        let table = Arc::new(std::mem::take(&mut self.table));
        Py::new(py, Columns { names, schema, table }).map(|columns| Some(columns.into_any()))
    }
}

/// The exception for a value that cannot be in its column.
#[cold]
fn refuse(py: Python<'_>, name: &str, why: &Refused) -> PyErr {
    match why {
        Refused::Type([(own, first), (other, row)]) => refused(
            py,
            ErrorCode::UnreadableValue,
            &format!(
                "the column {name:?} has {own} in row {first} and {other} in row {row}, but a column has one type"
            ),
            Some("read all its values as one type: CAST(... AS TEXT)"),
        ),
        Refused::Inexact { real, integer } => refused(
            py,
            ErrorCode::UnreadableValue,
            &format!(
                "the column {name:?} has REAL in row {real}, and in row {integer} an INTEGER that no float equals"
            ),
            Some("CAST(... AS REAL) rounds it, CAST(... AS TEXT) keeps it"),
        ),
        Refused::NotUtf8 => not_utf8(py, name),
        Refused::TooLong => refused(
            py,
            ErrorCode::UnreadableValue,
            &format!("the column {name:?} has a value that is too long to be in a column"),
            Some("read it with `query`"),
        ),
    }
}

/// A result as columns.
#[pyclass(frozen, mapping, weakref, module = "flatwater")]
pub(crate) struct Columns {
    /// The names of the columns: interned strings, which results of one statement share.
    #[pyo3(get)]
    names: Py<PyTuple>,
    schema: Schema,
    table: Arc<Table>,
}

impl Columns {
    /// The values of a column.
    fn list<'py>(&self, py: Python<'py>, column: usize) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for value in self.table.columns[column].iter() {
            list.append(value_to_python(py, value, || &self.table.names[column])?)?;
        }
        Ok(list)
    }
}

#[pymethods]
impl Columns {
    /// The number of rows.
    #[getter]
    fn row_count(&self) -> usize {
        self.table.rows
    }

    fn __getitem__<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let py = key.py();
        if let Ok(name) = key.cast::<PyString>() {
            let name = name.to_cow()?;
            let column = self.schema.position(&name);
            return self.list(py, column.ok_or_else(|| no_column(&name, self.table.names.iter().map(|name| &**name)))?);
        }
        let index =
            key.extract::<isize>().map_err(|_| PyTypeError::new_err("a column must be a position or a name"))?;
        let column = in_range(index, self.table.columns.len());
        self.list(py, column.ok_or_else(|| PyIndexError::new_err("column index out of range"))?)
    }

    /// The values of every column, by its name.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (column, name) in self.names.bind(py).iter_borrowed().enumerate() {
            dict.set_item(name, self.list(py, column)?)?;
        }
        Ok(dict)
    }

    /// Returns a new stream of the columns, for libraries that read Arrow. They share the memory. The schema that is asked for
    /// is the one that they convert to.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        arrow::stream(py, &self.table)
    }

    /// Called for what it does not have.
    fn __getattr__(this: &Bound<'_, Self>, name: &Bound<'_, PyString>) -> PyResult<Py<PyAny>> {
        Err(unknown_attribute("of_columns", this.as_any(), name))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("<flatwater.Columns: {} rows of {}>", self.table.rows, self.names.bind(py).repr()?))
    }
}
