//! Objects that cannot be part of a reference cycle, or not yet.
//!
//! Owns: taking them out of the garbage collector's lists. Otherwise a collection visits each of the objects of a large
//! result, on the event loop's thread, and takes as long as the result is large. Invariant: nothing that an object refers
//! to which the collector does not know could refer to it.

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

/// Makes a tuple of these values, which are `None`, integers, floats, strings, bytes or rows.
pub(crate) fn tuple<'py>(
    py: Python<'py>,
    values: impl ExactSizeIterator<Item = PyResult<Bound<'py, PyAny>>>,
) -> PyResult<Bound<'py, PyTuple>> {
    let size = isize::try_from(values.len())?;
    // SAFETY: the interpreter is attached; the result is a new reference, or null with an exception set.
    let tuple = unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyTuple_New(size))?.cast_into_unchecked::<PyTuple>() };
    for (index, value) in (0..size).zip(values) {
        let value = value?.into_ptr();
        // SAFETY: the tuple is new, nobody else has it, and it has a place at `index`, which takes the reference over.
        unsafe { ffi::PyTuple_SET_ITEM(tuple.as_ptr(), index, value) };
    }
    // The empty tuple is shared, and left alone.
    if size > 0 {
        untrack(&tuple);
    }
    Ok(tuple)
}

/// Takes an object out of the collector's lists.
pub(crate) fn untrack<T>(object: &Bound<'_, T>) {
    // SAFETY: the interpreter is attached, and the object has what the collector puts before an object.
    unsafe {
        if ffi::PyObject_IS_GC(object.as_ptr()) != 0 {
            ffi::PyObject_GC_UnTrack(object.as_ptr().cast());
        }
    }
}

/// Puts a list into the collector's lists.
pub(crate) fn track(list: &Bound<'_, PyList>) {
    // SAFETY: the interpreter is attached, and a list has what the collector puts before an object.
    unsafe {
        if ffi::PyObject_GC_IsTracked(list.as_ptr()) == 0 {
            ffi::PyObject_GC_Track(list.as_ptr().cast());
        }
    }
}
