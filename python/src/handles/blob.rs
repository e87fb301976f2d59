//! A large value that is read and written in parts.
//!
//! Owns: the calls, each of which has its position as an argument. Runs on the loop's thread; no work runs here. Leaves
//! out: the position of a program in the value, which is Python's (`flatwater._handles.blob`).

use flatwater::bindings::Output;
use flatwater::calls::Blob;
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;

use crate::capi::call_type::new_call;
use crate::capi::thread_end::inside;
use crate::given::seconds::{Seconds, timed};
use crate::results::shape::Shape;
use crate::told::errors::unexpected;
use crate::waiting::call::Body;

/// An open blob.
#[pyclass(frozen, module = "flatwater._native")]
pub(crate) struct NativeBlob {
    blob: Blob,
}

impl NativeBlob {
    /// Makes the handle of a blob that was opened.
    pub(crate) fn of(py: Python<'_>, output: Output) -> PyResult<Py<PyAny>> {
        let Output::Blob(blob) = output else { return Err(unexpected()) };
        Py::new(py, Self { blob }).map(Py::into_any)
    }
}

#[pymethods]
impl NativeBlob {
    fn __len__(&self) -> usize {
        self.blob.len()
    }

    /// Returns up to so many bytes from a position on.
    fn read<'py>(
        &self,
        py: Python<'py>,
        position: usize,
        bytes: usize,
        timeout: Option<Seconds>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let call = inside(py, || timed(self.blob.read_at(position, bytes).into(), timeout));
        new_call(py, Body::call("read", call, Shape::Plain))
    }

    /// Writes bytes from a position on. They are copied here.
    fn write<'py>(
        &self,
        py: Python<'py>,
        position: usize,
        data: &Bound<'py, PyAny>,
        timeout: Option<Seconds>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let call = inside(py, || {
            let bytes = PyBuffer::<u8>::get(data)?.to_vec(py)?;
            timed(self.blob.write_at(position, bytes).into(), timeout)
        });
        new_call(py, Body::call("write", call, Shape::Plain))
    }
}
