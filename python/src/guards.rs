//! The rights to an open transaction and to an open snapshot.
//!
//! Owns: ending them. Runs on the loop's thread. Invariant: a guard that goes away ends what it is the right to. Leaves
//! out: the operations within (`executor`).

use std::sync::{Mutex, MutexGuard, PoisonError};

use flatwater::bindings::{FrontCall, Target, Unbegun, commit, rollback};
use flatwater::{Snapshot, Transaction};
use pyo3::prelude::*;

use crate::call::Body;
use crate::capi::call_type::new_call;
use crate::errors::misuse;
use crate::owners;
use crate::shape::Shape;

/// The right to an open transaction, or to a nested one.
#[pyclass(frozen, weakref, module = "flatwater._native")]
pub(crate) struct TransactionGuard(Mutex<Option<Transaction<'static>>>);

impl TransactionGuard {
    pub(crate) fn new(transaction: Transaction<'static>) -> Self {
        Self(Mutex::new(Some(transaction)))
    }

    fn lock(&self) -> MutexGuard<'_, Option<Transaction<'static>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn target(&self, py: Python<'_>) -> PyResult<Target> {
        self.lock().as_ref().map(|open| Target::of(open)).ok_or_else(|| is_over(py))
    }

    /// The flow that begins the call is inside this nested transaction. Returns true if that is where the call runs, or
    /// is in the same transaction.
    pub(crate) fn is_place_of(&self, call: &mut Unbegun<'_>) -> bool {
        self.lock().as_ref().is_some_and(|nested| call.set_nested(nested))
    }

    fn take(&self) -> Option<Transaction<'static>> {
        let transaction = self.lock().take()?;
        owners::forget(&Target::of(&transaction));
        Some(transaction)
    }

    fn end<'py>(
        &self,
        py: Python<'py>,
        name: &'static str,
        end: fn(Transaction<'static>) -> FrontCall,
    ) -> PyResult<Bound<'py, PyAny>> {
        new_call(py, Body::call(name, self.take().map(end).ok_or_else(|| is_over(py)), Shape::Plain))
    }
}

impl Drop for TransactionGuard {
    fn drop(&mut self) {
        drop(self.take());
    }
}

fn is_over(py: Python<'_>) -> PyErr {
    misuse(py, "the transaction is finished", Some("begin another one"))
}

#[pymethods]
impl TransactionGuard {
    /// Commits the transaction.
    fn commit<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.end(py, "commit", commit)
    }

    /// Rolls the transaction back.
    fn rollback<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.end(py, "rollback", rollback)
    }

    /// Rolls the transaction back, without waiting for that.
    fn abandon(&self) {
        drop(self.take());
    }

    /// Notes who must go on so that the transaction ends: a task, or the address of the frame with its `with` block.
    fn own(&self, who: &Bound<'_, PyAny>) -> PyResult<()> {
        owners::note(self.target(who.py())?, who)
    }

    /// True until the transaction is over.
    fn is_open(&self) -> bool {
        self.lock().as_ref().is_some_and(|open| open.in_transaction())
    }
}

/// The right to an open snapshot.
#[pyclass(frozen, module = "flatwater._native")]
pub(crate) struct SnapshotGuard(Mutex<Option<Snapshot>>, Target);

impl SnapshotGuard {
    pub(crate) fn new(snapshot: Snapshot) -> Self {
        let target = Target::of(&snapshot);
        Self(Mutex::new(Some(snapshot)), target)
    }

    pub(crate) fn target(&self) -> Target {
        self.1.clone()
    }
}

#[pymethods]
impl SnapshotGuard {
    /// Ends the snapshot.
    fn close(&self) {
        let snapshot = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(snapshot);
    }
}
