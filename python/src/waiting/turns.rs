//! The turn of other tasks, for what is there without a call: rows that are in memory, and work that has nothing to wait for.
//!
//! Owns: asking for it. Runs on the loop's thread. Leaves out: suspending the task, which the code of Python does
//! (`flatwater._waiting.pause`), and the share of a thread, which the engine counts.

use flatwater::bindings;
use pyo3::prelude::*;

/// Counts something that is there. Returns true if other tasks are to have their turn.
#[pyfunction]
pub(crate) fn turn_is_due() -> bool {
    bindings::turn_is_due()
}

/// A task that suspended for the others goes on.
#[pyfunction]
pub(crate) fn turn_was_given() {
    bindings::turn_was_given();
}
