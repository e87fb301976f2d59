//! Errors of the engine as exceptions.
//!
//! Owns: filling in an exception of `flatwater._errors`. Runs wherever an error is raised. Leaves out: the classes,
//! which are Python's; which class an error has (`flatwater-bridge`).

use flatwater::calls::TimeoutEffect;
use flatwater::{Error, ErrorKind};
use flatwater_bridge::{Class, Language, class, hint};
use pyo3::exceptions::{PyAttributeError, PyKeyError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyString;

use crate::foreign::own_exceptions::Raised;

/// Returns the exception for an error of the engine, in code that awaits.
#[cold]
pub(crate) fn raised(py: Python<'_>, error: &Error) -> PyErr {
    caused(py, error, Language::Python)
}

/// The same in code without an event loop.
#[cold]
pub(crate) fn raised_blocking(py: Python<'_>, error: &Error) -> PyErr {
    caused(py, error, Language::BlockingPython)
}

/// The exception, with the one of a function that caused it.
fn caused(py: Python<'_>, error: &Error, language: Language) -> PyErr {
    let raised = make(py, error, language).map_or_else(|failed| failed, PyErr::from_value);
    if let Some(cause) = Raised::cause_of(py, error) {
        raised.set_cause(py, Some(cause));
    }
    raised
}

fn make<'py>(py: Python<'py>, error: &Error, language: Language) -> PyResult<Bound<'py, PyAny>> {
    static MAKE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let name = match class(error) {
        _ if error.kind() == ErrorKind::Timeout => "TimeoutError",
        _ if error.kind() == ErrorKind::RowNotFound => "RowNotFound",
        Class::Operational => "OperationalError",
        Class::Integrity => "IntegrityError",
        Class::Data => "DataError",
        Class::Programming => "ProgrammingError",
        Class::Database => "DatabaseError",
    };
    let applied = error.applied().map(|applied| match applied {
        TimeoutEffect::No => "no",
        TimeoutEffect::Yes => "yes",
        TimeoutEffect::Unknown => "unknown",
    });
    MAKE.import(py, "flatwater._errors", "make")?.call1((
        name,
        error.message(),
        error.kind().name(),
        error.is_retryable(),
        error.sql(),
        hint(error, language),
        (error.sqlite_code(), error.sqlite_name()),
        error.offset(),
        applied,
    ))
}

/// Returns the exception for an attribute that an object of the package does not have. `hints` is a function of
/// `flatwater._told.names`, which raises it.
#[cold]
pub(crate) fn unknown_attribute(hints: &str, owner: &Bound<'_, PyAny>, name: &Bound<'_, PyString>) -> PyErr {
    let raise = || owner.py().import("flatwater._told.names")?.getattr(hints)?.call1((owner, name));
    match raise() {
        Err(error) => error,
        Ok(_) => PyAttributeError::new_err(format!("there is no attribute {name}")),
    }
}

/// Returns the `KeyError` of a column that a result does not have.
#[cold]
pub(crate) fn no_column<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> PyErr {
    let names = names.collect::<Vec<_>>().join(", ");
    PyKeyError::new_err(format!("there is no column named {name:?}; the result has {names}"))
}

/// The error of an output that the call cannot have.
#[cold]
pub(crate) fn unexpected() -> PyErr {
    PyRuntimeError::new_err("the call has another result than its kind has; please report it")
}

/// Returns a `ProgrammingError` of the front end itself.
#[cold]
pub(crate) fn misuse(py: Python<'_>, message: &str, hint: Option<&str>) -> PyErr {
    own(py, "ProgrammingError", message, "misuse", hint)
}

/// Returns an `OperationalError` of the front end itself.
#[cold]
pub(crate) fn operational(py: Python<'_>, message: &str, hint: Option<&str>) -> PyErr {
    own(py, "OperationalError", message, "sql", hint)
}

fn own(py: Python<'_>, class: &str, message: &str, kind: &str, hint: Option<&str>) -> PyErr {
    let make =
        || py.import("flatwater._errors")?.getattr("make")?.call1((class, message, kind, false, None::<&str>, hint));
    make().map_or_else(|failed| failed, PyErr::from_value)
}
