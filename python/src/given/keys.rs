//! The key of an encrypted database, as Python has it.
//!
//! Owns: its two forms: a `str` is a passphrase, 32 `bytes` are the key itself. Invariants: it is read where Python has
//! it, and copied once, into memory that is overwritten; no exception has it in its text. Leaves out: what a key does
//! (`flatwater`).

use flatwater::options::Key;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

/// A key that is an argument.
pub(crate) struct AnyKey(pub(crate) Key);

impl<'py> FromPyObject<'_, 'py> for AnyKey {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(passphrase) = given.cast::<PyString>() {
            return Ok(Self(Key::text(passphrase.to_str().map_err(|_| no_text())?)));
        }
        let Ok(bytes) = given.cast::<PyBytes>() else {
            return Err(PyTypeError::new_err("a key is a passphrase as str, or 32 bytes"));
        };
        let raw = bytes.as_bytes().try_into();
        raw.map(|raw| Self(Key::raw(raw))).map_err(|_| PyValueError::new_err("a key of bytes has 32 of them"))
    }
}

/// The error of Python for such a text has the text in it.
#[cold]
fn no_text() -> PyErr {
    PyValueError::new_err("the key has a surrogate, which no UTF-8 has")
}
