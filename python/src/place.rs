//! Where in a program a call begins: whether it would wait for a transaction of its own, and in which nested one it is.
//!
//! Owns: telling that to a call. Runs on the loop's thread, or on the thread that waits, with the interpreter's lock.
//! Invariant: a call that has begun stays where it is. Leaves out: what a flow of the program is (`flatwater._flow`);
//! refusing and moving a call, which the engine does.

use flatwater::bindings::Unbegun;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyList;

use crate::owners;
use crate::transaction::TransactionGuard;

/// Says where the call begins.
pub(crate) fn begin(py: Python<'_>, mut call: Unbegun<'_>) -> PyResult<()> {
    static NESTED: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    match call.database() {
        Some(database) if owners::is_inside(py, database)? => call.set_inside_body(),
        None if call.may_be_nested() => {
            for guard in NESTED.import(py, "flatwater._flow", "nested")?.call0()?.cast::<PyList>()? {
                if guard.cast::<TransactionGuard>()?.get().is_place_of(&mut call) {
                    break;
                }
            }
        }
        _ => {}
    }
    Ok(())
}
