//! One row of a result.
//!
//! Owns: `Row`, a view of a row. Runs on any thread of the interpreter. Invariants: it is immutable, and refers to its result
//! alone. Leaves out: the result (`rows`).

use pyo3::basic::CompareOp;
use pyo3::exceptions::{PyAttributeError, PyIndexError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyIterator, PySlice, PyString, PyTuple};

use super::{Rows, in_range, restore_rows, with_first};
use crate::capi::untracked;
use crate::results::known_rows::RowObject;
use crate::results::pickled;
use crate::told::errors::no_column;

/// One row: immutable; by position, by name, and as an iterable of its values. It refers to its result only, which
/// refers to names and to weak references.
#[pyclass(frozen, weakref, module = "flatwater")]
pub(crate) struct Row {
    rows: Py<Rows>,
    index: usize,
}

/// Returns the row at an index that the result has.
pub(crate) fn row<'py>(rows: &Bound<'py, Rows>, index: usize) -> PyResult<Bound<'py, Row>> {
    let row = Bound::new(rows.py(), Row { rows: rows.clone().unbind(), index })?;
    untracked::untrack(&row);
    rows.get().same_or(row)
}

impl RowObject for Row {
    fn place(&self) -> (&flatwater::Rows, usize) {
        (&self.rows.get().rows, self.index)
    }
}

impl Row {
    fn value<'py>(&self, py: Python<'py>, column: usize) -> PyResult<Bound<'py, PyAny>> {
        self.rows.get().value(py, self.index, column)
    }

    fn width(&self, py: Python<'_>) -> usize {
        self.rows.get().columns.bind(py).len()
    }

    fn tuple<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        self.rows.get().tuple(py, self.index)
    }
}

#[pymethods]
impl Row {
    fn __len__(&self, py: Python<'_>) -> usize {
        self.width(py)
    }

    fn __getitem__<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = key.py();
        if let Ok(name) = key.cast::<PyString>() {
            return match self.rows.get().find(name)? {
                Some(column) => self.value(py, column),
                None => Err(no_column(&name.to_cow()?, self.rows.get().names(py)?.into_iter())),
            };
        }
        if key.is_instance_of::<PySlice>() {
            return self.tuple(py)?.into_any().get_item(key);
        }
        let index =
            key.extract::<isize>().map_err(|_| PyTypeError::new_err("a row index must be a position or a name"))?;
        let column = in_range(index, self.width(py));
        self.value(py, column.ok_or_else(|| PyIndexError::new_err("column index out of range"))?)
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        self.tuple(py)?.try_iter()
    }

    /// Called for what a row does not have: its columns are no attributes.
    fn __getattr__(&self, name: &Bound<'_, PyString>) -> PyResult<Py<PyAny>> {
        let text = match self.rows.get().find(name)? {
            None if ["get", "items", "values"].iter().any(|known| name == known) => {
                format!("a row has no attribute {:?}: `dict(row)` has it", name.to_cow()?)
            }
            Some(_) => format!("a row has no attribute {0:?}: its column is row[{0:?}]", name.to_cow()?),
            None => format!("a row has no attribute {:?}", name.to_cow()?),
        };
        Err(PyAttributeError::new_err(text))
    }

    /// As `tuple.index`, of the values.
    #[pyo3(signature = (value, /, *range))]
    fn index<'py>(&self, value: &Bound<'py, PyAny>, range: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        self.tuple(value.py())?.call_method1("index", with_first(value, range)?)
    }

    /// As `tuple.count`, of the values.
    #[pyo3(signature = (value, /))]
    fn count<'py>(&self, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.tuple(value.py())?.call_method1("count", (value,))
    }

    /// The names of the columns. With it, `dict(row)` works.
    fn keys(&self, py: Python<'_>) -> Py<PyTuple> {
        self.rows.get().columns.clone_ref(py)
    }

    /// Equal to a row or a tuple with the same values; names do not count.
    fn __richcmp__<'py>(&self, other: &Bound<'py, PyAny>, compare: CompareOp) -> PyResult<Bound<'py, PyAny>> {
        let py = other.py();
        let own = self.tuple(py)?;
        if let Ok(other) = other.cast::<Self>() {
            return own.rich_compare(other.get().tuple(py)?, compare);
        }
        if other.is_instance_of::<PyTuple>() {
            return own.rich_compare(other, compare);
        }
        Ok(py.NotImplemented().into_bound(py))
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        self.tuple(py)?.hash()
    }

    /// A text that is not UTF-8 can be shown, though it cannot be read.
    fn __repr__(&self, py: Python<'_>) -> String {
        let text = |column| match self.value(py, column) {
            Ok(value) => value.repr().map_or_else(|_| "<?>".into(), |text| text.to_string_lossy().into_owned()),
            Err(_) if self.rows.get().is_converted() => "<?>".to_owned(),
            Err(_) => "<text that is not UTF-8>".to_owned(),
        };
        let names = self.rows.get().names(py).unwrap_or_default().into_iter();
        let cells = names.enumerate().map(|(column, name)| format!("{name}={}", text(column)));
        format!("<Row {}>", cells.collect::<Vec<_>>().join(", "))
    }

    /// It is immutable.
    fn __copy__(this: Py<Self>) -> Py<Self> {
        this
    }

    /// So are its values.
    fn __deepcopy__<'py>(this: Bound<'py, Self>, _memo: &Bound<'py, PyAny>) -> Bound<'py, Self> {
        this
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let rows = self.rows.get();
        pickled::row(rows.columns.bind(py), (&rows.rows, self.index), rows.converters(py))
    }
}

/// Makes the row that was pickled.
#[pyfunction]
#[pyo3(signature = (names, values, converters=None))]
pub(crate) fn restore_row<'py>(
    names: Vec<String>,
    values: &Bound<'py, PyTuple>,
    converters: Option<Vec<Option<Py<PyAny>>>>,
) -> PyResult<Bound<'py, Row>> {
    row(&restore_rows(names, values, converters)?, 0)
}
