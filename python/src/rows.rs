//! Results: rows that become Python objects when they are touched.
//!
//! Owns: `Rows`, a sequence over the engine's block of values, and `Row`, a view of one of them. Runs on any thread of
//! the interpreter. Invariants: a result is immutable; its memory holds no reference to an object of Python, so it may
//! be given back by any thread. Leaves out: the conversion of a value
//! (`cells`), the names of columns (`columns`).

use std::sync::Arc;

use flatwater::bindings::{cells, position};
use pyo3::basic::CompareOp;
use pyo3::exceptions::{PyAttributeError, PyIndexError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyList, PySlice, PyString, PyTuple};

use crate::capi::untracked;
use crate::cells::{to_python, value_to_python};
use crate::column_names;
use crate::errors::{no_column, unknown_attribute};
use crate::known_rows::{KnownRows, RowObject};
use crate::pickled;

/// All rows of a query: a sequence of `Row`.
#[pyclass(frozen, sequence, weakref, module = "flatwater")]
pub(crate) struct Rows {
    pub(crate) rows: Arc<flatwater::Rows>,
    /// The names of the columns: interned strings, which results of one statement share.
    #[pyo3(get)]
    pub(crate) columns: Py<PyTuple>,
    /// Of a live query: the rows of other results that the program holds.
    known: Option<KnownRows>,
}

/// One row: immutable; by position, by name, and as an iterable of its values. It refers to its result only, which
/// refers to names and to weak references.
#[pyclass(frozen, weakref, module = "flatwater")]
pub(crate) struct Row {
    rows: Py<Rows>,
    index: usize,
}

/// So many columns are compared one by one.
const FEW: usize = 16;

impl Rows {
    pub(crate) fn new(py: Python<'_>, rows: Arc<flatwater::Rows>) -> PyResult<Bound<'_, Self>> {
        Self::with_known(py, rows, None)
    }

    /// Makes a result of a live query: rows that the program holds, from results before, are the same objects in it.
    pub(crate) fn with_known(
        py: Python<'_>,
        rows: Arc<flatwater::Rows>,
        known: Option<KnownRows>,
    ) -> PyResult<Bound<'_, Self>> {
        let columns = column_names::names(py, &rows)?;
        Bound::new(py, Self { rows, columns, known })
    }

    /// Returns the values of a row as a tuple.
    pub(crate) fn tuple<'py>(&self, py: Python<'py>, row: usize) -> PyResult<Bound<'py, PyTuple>> {
        let name = |column| move || self.rows.columns().nth(column).unwrap_or_default();
        let values = cells(&self.rows, row).enumerate();
        untracked::tuple(py, values.map(|(column, value)| value_to_python(py, value, name(column))))
    }
}

fn list_of<'py>(rows: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    rows.py().get_type::<PyList>().call1((rows,))
}

fn with_first<'py>(first: &Bound<'py, PyAny>, others: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyTuple>> {
    PyTuple::new(first.py(), std::iter::once(first.clone()).chain(others.iter()).collect::<Vec<_>>())
}

/// Returns the index from the front, if there is such an item.
pub(crate) fn in_range(index: isize, length: usize) -> Option<usize> {
    let index = if index < 0 { length.checked_sub(index.unsigned_abs())? } else { index.unsigned_abs() };
    (index < length).then_some(index)
}

/// Returns the row at an index that the result has.
pub(crate) fn row<'py>(rows: &Bound<'py, Rows>, index: usize) -> PyResult<Bound<'py, Row>> {
    let row = Bound::new(rows.py(), Row { rows: rows.clone().unbind(), index })?;
    untracked::untrack(&row);
    match &rows.get().known {
        Some(known) => known.same_or(row),
        None => Ok(row),
    }
}

#[pymethods]
impl Rows {
    fn __len__(&self) -> usize {
        self.rows.len()
    }

