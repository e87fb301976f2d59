//! The turns of one logical connection, for its code in Python.
//!
//! Owns: waiting for a turn, in a task or on a thread. Runs with the interpreter's lock, on the threads that call. Invariant: a
//! thread that would wait for itself is refused. Leaves out: the order (`line`); what is done in a turn, which is in Python
//! (`flatwater._logical`).

use flatwater::ErrorCode;
use pyo3::prelude::*;

use crate::capi::call_type::new_call;
use crate::results::shape::Shape;
use crate::told::errors::refused;
use crate::waiting::awaiting::Awaiting;
use crate::waiting::blocked::Blocked;
use crate::waiting::call::Body;
use crate::waiting::line::{Line, Place};

/// The line of one connection.
#[pyclass(frozen, module = "flatwater._native")]
pub(crate) struct Turns(Line);

#[pymethods]
impl Turns {
    #[new]
    fn new() -> Self {
        Self(Line::default())
    }

    /// True if nobody has a turn, or waits for one.
    fn empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns a place in the line. `taking`: the call still takes what it was given, until `taken`.
    #[pyo3(signature = (*, shared, taking=false))]
    fn take(&self, py: Python<'_>, shared: bool, taking: bool) -> PyResult<Turn> {
        self.0.take(py, shared, taking).map(Turn)
    }
}

/// A place in the line: a step that is over when the turn has come. What goes away leaves it.
#[pyclass(frozen, module = "flatwater._native")]
pub(crate) struct Turn(Place);

#[pymethods]
impl Turn {
    #[getter]
    fn has_come(&self) -> bool {
        self.0.has_come()
    }

    /// The call has what it was given.
    fn taken(&self, py: Python<'_>) -> PyResult<()> {
        self.0.taken(py)
    }

    /// Gives a shared turn up for one that is not shared, which comes before those of later calls.
    fn alone(&self, py: Python<'_>) -> PyResult<()> {
        self.0.alone(py)
    }

    /// Ends it. Ending it twice does nothing.
    fn leave(&self, py: Python<'_>) -> PyResult<()> {
        self.0.leave(py)
    }

    /// Blocks this thread until the turn has come. Raises if that would be for ever.
    fn _wait(&self, py: Python<'_>) -> PyResult<()> {
        let bell = Blocked::new();
        while let Some(waits) = self.0.waits_here(bell.address()) {
            if !waits {
                return Ok(());
            }
            bell.wait(py)?;
        }
        let hint = "make it when the call before it has returned";
        Err(refused(
            py,
            ErrorCode::CallsItself,
            "this call would wait for itself: a call before it needs this thread to go on",
            Some(hint),
        ))
    }

    fn __await__(&self, py: Python<'_>) -> PyResult<Awaiting> {
        let coming = Body::other("turn", Ok(Box::new(self.0.coming())), Shape::Plain);
        new_call(py, coming).map(|call| Awaiting::new(call.unbind()))
    }
}
