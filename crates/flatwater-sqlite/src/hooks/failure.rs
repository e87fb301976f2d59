//! What code of the user said when it failed inside of SQLite, which keeps at most a text of it, or lets it not fail at all,
//! such as the comparison of a collation.
//!
//! Owns: the message and the cause, from the callback to the end of the run. Noted on the thread that runs the statement,
//! inside of SQLite, where nothing of the connection can be reached. Invariants: after a failure that SQLite does not know of
//! nothing is committed until a run has returned it, the one whose statement it was. That statement is not interrupted, because
//! SQLite would roll back the transaction around it too. No cause outlives the run that it was noted in. Leaves out: who notes
//! one, and undoing the statement.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::ffi;

use crate::error::cause::{Cause, Shared};
use crate::error::{Error, Result, SqliteError};

/// How many causes of one run are kept: SQLite ends the aggregate functions of a statement that has failed, and each may fail.
const CAUSES: usize = 16;

/// The failures of callbacks on one connection. Clones share them.
#[derive(Clone, Default)]
pub struct Failure(Arc<State>);

#[derive(Default)]
struct State {
    /// SQLite does not know of it.
    is_noted: AtomicBool,
    /// There is anything below.
    is_any: AtomicBool,
    noted: Mutex<Noted>,
}

#[derive(Default)]
struct Noted {
    failure: Option<(String, Cause)>,
    /// It is that the statement was to end.
    is_end: bool,
    /// Of failures that SQLite knows by their text.
    causes: Vec<(String, Shared)>,
}

impl Failure {
    /// Notes a failure that SQLite does not know of, in the place of an earlier one.
    pub fn note(&self, message: String, cause: Cause) {
        self.lock().failure = Some((message, cause));
        self.0.is_noted.store(true, Ordering::Relaxed);
        self.0.is_any.store(true, Ordering::Relaxed);
    }

    /// Notes that a comparison was ended, with its statement. SQLite does not know of it.
    pub fn note_end(&self) {
        self.note(String::new(), Cause::default());
        self.lock().is_end = true;
    }

    /// Notes what caused a failure, which SQLite will report with this message.
    pub fn explain(&self, message: String, cause: Shared) {
        let causes = &mut self.lock().causes;
        if causes.len() < CAUSES {
            causes.push((message, cause));
        }
        self.0.is_any.store(true, Ordering::Relaxed);
    }

    /// Returns true if there is a failure that SQLite does not know of, and that no run has returned yet.
    #[inline]
    #[must_use]
    pub fn is_noted(&self) -> bool {
        self.0.is_noted.load(Ordering::Relaxed)
    }

    /// Returns the failure in the place of what a statement returned because of it, or in spite of it.
    #[inline]
    pub(crate) fn instead_of<T>(&self, result: Result<T>) -> Result<T> {
        if !self.0.is_any.load(Ordering::Relaxed) {
            return result;
        }
        let Noted { failure, is_end, causes } = self.take_all();
        match failure {
            Some(_) if is_end && !result.as_ref().is_err_and(Error::is_of_files) => {
                Err(Error::Sqlite(SqliteError::from_code(ffi::SQLITE_INTERRUPT)))
            }
            Some((message, cause)) if !result.as_ref().is_err_and(Error::is_of_files) => {
                Err(Error::Callback(message, cause))
            }
            _ => result.map_err(|error| explained(error, causes)),
        }
    }

    /// Returns the failure that SQLite does not know of, and forgets all.
    #[must_use]
    pub fn take(&self) -> Option<String> {
        self.take_all().failure.map(|(message, _)| message)
    }

    #[cold]
    fn take_all(&self) -> Noted {
        self.0.is_noted.store(false, Ordering::Relaxed);
        self.0.is_any.store(false, Ordering::Relaxed);
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Noted> {
        self.0.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Adds the cause whose message SQLite reports.
fn explained(error: Error, causes: Vec<(String, Shared)>) -> Error {
    let Error::Sqlite(mut error) = error else { return error };
    let cause = causes.into_iter().find(|(message, _)| *message == error.message);
    if let Some((_, cause)) = cause {
        error.cause = Cause(Some(cause));
    }
    Error::Sqlite(error)
}
