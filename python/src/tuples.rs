//! Results as the `sqlite3` module has them: rows as tuples, texts as the program wants them, declared types.
//!
//! Owns: making these of a result. Runs on any thread of the interpreter. Invariant: without a factory of texts a tuple is that of
//! its `Row`. Leaves out: converters and factories of rows (`flatwater._logical`).

use flatwater::ValueRef;
use flatwater::bindings::{cells, parameter_names};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};

use crate::capi::untracked;
use crate::cells::value_to_python;
use crate::rows::Rows;

/// Returns the rows from `first` until before `end` as tuples. `text` makes what stands for a text of its bytes; without it a text
/// is a `str`.
#[pyfunction]
pub(crate) fn tuples<'py>(
    rows: &Bound<'py, Rows>,
    first: usize,
    end: usize,
    text: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyList>> {
    let py = rows.py();
    let all = &rows.get().rows;
    let list = PyList::empty(py);
    for row in first..end.min(all.len()) {
        let name = |column| move || all.columns().nth(column).unwrap_or_default();
        let values = cells(all, row).enumerate().map(|(column, value)| match (value, text) {
            (ValueRef::Text(bytes), Some(text)) => text.call1((PyBytes::new(py, bytes),)),
            _ => value_to_python(py, value, name(column)),
        });
        // What a factory makes may refer to anything, also to the tuple.
        let made = match text {
            None => untracked::tuple(py, values)?,
            Some(_) => PyTuple::new(py, values.collect::<PyResult<Vec<_>>>()?)?,
        };
        list.append(made)?;
    }
    Ok(list)
}

/// Returns what each column was declared as in its table, or `None`.
#[pyfunction]
pub(crate) fn declared_types<'py>(rows: &Bound<'py, Rows>) -> PyResult<Bound<'py, PyTuple>> {
    let all = &rows.get().rows;
    let declared = |column| all.column(column).ok().and_then(|column| column.decl_type());
    PyTuple::new(rows.py(), (0..all.columns().len()).map(declared).collect::<Vec<_>>())
}

/// Returns the names of the parameters in a text, without their sign.
#[pyfunction]
pub(crate) fn parameters_of<'py>(py: Python<'py>, sql: &str) -> PyResult<Bound<'py, PyList>> {
    PyList::new(py, parameter_names(sql).collect::<Vec<_>>())
}
