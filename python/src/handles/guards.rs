//! The ends of open transactions and of open snapshots.
//!
//! Owns: the methods of their guards, and the guard of a snapshot. Runs on the loop's thread. Invariant: a guard that goes
//! away ends what it is the right to. Leaves out: the guard of a transaction as the place of a call (`transaction`); the
//! operations within (`executor`).

use std::sync::{Mutex, PoisonError};

use flatwater::bindings::{Output, Target, commit_or_stay};
use flatwater::{Call, Snapshot, Transaction};
use pyo3::prelude::*;

use crate::capi::call_type::new_call;
use crate::handles::transaction::{TransactionGuard, is_over};
use crate::results::shape::Shape;
use crate::told::errors::unexpected;
use crate::waiting::call::Body;

fn end<'py>(
    py: Python<'py>,
    name: &'static str,
    guard: &TransactionGuard,
    end: fn(Transaction<'static>) -> Call<()>,
) -> PyResult<Bound<'py, PyAny>> {
    let ending = guard.take().map(|open| end(open).into());
    new_call(py, Body::call(name, ending.ok_or_else(|| is_over(py)), Shape::Plain))
}

fn step<'py>(
    py: Python<'py>,
    operation: &'static str,
    guard: &TransactionGuard,
    name: &str,
    step: fn(&Transaction<'static>, &str) -> Call<()>,
) -> PyResult<Bound<'py, PyAny>> {
    new_call(py, Body::call(operation, guard.of_open(py, |open| step(open, name).into()), Shape::Plain))
}

impl TransactionGuard {
    /// Makes the guard of a transaction that was begun.
    pub(crate) fn of(py: Python<'_>, output: Output) -> PyResult<Py<PyAny>> {
        Py::new(py, Self::of_output(output)?).map(Py::into_any)
    }
}

#[pymethods]
impl TransactionGuard {
    /// A guard that `_begin` fills.
    #[new]
    fn new() -> Self {
        Self::unbegun()
    }

    /// Commits the transaction, of which this stays the guard: it is open if its COMMIT fails and SQLite leaves it open.
    fn commit_or_stay<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        new_call(py, Body::call("commit", self.target(py).map(|target| commit_or_stay(&target)), Shape::Plain))
    }

    /// Commits the transaction.
    fn commit<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        end(py, "commit", self, Transaction::commit)
    }

    /// Rolls the transaction back.
    fn rollback<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        end(py, "rollback", self, Transaction::rollback)
    }

    /// Opens a savepoint of this name.
    fn savepoint<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        step(py, "savepoint", self, name, Transaction::savepoint)
    }

    /// Closes the savepoint of this name, and keeps its changes.
    fn release<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        step(py, "release", self, name, Transaction::release)
    }

    /// Undoes what was changed since the savepoint of this name.
    fn rollback_to<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        step(py, "rollback_to", self, name, Transaction::rollback_to)
    }

    /// Rolls the transaction back, without waiting for that.
    fn abandon(&self) {
        drop(self.take());
    }

    /// True until the transaction is over.
    fn is_open(&self) -> bool {
        self.in_transaction()
    }
}

/// The right to an open snapshot.
#[pyclass(frozen, module = "flatwater._native")]
pub(crate) struct SnapshotGuard(Mutex<Option<Snapshot>>, Target);

impl SnapshotGuard {
    /// Makes the guard of a snapshot that was opened.
    pub(crate) fn of(py: Python<'_>, output: Output) -> PyResult<Py<PyAny>> {
        let Output::Snapshot(snapshot) = output else { return Err(unexpected()) };
        let target = Target::of(&snapshot);
        Py::new(py, Self(Mutex::new(Some(snapshot)), target)).map(Py::into_any)
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
