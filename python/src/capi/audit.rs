//! Being told when the `sqlite3` module opens a file.
//!
//! Owns: the hook, which cannot be removed again. The interpreter calls it for every audited event of the process, so it
//! does nothing but compare the name of the event. Runs on the thread of the event. Leaves out: which files are refused
//! (`flatwater._second_copy`).

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

/// The interpreter of this module; another one in the process has its own `sqlite3`.
static INTERPRETER: PyOnceLock<i64> = PyOnceLock::new();

/// Adds the hook, once.
pub(crate) fn watch(py: Python<'_>) -> PyResult<()> {
    INTERPRETER.get_or_try_init(py, || {
        let interpreter = this_interpreter();
        // SAFETY: the interpreter is attached, the hook lives as long as the process, and it uses no data.
        match unsafe { PySys_AddAuditHook(hook, null_mut()) } {
            0 => Ok(interpreter),
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
        if INTERPRETER.get(py) != Some(&this_interpreter()) {
            return 0;
        }
        // SAFETY: the interpreter passes a tuple, which lives during the call.
        let arguments = unsafe { Bound::from_borrowed_ptr(py, arguments).cast_into_unchecked::<PyTuple>() };
        match refuse(&arguments) {
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

fn refuse(arguments: &Bound<'_, PyTuple>) -> PyResult<()> {
    let second_copy = arguments.py().import("flatwater._second_copy")?;
    second_copy.getattr("opens")?.call1((arguments.get_item(0)?,))?;
    Ok(())
}
