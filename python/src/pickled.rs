//! Rows and results as `pickle` keeps them: the names of the columns, and the values of the rows one after the other.
//!
//! Owns: taking them apart and putting them together again. Runs on any thread of the interpreter. Invariant: what was pickled
//! by one version of the package is restored by the next ones.

use std::sync::Arc;

use flatwater::bindings::rows_of;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::cells::to_python;
use crate::params::{self, Datetimes};
use crate::rows::{self, Row, Rows};

/// What `__reduce__` of a row returns.
pub(crate) fn row<'py>(
    py: Python<'py>,
    names: Py<PyTuple>,
    values: Bound<'py, PyTuple>,
) -> PyResult<Bound<'py, PyTuple>> {
    let restore = py.import("flatwater._native")?.getattr("restore_row")?;
    (restore, (names, values)).into_pyobject(py)
}

/// What `__reduce__` of a result returns.
pub(crate) fn rows<'py>(py: Python<'py>, result: &Rows) -> PyResult<Bound<'py, PyTuple>> {
    let restore = py.import("flatwater._native")?.getattr("restore_rows")?;
    let width = result.columns.bind(py).len();
    let cells = (0..result.rows.len()).flat_map(|row| (0..width).map(move |column| (row, column)));
    let values = cells.map(|(row, column)| to_python(py, &result.rows, row, column)).collect::<PyResult<Vec<_>>>()?;
    (restore, (&result.columns, PyTuple::new(py, values)?)).into_pyobject(py)
}

/// Makes the row that was pickled.
#[pyfunction]
pub(crate) fn restore_row<'py>(names: Vec<String>, values: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, Row>> {
    rows::row(&restore_rows(names, values)?, 0)
}

/// Makes the result that was pickled, of the values of its rows, one after the other.
#[pyfunction]
pub(crate) fn restore_rows<'py>(names: Vec<String>, values: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, Rows>> {
    let restored = params::of(values.as_any(), "", Datetimes::Utc)?;
    let names = names.into_iter().map(Box::from).collect();
    Rows::new(values.py(), Arc::new(rows_of(names, restored)))
}