    fn __getitem__<'py>(this: &Bound<'py, Self>, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let length = this.get().rows.len();
        if let Ok(slice) = index.cast::<PySlice>() {
            let part = slice.indices(isize::try_from(length)?)?;
            let mut at = part.start;
            let list = PyList::empty(this.py());
            for _ in 0..part.slicelength {
                list.append(row(this, at.unsigned_abs())?)?;
                at += part.step;
            }
            return Ok(list.into_any());
        }
        let index = in_range(index.extract::<isize>()?, length);
        let index = index.ok_or_else(|| PyIndexError::new_err("row index out of range"))?;
        Ok(row(this, index)?.into_any())
    }

    /// Called for what it does not have.
    fn __getattr__(this: &Bound<'_, Self>, name: &Bound<'_, PyString>) -> PyResult<Py<PyAny>> {
        Err(unknown_attribute("of_rows", this.as_any(), name))
    }

    /// As `list.index`.
    #[pyo3(signature = (value, /, *range))]
    fn index<'py>(
        this: &Bound<'py, Self>,
        value: &Bound<'py, PyAny>,
        range: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        list_of(this.as_any())?.call_method1("index", with_first(value, range)?)
    }

    /// As `list.count`.
    #[pyo3(signature = (value, /))]
    fn count<'py>(this: &Bound<'py, Self>, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        list_of(this.as_any())?.call_method1("count", (value,))
    }

    fn __iter__(this: Bound<'_, Self>) -> RowIterator {
        RowIterator { rows: this.unbind(), next: 0 }
    }

    /// Equal to any sequence of rows or tuples with the same values.
    fn __richcmp__<'py>(
        this: &Bound<'py, Self>,
        other: &Bound<'py, PyAny>,
        compare: CompareOp,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = this.py();
        let is_rows =
            other.is_instance_of::<Self>() || other.is_instance_of::<PyList>() || other.is_instance_of::<PyTuple>();
        if !is_rows || !matches!(compare, CompareOp::Eq | CompareOp::Ne) {
            return Ok(py.NotImplemented().into_bound(py));
        }
        let mut is_equal = this.len()? == other.len()?;
        let mut others = other.try_iter()?;
        for own in this.try_iter()? {
            let Some(other) = others.next().filter(|_| is_equal) else { break };
            is_equal = own?.eq(other?)?;
        }
        let is_true = is_equal == matches!(compare, CompareOp::Eq);
        Ok(pyo3::types::PyBool::new(py, is_true).to_owned().into_any())
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("<flatwater.Rows: {} rows of {}>", self.rows.len(), self.columns.bind(py).repr()?))
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
        pickled::rows(self.columns.bind(py), &self.rows)
    }
}

/// Iterates over the rows of a result.
#[pyclass(module = "flatwater._native")]
pub(crate) struct RowIterator {
    rows: Py<Rows>,
    next: usize,
}

#[pymethods]
impl RowIterator {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, Row>>> {
        let rows = self.rows.bind(py);
        if self.next >= rows.get().rows.len() {
            return Ok(None);
        }
        self.next += 1;
        row(rows, self.next - 1).map(Some)
    }
}

impl RowObject for Row {
    fn place(&self) -> (&flatwater::Rows, usize) {
        (&self.rows.get().rows, self.index)
    }
}

impl Row {
    fn value<'py>(&self, py: Python<'py>, column: usize) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.rows.get().rows, self.index, column)
    }

    fn width(&self, py: Python<'_>) -> usize {
        self.rows.get().columns.bind(py).len()
    }

    fn tuple<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        self.rows.get().tuple(py, self.index)
    }

    /// Returns the column of this name; if there is none, one whose name differs in case only.
    fn find(&self, name: &Bound<'_, PyString>) -> PyResult<Option<usize>> {
        let names = self.rows.get().columns.bind(name.py());
        if let Some(column) = names.iter_borrowed().take(FEW).position(|known| known.is(name)) {
            return Ok(Some(column));
        }
        Ok(position(&self.rows.get().rows, &name.to_cow()?))
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
            return match self.find(name)? {
                Some(column) => self.value(py, column),
                None => Err(no_column(&name.to_cow()?, self.rows.get().rows.columns())),
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
        let text = match self.find(name)? {
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
            Err(_) => "<text that is not UTF-8>".to_owned(),
        };
        let cells = self.rows.get().rows.columns().enumerate().map(|(column, name)| format!("{name}={}", text(column)));
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
        pickled::row(py, self.keys(py), self.tuple(py)?)
    }
}

/// Makes the row that was pickled.
#[pyfunction]
pub(crate) fn restore_row<'py>(names: Vec<String>, values: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, Row>> {
    row(&restore_rows(names, values)?, 0)
}

/// Makes the result that was pickled.
#[pyfunction]
pub(crate) fn restore_rows<'py>(names: Vec<String>, values: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, Rows>> {
    Rows::new(values.py(), Arc::new(pickled::restored(names, values)?))
}
