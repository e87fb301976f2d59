//! The values of a result as Python objects.
//!
//! Owns: that conversion. Runs on the thread that touches the value. Invariant: INTEGER is `int`, REAL `float`, TEXT
//! `str`, BLOB `bytes`, NULL `None`, whatever the column was declared as. Leaves out: other types, which are made from
//! these.

use flatwater::bindings::cell;
use flatwater::{Rows, ValueRef};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyFloat, PyInt, PyString};

use crate::errors::operational;

/// Returns the value of a cell, which the result must have.
pub(crate) fn to_python<'py>(py: Python<'py>, rows: &Rows, row: usize, column: usize) -> PyResult<Bound<'py, PyAny>> {
    Ok(match cell(rows, row, column) {
        ValueRef::Null => py.None().into_bound(py),
        ValueRef::Integer(value) => PyInt::new(py, value).into_any(),
        ValueRef::Real(value) => PyFloat::new(py, value).into_any(),
        ValueRef::Text(text) => match PyString::from_bytes(py, text) {
            Ok(text) => text.into_any(),
            Err(_) => return Err(not_utf8(py, rows, column)),
        },
        ValueRef::Blob(bytes) => PyBytes::new(py, bytes).into_any(),
    })
}

#[cold]
fn not_utf8(py: Python<'_>, rows: &Rows, column: usize) -> PyErr {
    let name = rows.columns().nth(column).unwrap_or_default();
    operational(py, &format!("the text in column {name:?} is not UTF-8"), Some("read it with CAST(... AS BLOB)"))
}
