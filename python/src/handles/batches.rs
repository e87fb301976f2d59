//! A result that is fetched in batches.
//!
//! Owns: the native side of `Stream` and `Batches`. Runs on the loop's thread. Invariant: closing gives the reader back.
//! Leaves out: blocks and loops, which are in Python (`flatwater._handles.reads`).

use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, PoisonError};

use flatwater::bindings::{Output, empty_result, is_over, poll_batch, touch, unbegun};
use flatwater::calls::Batches;
use pyo3::prelude::*;

use crate::capi::call_type::new_call;
use crate::given::reading::Reading;
use crate::results::rows::Rows;
use crate::results::shape::Shape;
use crate::waiting::call::Body;
use crate::waiting::place;
use crate::waiting::polls::{Next, Shared, close};

/// The rest of a result.
#[pyclass(frozen, module = "flatwater._native")]
pub(crate) struct NativeBatches {
    of: Shared<Batches>,
    reading: Option<Arc<Reading>>,
    /// How many rows were returned.
    returned: Arc<AtomicUsize>,
}

impl NativeBatches {
    pub(crate) fn new(batches: Batches, reading: Option<Arc<Reading>>) -> Self {
        Self { of: Arc::new(Mutex::new(Some(batches))), reading, returned: Arc::default() }
    }
}

#[pymethods]
impl NativeBatches {
    /// Returns the next rows, or None after the last.
    fn next_batch<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        if let Some(call) = self.of.lock().unwrap_or_else(PoisonError::into_inner).as_mut().and_then(unbegun) {
            place::begin(py, call)?;
        }
        let next = Next::new(&self.of, |batches, context| {
            let output = |rows: Option<_>| rows.map_or(Output::Done(()), Output::Rows);
            poll_batch(batches, context).map(|batch| batch.map(output))
        });
        let shape = Shape::Batch(Arc::clone(&self.returned));
        new_call(py, Body::other("batches", Ok(Box::new(next)), shape).with(self.reading.clone()))
    }

    /// The rows of the last batch are being used.
    fn touch(&self) {
        if let Some(batches) = &*self.of.lock().unwrap_or_else(PoisonError::into_inner) {
            touch(batches);
        }
    }

    /// True if nothing is left to fetch.
    fn is_over(&self) -> bool {
        self.of.lock().unwrap_or_else(PoisonError::into_inner).as_ref().is_none_or(is_over)
    }

    /// Returns a result without rows, of which nothing is left to fetch: its columns are known.
    fn empty<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, Rows>>> {
        let empty = self.of.lock().unwrap_or_else(PoisonError::into_inner).as_ref().and_then(empty_result);
        empty.map(|rows| Rows::new(py, rows.into(), self.reading.as_deref())).transpose()
    }

    /// Gives the reader back.
    fn close(&self) {
        close(&self.of);
    }
}
