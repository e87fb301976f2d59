//! What `call.__await__()` returns: an iterator that resumes the call, for `yield from`.
//!
//! Owns: passing on what it is sent. Runs on the loop's thread. Leaves out: `await`, which resumes the call itself.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

#[pyclass(frozen, module = "flatwater._native")]
pub(crate) struct Awaiting(Py<PyAny>);

impl Awaiting {
    pub(crate) fn new(call: Py<PyAny>) -> Self {
        Self(call)
    }
}

#[pymethods]
impl Awaiting {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.send(&py.None().into_bound(py))
    }

    fn send<'py>(&self, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.0.bind(value.py()).call_method1(intern!(value.py(), "send"), (value,))
    }

    #[pyo3(signature = (*exception))]
    fn throw<'py>(&self, exception: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        self.0.bind(exception.py()).call_method1(intern!(exception.py(), "throw"), exception)
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.0.bind(py).call_method0(intern!(py, "close")).map(drop)
    }
}
