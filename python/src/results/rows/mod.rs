//! Results: rows that become Python objects when they are touched.
//!
//! Owns: `Rows`, a sequence over the engine's block of values. Runs on any thread of the interpreter. Invariants: a result is
//! immutable; its memory holds no reference to an object of Python, so it may be given back by any thread. Leaves out: one
//! row (`row`), the conversion of a value (`cells`, and `casts` where the program said so), the names of columns (`column_names`).

pub(crate) mod row;

use std::sync::Arc;

use flatwater::bindings::{cells, position};
use pyo3::basic::CompareOp;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PySlice, PyString, PyTuple};

use self::row::{Row, row};
use crate::capi::untracked;
use crate::given::casts::{Casts, Place};
use crate::given::reading::Reading;
use crate::results::cells::{to_python, value_to_python};
use crate::results::column_names;
use crate::results::known_rows::KnownRows;
use crate::results::pickled;
use crate::told::errors::unknown_attribute;

/// So many columns are compared one by one.
const FEW: usize = 16;

/// All rows of a query: a sequence of `Row`.
#[pyclass(frozen, sequence, weakref, module = "flatwater")]
pub(crate) struct Rows {
    pub(crate) rows: Arc<flatwater::Rows>,
    /// The names of the columns: interned strings, which results of one statement share.
    #[pyo3(get)]
    pub(crate) columns: Py<PyTuple>,
    /// Of a live query: the rows of other results that the program holds.
    known: Option<KnownRows>,
    /// If a column has a converter or a type.
    casts: Option<Casts>,
    /// How many rows of the result are in parts before this one.
    pub(crate) before: usize,
}

