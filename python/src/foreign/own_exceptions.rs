//! Exceptions of functions that are written in Python, as the sources of errors of the engine.
//!
//! Owns: the exception, from the function to the call whose statement failed. Made on a thread of the database, and taken on that
//! of the call. Invariant: what is shown of it runs no code of Python. Leaves out: calling functions (`calls_python`).

use std::fmt;

use flatwater::Error;
use pyo3::prelude::*;

/// An exception of the code, and what SQLite says of it.
pub(crate) struct Raised {
    pub(crate) said: Box<str>,
    pub(crate) error: PyErr,
}

impl Raised {
    /// Returns the exception that caused an error of the engine.
    #[cold]
    pub(crate) fn cause_of(py: Python<'_>, error: &Error) -> Option<PyErr> {
        let raised = std::error::Error::source(error)?.downcast_ref::<Self>()?;
        Some(raised.error.clone_ref(py))
    }
}

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.said)
    }
}

/// Not the exception, whose text would be made by code of Python.
impl fmt::Debug for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Raised").field(&self.said).finish()
    }
}

impl std::error::Error for Raised {}
