//! Being told when the `sqlite3` module opens a file.
//!
//! Owns: the hook, which cannot be removed again. The interpreter calls it for every audited event of the process, so it
//! does nothing but compare the name of the event. Runs on the thread of the event. Leaves out: which files are refused
//! (`flatwater._told.second_copy`).

use std::ffi::{CStr, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;

use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyTuple;

use super::thread_end::attached;

type Hook = unsafe extern "C" fn(event: *const c_char, arguments: *mut PyObject, data: *mut c_void) -> c_int;

unsafe extern "C" {
    fn PySys_AddAuditHook(hook: Hook, data: *mut c_void) -> c_int;
}

/// What the hook uses: it imports nothing itself, for an event may come at any time, also while the interpreter ends.
struct Known {
    /// The interpreter of this module; another one in the process has its own `sqlite3`.
    interpreter: i64,
    is_finalizing: Py<PyAny>,
    opens: Py<PyAny>,
}

static KNOWN: PyOnceLock<Known> = PyOnceLock::new();

/// Adds the hook, once.
pub(crate) fn watch(py: Python<'_>) -> PyResult<()> {
    KNOWN.get_or_try_init(py, || {
        let known = Known {
            interpreter: this_interpreter(),
            is_finalizing: py.import("sys")?.getattr("is_finalizing")?.unbind(),
            opens: py.import("flatwater._told.second_copy")?.getattr("opens")?.unbind(),
        };
        // SAFETY: the interpreter is attached, the hook lives as long as the process, and it uses no data.
        match unsafe { PySys_AddAuditHook(hook, null_mut()) } {
            0 => Ok(known),
            _ => Err(PyErr::fetch(py)),
        }
    })?;
    Ok(())
}

fn this_interpreter() -> i64 {
    // SAFETY: the interpreter is attached.
    unsafe { ffi::PyInterpreterState_GetID(ffi::PyInterpreterState_Get()) }
}

unsafe extern "C" fn hook(event: *const c_char, arguments: *mut PyObject, _: *mut c_void) -> c_int {
    // SAFETY: the interpreter passes the name of the event as a string of C.
    if unsafe { CStr::from_ptr(event) } != c"sqlite3.connect" {
        return 0;
    }
    let ask = |py: Python<'_>| {
        let Some(known) = KNOWN.get(py).filter(|known| known.interpreter == this_interpreter()) else { return 0 };
        // SAFETY: the interpreter passes a tuple, which lives during the call.
        let arguments = unsafe { Bound::from_borrowed_ptr(py, arguments).cast_into_unchecked::<PyTuple>() };
        match refuse(known, &arguments) {
            Ok(()) => 0,
            Err(error) => {
                error.restore(py);
                -1
            }
        }
    };
    // A panic has nowhere to go.
    catch_unwind(AssertUnwindSafe(|| attached(ask))).unwrap_or(0)
}

/// When the interpreter ends, its exit handlers have closed every database, and modules lose their names.
fn refuse(known: &Known, arguments: &Bound<'_, PyTuple>) -> PyResult<()> {
    let py = arguments.py();
    if !known.is_finalizing.bind(py).call0()?.is_truthy()? {
        known.opens.bind(py).call1((arguments.get_item(0)?,))?;
    }
    Ok(())
}
