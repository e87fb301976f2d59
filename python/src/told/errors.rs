//! Errors of the engine as exceptions.
//!
//! Owns: filling in an exception of `flatwater._errors`. Runs wherever an error is raised. Leaves out: the classes,
//! which are Python's; which class an error has (`flatwater-bridge`).

use flatwater::calls::TimeoutEffect;
use flatwater::{Error, ErrorCode, ErrorKind};
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
    of_class(py, error, class_name(error), language)
}

/// The name of an error's class.
fn class_name(error: &Error) -> &'static str {
    match (error.kind(), class(error)) {
        (ErrorKind::Timeout, _) => "Timeout",
        (ErrorKind::Busy, _) => "Busy",
        (ErrorKind::RowNotFound, _) => "RowNotFound",
        (ErrorKind::Constraint, _) if error.is_unique_violation() => "UniqueViolation",
        (ErrorKind::Constraint, _) if error.is_foreign_key_violation() => "ForeignKeyViolation",
        (ErrorKind::Constraint, _) if error.is_not_null_violation() => "NotNullViolation",
        (ErrorKind::Constraint, _) if error.is_check_violation() => "CheckViolation",
        (_, Class::Operational) => "OperationalError",
        (_, Class::Integrity) => "IntegrityError",
        (_, Class::Data) => "DataError",
        (_, Class::Programming) => "ProgrammingError",
        (_, Class::Database) => "DatabaseError",
    }
}

fn of_class<'py>(py: Python<'py>, error: &Error, name: &str, language: Language) -> PyResult<Bound<'py, PyAny>> {
    static MAKE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
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
        error.code().map(ErrorCode::name),
        error.constraint().map(|of| (of.kind().name(), of.table(), of.columns(), of.name())),
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

/// Returns the exception for what the front end itself refuses.
#[cold]
pub(crate) fn refused(py: Python<'_>, code: ErrorCode, message: &str, hint: Option<&str>) -> PyErr {
    raised(py, &own(code, message, hint))
}

/// Returns the exception for a text that is not UTF-8, which is an `OperationalError`, as the `sqlite3` module has it.
#[cold]
pub(crate) fn undecoded(py: Python<'_>, message: &str, hint: &str) -> PyErr {
    let error = own(ErrorCode::UnreadableValue, message, Some(hint));
    of_class(py, &error, "OperationalError", Language::Python).map_or_else(|failed| failed, PyErr::from_value)
}

fn own(code: ErrorCode, message: &str, hint: Option<&str>) -> Error {
    let error = Error::new(code, message.to_owned());
    match hint {
        Some(hint) => error.with_hint(hint.to_owned()),
        None => error,
    }
}
