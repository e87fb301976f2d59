//! SQL functions and collations that are written in Python: what makes one of its name and its code.
//!
//! Owns: the object, from `create_function` to the database that has it. Made on the caller's thread. Invariants: only code
//! that can be called is taken; an object is given to one database. Leaves out: calling it (`calls_python`, `aggregates`), and
//! the methods for programs, which are Python's (`flatwater._given.functions`).

use flatwater::ErrorCode;
use std::sync::{Mutex, PoisonError};

use flatwater::bindings::functions::Function;
use flatwater::rusqlite::functions::FunctionFlags;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::foreign::aggregates::PythonAggregate;
use crate::foreign::calls_python::Code;
use crate::given::forms::Written;
use crate::told::errors::{raised, refused};

/// A function or a collation that no database has yet.
#[pyclass(frozen, module = "flatwater._native")]
pub(crate) struct NativeFunction(Mutex<Option<Function>>);

impl NativeFunction {
    pub(crate) fn take(&self, py: Python<'_>) -> PyResult<Function> {
        let function = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        function.ok_or_else(|| refused(py, ErrorCode::InvalidFunction, "it was given to a database before", None))
    }
}

/// Makes a function of this kind. A Python function may do anything, so it is never said to be innocuous.
#[pyfunction]
pub(crate) fn function(
    kind: &str,
    name: &str,
    arguments: i32,
    code: Bound<'_, PyAny>,
    deterministic: bool,
    sqlite3_datetimes: bool,
) -> PyResult<NativeFunction> {
    let py = code.py();
    if !code.is_callable() {
        let class = code.get_type().fully_qualified_name()?;
        return Err(PyTypeError::new_err(format!("{name} must be something that can be called, not {class}")));
    }
    let written = Written { sqlite3_datetimes, standard: false };
    let flags = FunctionFlags::SQLITE_UTF8;
    // The function keeps the object, so no other one has its address meanwhile.
    let address = code.as_ptr().addr();
    let code = Code::new(kind, name, code.unbind(), written);
    let (made, number) = match kind {
        "function" if deterministic => (Function::timed(name, arguments, move |context| code.scalar(context)), 0),
        "function" => (Function::scalar(name, arguments, flags, move |context| code.scalar(context)), 0),
        "aggregate" => (Function::aggregate(name, arguments, flags, PythonAggregate(code)), 1),
        "window function" => (Function::window(name, arguments, flags, PythonAggregate(code)), 2),
        _ => (Function::collation(name, move |one, other| code.compare(one, other)), 3),
    };
    let way = number << 2 | u32::from(deterministic) << 1 | u32::from(sqlite3_datetimes);
    let made = made.map_err(|error| raised(py, &error))?.known_as(address, way);
    Ok(NativeFunction(Mutex::new(Some(made))))
}
