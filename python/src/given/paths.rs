//! Paths as Python has them: `str`, `bytes`, or an object that says which one it stands for.
//!
//! Owns: that conversion. `bytes` are what the system takes, as they are.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// The path of a file.
pub(crate) struct AnyPath(pub(crate) PathBuf);

impl<'py> FromPyObject<'_, 'py> for AnyPath {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        static DECODE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let decoded = DECODE.import(given.py(), "os", "fsdecode")?.call1((given,))?;
        decoded.extract().map(Self)
    }
}
