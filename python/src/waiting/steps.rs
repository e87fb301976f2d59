//! Work of a logical connection that a thread waits for: a generator that yields what is waited for.
//!
//! Owns: resuming it. Runs on the caller's thread. Invariant: whatever exception comes, also that of a signal's handler, reaches
//! the generator or comes when it is over: so what it has taken it gives back. Leaves out: work that is awaited, and what
//! becomes of an error of Flatwater (`flatwater._logical.steps`).

use pyo3::exceptions::PyStopIteration;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyIterator;
use pyo3::types::iterator::PySendResult;

/// Does the work, and blocks this thread for its steps.
#[pyfunction]
pub(crate) fn drive<'py>(work: &Bound<'py, PyIterator>) -> PyResult<Bound<'py, PyAny>> {
    let py = work.py();
    let mut resumed = work.send(py.None().bind(py));
    loop {
        let step = match resumed? {
            PySendResult::Next(step) => step,
            PySendResult::Return(result) => return Ok(result),
        };
        resumed = match step.call_method0(intern!(py, "_wait")) {
            Ok(given) => work.send(&given),
            Err(error) => throw(work, &error),
        };
    }
}

fn throw<'py>(work: &Bound<'py, PyIterator>, error: &PyErr) -> PyResult<PySendResult<'py>> {
    let py = work.py();
    match work.call_method1(intern!(py, "throw"), (error.value(py),)) {
        Ok(step) => Ok(PySendResult::Next(step)),
        Err(error) if error.is_instance_of::<PyStopIteration>(py) => {
            Ok(PySendResult::Return(error.value(py).getattr(intern!(py, "value"))?))
        }
        Err(error) => Err(error),
    }
}
