//! What makes other values of those that SQLite stored.
//!
//! Owns: which columns of a result have a converter, by the rules of the `sqlite3` module, and calling one. Runs on the
//! thread that touches a value. Invariants: a result without such columns is as one of a database without converters; the
//! bytes of a value are those that the `sqlite3` module passes. Leaves out: what programs give (`flatwater._given.forms`), and
//! whose results (`forms`).

use std::sync::Arc;

use flatwater::{Rows, ValueRef};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyFloat, PyMapping, PyString, PyTuple};

/// The converters of a database, by the names of types in upper case.
pub(crate) struct Converters {
    by_type: Py<PyMapping>,
    /// Whether the declared type of a column is looked at, and the end of its name: `... AS "at [timestamp]"`.
    from_declared: bool,
    from_name: bool,
}

/// What is known of the columns of one result: which are converted, and their names without types.
#[derive(Default)]
pub(crate) struct Casts {
    by_column: Box<[Option<Py<PyAny>>]>,
    pub(crate) names: Option<Py<PyTuple>>,
}

impl Converters {
    pub(crate) fn new(by_type: Py<PyMapping>, from_declared: bool, from_name: bool) -> Arc<Self> {
        Arc::new(Self { by_type, from_declared, from_name })
    }

    /// Returns what is special about the columns of a result, if anything is.
    pub(crate) fn casts(&self, py: Python<'_>, rows: &Rows) -> PyResult<Option<Casts>> {
        let mut casts = Casts::default();
        let declared = |column| rows.column(column).ok().and_then(|one| one.decl_type().map(str::to_owned));
        let converters = rows.columns().enumerate().map(|(column, name)| {
            let of_name = || self.find(py, type_in_name(name)?).transpose();
            let of_declared = || self.find(py, first_word(&declared(column)?)).transpose();
            let found = self.from_name.then(of_name).flatten();
            found.or_else(|| self.from_declared.then(of_declared).flatten()).transpose()
        });
        casts.by_column = converters.collect::<PyResult<_>>()?;
        if self.from_name && rows.columns().any(|name| name.contains('[')) {
            let names = rows.columns().map(|name| PyString::intern(py, without_type(name)));
            casts.names = Some(PyTuple::new(py, names.collect::<Vec<_>>())?.unbind());
        }
        let is_special = casts.names.is_some() || casts.by_column.iter().any(Option::is_some);
        Ok(is_special.then_some(casts))
    }

    fn find(&self, py: Python<'_>, name: &str) -> PyResult<Option<Py<PyAny>>> {
        let found = self.by_type.bind(py).call_method1("get", (name.to_uppercase(),))?;
        Ok((!found.is_none()).then(|| found.unbind()))
    }
}

impl Casts {
    /// Returns the converter of a column.
    #[inline]
    pub(crate) fn of<'py>(&self, py: Python<'py>, column: usize) -> Option<&Bound<'py, PyAny>> {
        self.by_column.get(column)?.as_ref().map(|converter| converter.bind(py))
    }

    /// Returns the converters of all columns.
    pub(crate) fn all(&self, py: Python<'_>) -> Vec<Option<Py<PyAny>>> {
        self.by_column.iter().map(|one| one.as_ref().map(|converter| converter.clone_ref(py))).collect()
    }

    /// Makes those that were pickled.
    pub(crate) fn restored(by_column: Vec<Option<Py<PyAny>>>) -> Self {
        Self { by_column: by_column.into(), names: None }
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
