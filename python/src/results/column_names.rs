//! The names of columns as Python's strings.
//!
//! Owns: the names that were used last. Runs on any thread of the interpreter. Invariant: results of one statement have the
//! same tuple of the same strings. Leaves out: finding a column by its name (`rows`).

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use flatwater::Rows;
use flatwater::bindings::Schema;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

/// Names of columns by the identity of the schema, which each entry keeps.
type Names = HashMap<usize, (Schema, Py<PyTuple>)>;

/// The names that were used last.
static NAMES: Mutex<Option<Names>> = Mutex::new(None);
/// When there are more, all are forgotten.
const MOST_NAMES: usize = 512;

/// Returns the names of the columns of a result: interned strings, which results of one statement share.
pub(crate) fn names(py: Python<'_>, rows: &Rows) -> PyResult<Py<PyTuple>> {
    let schema = Schema::of(rows);
    let lock = || NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    let known = lock().as_ref().and_then(|known| known.get(&schema.key()).map(|(_, names)| names.clone_ref(py)));
    if let Some(names) = known {
        return Ok(names);
    }
    let names = PyTuple::new(py, rows.columns().map(|name| PyString::intern(py, name)).collect::<Vec<_>>())?.unbind();
    let mut guard = lock();
    let all = guard.get_or_insert_default();
    let forgotten = if all.len() >= MOST_NAMES { std::mem::take(all) } else { HashMap::new() };
    all.insert(schema.key(), (schema, names.clone_ref(py)));
    drop(guard);
    drop(forgotten);
    Ok(names)
}
