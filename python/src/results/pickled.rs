//! Rows and results as `pickle` keeps them: the names of the columns, and the values of the rows one after the other.
//!
//! Owns: taking them apart and putting them together again. Runs on any thread of the interpreter. Invariant: what was pickled
//! by one version of the package is restored by the next ones. Leaves out: the objects (`rows`), whose module has the
//! functions that `pickle` calls.

use std::ops::Range;

use flatwater::Rows;
use flatwater::bindings::rows_of;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::given::forms::Written;
use crate::given::params;
use crate::results::cells::to_python;

/// What `__reduce__` of a row returns.
pub(crate) fn row<'py>(
    names: &Bound<'py, PyTuple>,
    (rows, index): (&Rows, usize),
    converters: Option<Vec<Option<Py<PyAny>>>>,
) -> PyResult<Bound<'py, PyTuple>> {
    reduced("restore_row", names, (rows, index..index + 1), converters)
}

/// What `__reduce__` of a result returns.
pub(crate) fn rows<'py>(
    names: &Bound<'py, PyTuple>,
    rows: &Rows,
    converters: Option<Vec<Option<Py<PyAny>>>>,
) -> PyResult<Bound<'py, PyTuple>> {
    reduced("restore_rows", names, (rows, 0..rows.len()), converters)
}

/// The values are those that SQLite stored. Converters are pickled as functions are, by their names.
fn reduced<'py>(
    restore: &str,
    names: &Bound<'py, PyTuple>,
    (rows, part): (&Rows, Range<usize>),
    converters: Option<Vec<Option<Py<PyAny>>>>,
) -> PyResult<Bound<'py, PyTuple>> {
    let py = names.py();
    let restore = py.import("flatwater._native")?.getattr(restore)?;
    let width = names.len();
    let cells = part.flat_map(|row| (0..width).map(move |column| (row, column)));
    let values = cells.map(|(row, column)| to_python(py, rows, row, column)).collect::<PyResult<Vec<_>>>()?;
    let values = PyTuple::new(py, values)?;
    match converters {
        Some(converters) => (restore, (names, values, converters)).into_pyobject(py),
        None => (restore, (names, values)).into_pyobject(py),
    }
}

/// Makes the result that was pickled, of the values of its rows, one after the other.
pub(crate) fn restored(names: Vec<String>, values: &Bound<'_, PyTuple>) -> PyResult<Rows> {
    let restored = params::of(values.as_any(), "", Written::default())?;
    Ok(rows_of(names.into_iter().map(Box::from).collect(), restored))
}
