//! A failure inside of a callback that SQLite does not let fail, such as the comparison of a collation.
//!
//! Owns: the message, from the callback to the end of the run. Noted on the thread that runs the statement, inside of SQLite,
//! where nothing of the connection can be reached. Invariants: after a failure nothing is committed until a run has returned
//! it, the one whose statement it was. That statement is not interrupted, because SQLite would roll back the transaction around
//! it too. Leaves out: who notes one, and undoing the statement.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::{Error, Result};

/// The failure of a callback on one connection, if there is one. Clones share it.
#[derive(Clone, Default)]
pub struct Failure(Arc<(AtomicBool, Mutex<String>)>);

impl Failure {
    /// Notes a failure, in the place of an earlier one.
    pub fn note(&self, message: String) {
        let (is_noted, noted) = &*self.0;
        *noted.lock().unwrap_or_else(PoisonError::into_inner) = message;
        is_noted.store(true, Ordering::Relaxed);
    }

    /// Returns true if there is one that no run has returned yet.
    #[inline]
    #[must_use]
    pub fn is_noted(&self) -> bool {
        self.0.0.load(Ordering::Relaxed)
    }

    /// Returns the failure in the place of what a statement returned because of it, or in spite of it.
    #[inline]
    pub(crate) fn instead_of<T>(&self, result: Result<T>) -> Result<T> {
        match self.take() {
            Some(message) if !result.as_ref().is_err_and(Error::is_of_files) => Err(Error::Callback(message)),
            _ => result,
        }
    }

    /// Returns what was noted, and forgets it.
    #[inline]
    #[must_use]
    pub fn take(&self) -> Option<String> {
        if !self.is_noted() {
            return None;
        }
        let (is_noted, noted) = &*self.0;
        is_noted.store(false, Ordering::Relaxed);
        Some(std::mem::take(&mut *noted.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}
