//! The values of a result as Python objects.
//!
//! Owns: that conversion. Runs on the thread that touches the value. Invariant: INTEGER is `int`, REAL `float`, TEXT
//! `str`, BLOB `bytes`, NULL `None`, whatever the column was declared as. Leaves out: other types, which are made from
//! these where the program said so (`casts`).

use flatwater::bindings::cell;
use flatwater::{Rows, ValueRef};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyFloat, PyInt};

use crate::capi::texts::short_text;
use crate::told::errors::undecoded;

/// Returns the value of a cell, which the result must have.
pub(crate) fn to_python<'py>(py: Python<'py>, rows: &Rows, row: usize, column: usize) -> PyResult<Bound<'py, PyAny>> {
    value_to_python(py, cell(rows, row, column), || rows.columns().nth(column).unwrap_or_default())
}

/// Returns a value of the column of this name.
#[inline]
pub(crate) fn value_to_python<'py, 'a>(
    py: Python<'py>,
    value: ValueRef<'_>,
    name: impl FnOnce() -> &'a str,
) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        ValueRef::Null => py.None().into_bound(py),
        ValueRef::Integer(value) => PyInt::new(py, value).into_any(),
        ValueRef::Real(value) => PyFloat::new(py, value).into_any(),
        ValueRef::Text(text) => match short_text(py, text) {
            Ok(text) => text.into_any(),
            Err(_) => return Err(not_utf8(py, name())),
        },
        ValueRef::Blob(bytes) => PyBytes::new(py, bytes).into_any(),
    })
}

/// The exception for a text in the column of this name.
#[cold]
pub(crate) fn not_utf8(py: Python<'_>, name: &str) -> PyErr {
    undecoded(py, &format!("the text in column {name:?} is not UTF-8"), "read it with CAST(... AS BLOB)")
}
