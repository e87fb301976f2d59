//! A connection of the caller's own.
//!
//! Owns: the handle, and what only such a connection can do. Runs on the loop's thread. Invariant: a handle that goes
//! away closes its connection. Leaves out: the operations that run SQL (`executor`), calling what it is to call
//! (`callbacks`).

use flatwater::Connection;
use flatwater::bindings::{Target, functions};
use pyo3::prelude::*;

use crate::capi::call_type::new_call;
use crate::capi::thread_end::inside;
use crate::foreign::callbacks;
use crate::foreign::functions::NativeFunction;
use crate::given::forms::Written;
use crate::results::shape::Shape;
use crate::told::errors::raised;
use crate::waiting::call::Body;

/// A connection of the caller's own.
#[pyclass(frozen, module = "flatwater._native")]
pub(crate) struct NativeConnection(Connection);

impl NativeConnection {
    pub(crate) fn new(connection: Connection) -> Self {
        Self(connection)
    }

    pub(crate) fn target(&self) -> Target {
        Target::of(&self.0)
    }
}

#[pymethods]
impl NativeConnection {
    /// Closes the connection, and rolls back what is open on it.
    fn close<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        new_call(py, Body::call("close", Ok(self.0.close().into()), Shape::Plain))
    }

    /// True while a transaction is open.
    fn in_transaction(&self) -> bool {
        self.0.in_transaction()
    }

    /// How many rows were changed.
    fn total_changes(&self) -> u64 {
        self.0.total_changes()
    }

    /// Interrupts what runs.
    fn interrupt(&self) {
        self.0.interrupt();
    }

    /// Gives the connection a function or a collation.
    fn create(&self, function: &Bound<'_, NativeFunction>) -> PyResult<()> {
        let py = function.py();
        inside(py, || {
            let function = function.get().take(py)?;
            functions::create_on(&self.0, function).map_err(|error| raised(py, &error))
        })
    }

    /// Removes a function.
    fn remove_function(&self, py: Python<'_>, name: &str, arguments: i32) -> PyResult<()> {
        let remove = || self.0.functions().remove_function(name, arguments);
        inside(py, || remove().map_err(|error| raised(py, &error)))
    }

    /// Removes a collation.
    fn remove_collation(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        let remove = || self.0.functions().remove_collation(name);
        inside(py, || remove().map_err(|error| raised(py, &error)))
    }

    /// True if datetimes are stored as the `sqlite3` module stores them.
    fn keeps_datetimes(&self) -> bool {
        Written::of(&self.target()).sqlite3_datetimes
    }

    /// Calls `code` for what a statement does, while it is prepared.
    fn set_authorizer(&self, code: Option<Py<PyAny>>) {
        functions::set_callbacks(&self.0, |callbacks| callbacks.authorize = code.map(callbacks::authorize));
    }

    /// Calls `code` after so many steps of a statement.
    fn set_progress_handler(&self, code: Option<Py<PyAny>>, steps: i32) {
        let code = code.filter(|_| steps > 0);
        functions::set_callbacks(&self.0, |callbacks| {
            callbacks.progress = code.map(|code| (steps, callbacks::progress(code)));
        });
    }

    /// Calls `code` with each statement that begins to run.
    fn set_trace_callback(&self, code: Option<Py<PyAny>>) {
        functions::set_callbacks(&self.0, |callbacks| callbacks.trace = code.map(callbacks::trace));
    }
}
