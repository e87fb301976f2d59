//! The right to an open transaction, or to a nested one.
//!
//! Owns: the guard, and whether it is where a call begins. Runs on the loop's thread. Invariant: a guard that goes away rolls
//! its transaction back, also if it goes away before it begins. Leaves out: its methods, which make calls (`guards`).

use std::sync::{Mutex, MutexGuard, PoisonError};

use flatwater::bindings::{Output, Target, Unbegun};
use flatwater::{ErrorCode, Transaction};
use pyo3::prelude::*;

use crate::told::errors::{refused, unexpected};
use crate::waiting::owners;

/// The right to an open transaction, or to a nested one.
#[pyclass(frozen, weakref, module = "flatwater._native")]
pub(crate) struct TransactionGuard(Mutex<Right>);

enum Right {
    Unbegun,
    Open(Transaction<'static>),
    /// It was ended, or given up before it began.
    Over,
}

impl Right {
    fn open(&self) -> Option<&Transaction<'static>> {
        if let Self::Open(open) = self { Some(open) } else { None }
    }
}

impl TransactionGuard {
    /// Returns the right to nothing yet.
    pub(crate) fn unbegun() -> Self {
        Self(Mutex::new(Right::Unbegun))
    }

    /// Takes the right to a transaction that was begun, which is rolled back if this was given up meanwhile.
    pub(crate) fn fill(&self, py: Python<'_>, output: Output) -> PyResult<()> {
        let Output::Transaction(transaction) = output else { return Err(unexpected()) };
        let mut right = self.lock();
        if !matches!(*right, Right::Unbegun) {
            drop(right);
            return Err(is_over(py));
        }
        *right = Right::Open(transaction);
        Ok(())
    }

    /// Makes the guard of a transaction that was begun.
    pub(crate) fn of_output(output: Output) -> PyResult<Self> {
        let Output::Transaction(transaction) = output else { return Err(unexpected()) };
        Ok(Self(Mutex::new(Right::Open(transaction))))
    }

    fn lock(&self) -> MutexGuard<'_, Right> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes something of the transaction, which must be open.
    pub(crate) fn of_open<T>(&self, py: Python<'_>, make: impl FnOnce(&Transaction<'static>) -> T) -> PyResult<T> {
        self.lock().open().map(make).ok_or_else(|| is_over(py))
    }

    pub(crate) fn target(&self, py: Python<'_>) -> PyResult<Target> {
        self.of_open(py, |open| Target::of(open))
    }

    /// The flow that begins the call is inside this nested transaction. Returns true if that is where the call runs, or
    /// is in the same transaction.
    pub(crate) fn is_place_of(&self, call: &mut Unbegun<'_>) -> bool {
        self.lock().open().is_some_and(|nested| call.set_nested(nested))
    }

    /// Returns true if it is the right to nothing any more.
    pub(crate) fn is_taken(&self) -> bool {
        matches!(*self.lock(), Right::Over)
    }

    /// True until the transaction is over.
    pub(crate) fn in_transaction(&self) -> bool {
        self.lock().open().is_some_and(|open| open.in_transaction())
    }

    /// Takes the transaction, whose end is no longer the guard's.
    pub(crate) fn take(&self) -> Option<Transaction<'static>> {
        let Right::Open(transaction) = std::mem::replace(&mut *self.lock(), Right::Over) else { return None };
        owners::forget(&Target::of(&transaction));
        Some(transaction)
    }
}

impl Drop for TransactionGuard {
    fn drop(&mut self) {
        drop(self.take());
    }
}

pub(crate) fn is_over(py: Python<'_>) -> PyErr {
    refused(py, ErrorCode::Finished, "the transaction is finished", Some("begin another one"))
}
