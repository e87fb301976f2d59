//! A connection of the caller's own.
//!
//! Owns: the handle, and what only such a connection can do. Runs on the loop's thread. Invariant: a handle that goes away
//! closes its connection. Leaves out: the operations that run SQL (`executor`).

use flatwater::Connection;
use flatwater::bindings::{Target, close_connection};
use pyo3::prelude::*;

use crate::call::Body;
use crate::capi::call_type::new_call;
use crate::shape::Shape;

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
        new_call(py, Body::call("close", Ok(close_connection(&self.0)), Shape::Plain))
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
}
