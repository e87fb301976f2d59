//! Who has a transaction of a database open: tasks, or threads without an event loop.
//!
//! Owns: finding out whether it is the caller. Runs on the loop's thread, or on the thread that waits. Leaves out: adding
//! and removing them, which the object of a transaction does.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

/// The tasks and threads that have a transaction open, as keys. `None`: there cannot be any.
pub(crate) struct Owners(Option<Py<PyDict>>);

impl Owners {
    pub(crate) fn new(keys: Option<Py<PyDict>>) -> Self {
        Self(keys)
    }

    /// Returns true if the task that runs now is one of them.
    pub(crate) fn has_task(&self, py: Python<'_>) -> PyResult<bool> {
        self.has(py, current_task)
    }

    /// Returns true if this thread is one of them.
    pub(crate) fn has_thread(&self, py: Python<'_>) -> PyResult<bool> {
        self.has(py, this_thread)
    }

    fn has<'py>(&self, py: Python<'py>, who: fn(Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>>) -> PyResult<bool> {
        let Some(keys) = self.0.as_ref().map(|keys| keys.bind(py)).filter(|keys| !keys.is_empty()) else {
            return Ok(false);
        };
        who(py)?.map_or(Ok(false), |who| keys.contains(who))
    }
}

/// The task that runs now, if this is in a task.
fn current_task(py: Python<'_>) -> PyResult<Option<Bound<'_, PyAny>>> {
    static FUNCTION: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    // Without a loop, as on a plain thread, it raises.
    let task = FUNCTION.import(py, "asyncio", "current_task")?.call0().ok();
    Ok(task.filter(|task| !task.is_none()))
}

/// The number of this thread, for calls that wait.
fn this_thread(py: Python<'_>) -> PyResult<Option<Bound<'_, PyAny>>> {
    static FUNCTION: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    FUNCTION.import(py, "threading", "get_ident")?.call0().map(Some)
}
