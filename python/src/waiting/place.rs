//! Where in a program a call begins: whether it would wait for a transaction of its own, and in which nested one it is.
//!
//! Owns: telling that to a call. Runs on the loop's thread, or on the thread that waits, with the interpreter's lock.
//! Invariant: a call that has begun stays where it is. Leaves out: which nested transactions a flow of the program is in
//! (`nested`); refusing and moving a call, which the engine does.

use flatwater::bindings::Unbegun;
use pyo3::prelude::*;

use crate::{waiting::nested, waiting::owners};

/// Says where the call begins.
pub(crate) fn begin(py: Python<'_>, mut call: Unbegun<'_>) -> PyResult<()> {
    match call.database() {
        Some(database) if owners::is_inside(py, database)? => call.set_inside_body(),
        None if call.may_be_nested() => nested::find(py, |guard| guard.is_place_of(&mut call))?,
        _ => {}
    }
    Ok(())
}
