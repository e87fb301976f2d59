//! Tuples of values that cannot be part of a reference cycle.
//!
//! Owns: making them without the garbage collector's bookkeeping, which takes a third of the time of a large result.
//! Invariant: what the collector does not know contains only `None`, integers, floats, strings and bytes.

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// Makes a tuple of `length` values of a result.
pub(crate) fn of_cells<'py>(
    py: Python<'py>,
    length: usize,
    mut cell: impl FnMut(usize) -> PyResult<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyTuple>> {
    let size = isize::try_from(length)?;
    // SAFETY: the interpreter is attached; the result is a new reference, or null with an exception set.
    let tuple = unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyTuple_New(size))?.cast_into_unchecked::<PyTuple>() };
    for index in 0..size {
        let value = cell(index.unsigned_abs())?.into_ptr();
        // SAFETY: the tuple is new, nobody else has it, and it has a place at `index`, which takes the reference over.
        unsafe { ffi::PyTuple_SET_ITEM(tuple.as_ptr(), index, value) };
    }
    if length > 0 {
        // SAFETY: the tuple is tracked since it was made, and has no value that refers to others. The empty tuple,
        // which is shared, is left alone.
        unsafe { ffi::PyObject_GC_UnTrack(tuple.as_ptr().cast()) };
    }
    Ok(tuple)
}
