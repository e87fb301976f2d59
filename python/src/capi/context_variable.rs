//! Context variables: values that differ between the flows of a program, such as the tasks of an event loop
//! (<https://docs.python.org/3/c-api/contextvars.html>).
//!
//! Owns: making one, and its value where the code runs. Leaves out: what the value is.

use std::ffi::CStr;
use std::ptr::null_mut;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// A variable without a default.
pub(crate) struct ContextVariable {
    name: &'static CStr,
    variable: PyOnceLock<Py<PyAny>>,
}

impl ContextVariable {
    pub(crate) const fn new(name: &'static CStr) -> Self {
        Self { name, variable: PyOnceLock::new() }
    }

    fn variable<'py>(&self, py: Python<'py>) -> PyResult<&Bound<'py, PyAny>> {
        let make = || {
            // SAFETY: the interpreter is attached, and the name ends with a NUL; the result is a new reference, or null with an
            // exception set.
            unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyContextVar_New(self.name.as_ptr(), null_mut())) }
                .map(Bound::unbind)
        };
        Ok(self.variable.get_or_try_init(py, make)?.bind(py))
    }

    /// Returns its value, if it has one here.
    pub(crate) fn get<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let mut value = null_mut();
        // SAFETY: the interpreter is attached, and it is a context variable.
        let code = unsafe { ffi::PyContextVar_Get(self.variable(py)?.as_ptr(), null_mut(), &raw mut value) };
        if code != 0 {
            return Err(PyErr::fetch(py));
        }
        // SAFETY: the interpreter is attached; the value is a new reference, or null if there is none.
        Ok(unsafe { Bound::from_owned_ptr_or_opt(py, value) })
    }

    /// Sets its value, here and in what is started from here.
    pub(crate) fn set(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let (py, variable) = (value.py(), self.variable(value.py())?);
        // SAFETY: the interpreter is attached, and it is a context variable; the result, which would set the value before again,
        // is a new reference, or null with an exception set.
        unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyContextVar_Set(variable.as_ptr(), value.as_ptr())) }.map(drop)
    }
}