impl Rows {
    pub(crate) fn new<'py>(
        py: Python<'py>,
        rows: Arc<flatwater::Rows>,
        reading: Option<&Reading>,
    ) -> PyResult<Bound<'py, Self>> {
        Self::part(py, rows, reading, 0)
    }

    /// The same of a part of a result, before which there are so many rows.
    pub(crate) fn part<'py>(
        py: Python<'py>,
        rows: Arc<flatwater::Rows>,
        reading: Option<&Reading>,
        before: usize,
    ) -> PyResult<Bound<'py, Self>> {
        Self::made(py, rows, None, reading, before)
    }

    /// Makes a result of a live query: rows that the program holds, from results before, are the same objects in it.
    pub(crate) fn with_known<'py>(
        py: Python<'py>,
        rows: Arc<flatwater::Rows>,
        known: Option<KnownRows>,
        reading: Option<&Reading>,
    ) -> PyResult<Bound<'py, Self>> {
        Self::made(py, rows, known, reading, 0)
    }

    fn made<'py>(
        py: Python<'py>,
        rows: Arc<flatwater::Rows>,
        known: Option<KnownRows>,
        reading: Option<&Reading>,
        before: usize,
    ) -> PyResult<Bound<'py, Self>> {
        let casts = reading.map_or(Ok(None), |reading| reading.casts(py, &rows))?;
        let columns = match casts.as_ref().and_then(|casts| casts.names.as_ref()) {
            Some(names) => names.clone_ref(py),
            None => column_names::names(py, &rows)?,
        };
        Bound::new(py, Self { rows, columns, known, casts, before })
    }

    /// Makes a result that was pickled, with the converters of its columns.
    fn restored(
        py: Python<'_>,
        rows: Arc<flatwater::Rows>,
        converters: Option<Vec<Option<Py<PyAny>>>>,
    ) -> PyResult<Bound<'_, Self>> {
        let columns = column_names::names(py, &rows)?;
        let casts = converters.map(|kept| Casts::restored(py, kept)).transpose()?;
        Bound::new(py, Self { rows, columns, known: None, casts, before: 0 })
    }

    /// Returns the value of a cell, which the result must have.
    pub(crate) fn value<'py>(&self, py: Python<'py>, row: usize, column: usize) -> PyResult<Bound<'py, PyAny>> {
        let place = Place { row, column, before: self.before };
        let cast = self.casts.as_ref().and_then(|casts| casts.value(py, &self.rows, place));
        cast.unwrap_or_else(|| to_python(py, &self.rows, row, column))
    }

    /// True if a column has a converter or a type, or another name than its own.
    pub(crate) fn is_converted(&self) -> bool {
        self.casts.is_some()
    }

    /// Returns the object that the program holds for such a row of a live query, or this one.
    pub(crate) fn same_or<'py>(&self, row: Bound<'py, Row>) -> PyResult<Bound<'py, Row>> {
        match &self.known {
            Some(known) => known.same_or(row),
            None => Ok(row),
        }
    }

    /// Returns the column of this name; if there is none, one whose name differs in case only.
    pub(crate) fn find(&self, name: &Bound<'_, PyString>) -> PyResult<Option<usize>> {
        let py = name.py();
        let names = self.columns.bind(py);
        if let Some(column) = names.iter_borrowed().take(FEW).position(|known| known.is(name)) {
            return Ok(Some(column));
        }
        let name = name.to_cow()?;
        Ok(match &self.casts {
            Some(Casts { names: Some(_), .. }) => {
                let names = self.names(py)?;
                let same = names.iter().position(|known| **known == *name);
                same.or_else(|| names.iter().position(|known| known.eq_ignore_ascii_case(&name)))
            }
            _ => position(&self.rows, &name),
        })
    }

    /// The converters and types of its columns, for `pickle`.
    pub(crate) fn converters(&self, py: Python<'_>) -> Option<Vec<Option<Py<PyAny>>>> {
        self.casts.as_ref().map(|casts| casts.kept(py))
    }

    /// The names of the columns, as Python has them.
    pub(crate) fn names<'a>(&'a self, py: Python<'a>) -> PyResult<Vec<&'a str>> {
        let names = self.columns.bind(py).as_slice();
        names.iter().map(|name| name.cast::<PyString>()?.to_str()).collect()
    }

    /// Returns the values of a row as a tuple.
    pub(crate) fn tuple<'py>(&self, py: Python<'py>, row: usize) -> PyResult<Bound<'py, PyTuple>> {
        if self.casts.is_some() {
            // What a converter returns may be part of a cycle.
            let values = (0..self.columns.bind(py).len()).map(|column| self.value(py, row, column));
            return PyTuple::new(py, values.collect::<PyResult<Vec<_>>>()?);
        }
        let name = |column| move || self.rows.columns().nth(column).unwrap_or_default();
        let values = cells(&self.rows, row).enumerate();
        untracked::tuple(py, values.map(|(column, value)| value_to_python(py, value, name(column))))
    }
}

fn list_of<'py>(rows: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    rows.py().get_type::<PyList>().call1((rows,))
}

pub(crate) fn with_first<'py>(
    first: &Bound<'py, PyAny>,
    others: &Bound<'py, PyTuple>,
) -> PyResult<Bound<'py, PyTuple>> {
    PyTuple::new(first.py(), std::iter::once(first.clone()).chain(others.iter()).collect::<Vec<_>>())
}

/// Returns the index from the front, if there is such an item.
pub(crate) fn in_range(index: isize, length: usize) -> Option<usize> {
    let index = if index < 0 { length.checked_sub(index.unsigned_abs())? } else { index.unsigned_abs() };
    (index < length).then_some(index)
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
        pickled::rows(self.columns.bind(py), &self.rows, self.converters(py))
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

/// Makes the result that was pickled.
#[pyfunction]
#[pyo3(signature = (names, values, converters=None))]
pub(crate) fn restore_rows<'py>(
    names: Vec<String>,
    values: &Bound<'py, PyTuple>,
    converters: Option<Vec<Option<Py<PyAny>>>>,
) -> PyResult<Bound<'py, Rows>> {
    Rows::restored(values.py(), Arc::new(pickled::restored(names, values)?), converters)
}
