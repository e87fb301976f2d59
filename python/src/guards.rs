//! The rights to an open transaction and to an open snapshot.
//!
//! Owns: ending them. Runs on the loop's thread. Invariant: a guard that goes away ends what it is the right to. Leaves
//! out: the operations within (`executor`).

use std::sync::{Mutex, PoisonError};

use flatwater::front::{FrontCall, Target, commit, rollback};
use flatwater::{Snapshot, Transaction};
use pyo3::prelude::*;

use crate::call::Body;
use crate::capi::call_type::new_call;
use crate::errors::misuse;
use crate::shape::Shape;

/// The right to an open transaction, or to a nested one.
#[pyclass(frozen, module = "flatwater._native")]
pub(crate) struct TransactionGuard(Mutex<Option<Transaction<'static>>>);

impl TransactionGuard {
    pub(crate) fn new(transaction: Transaction<'static>) -> Self {
        Self(Mutex::new(Some(transaction)))
    }

    pub(crate) fn target(&self, py: Python<'_>) -> PyResult<Target> {
        let guard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        guard.as_ref().map(Target::of).ok_or_else(|| is_over(py))
    }

    fn end<'py>(
        &self,
        py: Python<'py>,
        name: &'static str,
        end: fn(Transaction<'static>) -> FrontCall,
    ) -> PyResult<Bound<'py, PyAny>> {
        let transaction = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        new_call(py, Body::call(name, transaction.map(end).ok_or_else(|| is_over(py)), Shape::Plain))
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

    /// True until the transaction is over.
    fn is_open(&self) -> bool {
        let guard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        guard.as_ref().is_some_and(Transaction::in_transaction)
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
