//! What makes other values of those that SQLite stored: the functions of a program.
//!
//! Owns: which columns of a result have a converter, by the rules of the `sqlite3` module, and calling one. Runs on the
//! thread that touches a value. Invariant: the bytes of a value are those that the `sqlite3` module passes. Leaves out: what
//! programs give (`flatwater._given.forms`), and what else a column may have (`reading`).

use flatwater::values::Column;
use flatwater::{Rows, ValueRef};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyFloat, PyMapping};

/// The converters of a database, by the names of types in upper case.
pub(crate) struct Converters {
    by_type: Py<PyMapping>,
    /// Whether the declared type of a column is looked at, and the end of its name: `... AS "at [timestamp]"`.
    from_declared: bool,
    from_name: bool,
}

impl Converters {
    pub(crate) fn new(by_type: Py<PyMapping>, from_declared: bool, from_name: bool) -> Self {
        Self { by_type, from_declared, from_name }
    }

    /// Returns the converter of a column, if it has one.
    pub(crate) fn of(&self, py: Python<'_>, column: Column<'_>) -> PyResult<Option<Py<PyAny>>> {
        if self.from_name
            && let Some(name) = type_in_name(column.name())
            && let Some(found) = self.find(py, name)?
        {
            return Ok(Some(found));
        }
        match column.decl_type().filter(|_| self.from_declared) {
            Some(declared) => self.find(py, first_word(declared)),
            None => Ok(None),
        }
    }

    /// Returns the names of the columns without types, if one has a type in it.
    pub(crate) fn names<'a>(&self, rows: &'a Rows) -> Option<impl Iterator<Item = &'a str>> {
        let has_types = self.from_name && rows.columns().any(|name| name.contains('['));
        has_types.then(|| rows.columns().map(without_type))
    }

    fn find(&self, py: Python<'_>, name: &str) -> PyResult<Option<Py<PyAny>>> {
        let found = self.by_type.bind(py).call_method1("get", (name.to_uppercase(),))?;
        Ok((!found.is_none()).then(|| found.unbind()))
    }
}

/// Returns what the converter makes of a value. NULL and the empty value are None, as in the `sqlite3` module, which learns
/// of neither that there are bytes.
pub(crate) fn convert<'py>(converter: &Bound<'py, PyAny>, value: ValueRef<'_>) -> PyResult<Bound<'py, PyAny>> {
    let py = converter.py();
    let bytes = |bytes: &[u8]| PyBytes::new(py, bytes);
    converter.call1((match value {
        ValueRef::Null | ValueRef::Text(b"") | ValueRef::Blob(b"") => return Ok(py.None().into_bound(py)),
        ValueRef::Integer(value) => bytes(value.to_string().as_bytes()),
        ValueRef::Real(value) => bytes(PyFloat::new(py, value).repr()?.to_str()?.as_bytes()),
        ValueRef::Text(value) | ValueRef::Blob(value) => bytes(value),
    },))
}

/// The name of a declared type, without its sizes and what follows.
fn first_word(declared: &str) -> &str {
    declared.split([' ', '(']).next().unwrap_or_default()
}

/// What is in the first brackets that are closed.
fn type_in_name(name: &str) -> Option<&str> {
    let begin = name.find('[')?;
    let end = begin + name[begin..].find(']')?;
    name[..end].rsplit('[').next()
}

/// What stands before the first bracket, and before a blank in front of that.
fn without_type(name: &str) -> &str {
    let name = name.split('[').next().unwrap_or_default();
    name.strip_suffix(' ').unwrap_or(name)
}
