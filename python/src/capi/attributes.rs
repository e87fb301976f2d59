//! Setting an attribute as `object` does, for a type that has its own say about which ones.
//!
//! Owns: that call. Runs on the thread of the caller.

use std::ptr::null_mut;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyString;

/// Sets an attribute, or removes it.
pub(crate) fn set_attribute(
    object: &Bound<'_, PyAny>,
    name: &Bound<'_, PyString>,
    value: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let value = value.map_or(null_mut(), Bound::as_ptr);
    // SAFETY: the interpreter is attached; the object, the name and the value live during the call.
    match unsafe { ffi::PyObject_GenericSetAttr(object.as_ptr(), name.as_ptr(), value) } {
        0 => Ok(()),
        _ => Err(PyErr::fetch(object.py())),
    }
}
