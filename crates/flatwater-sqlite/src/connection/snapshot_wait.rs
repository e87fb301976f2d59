//! Waiting for a snapshot that does not begin at once, with the busy handler.
//!
//! Owns: repeating the attempt. SQLite by itself sleeps inside the attempt, for ten seconds in all, and calls neither
//! the busy nor the progress handler (`walTryBeginRead`). Runs on a thread that may block. Invariant: an attempt that
//! is repeated had no effect. Leaves out: ending the attempt (`guard`), and how long to wait (the busy handler).

use std::borrow::Borrow;

use rusqlite::ffi;

use crate::connection::Connection;
use crate::error::from_rusqlite;
use crate::error::{Error, Result, SqliteError};
use crate::guard::{Refused, refused};

impl Connection {
    /// Runs `f`, in which a snapshot may begin. A snapshot that does not begin at once is refused, and `f` runs again
    /// while the busy handler returns true and nothing ends the connection's statements. On a thread that must not be
    /// held up, `f` runs once.
    pub(crate) fn patiently<T>(&mut self, mut f: impl FnMut(&mut Self) -> Result<T>) -> Result<T> {
        run_patiently(self, |connection| f(connection))
    }

    /// Like `patiently`, for this crate's statements on rusqlite's connection. A failed attempt is repeated even if it
    /// began or read something.
    ///
    /// # Errors
    /// SQLITE_BUSY when the busy handler gave up, or SQLite's error.
    pub fn patiently_with<'c, T>(
        &'c self,
        mut f: impl FnMut(&'c rusqlite::Connection) -> rusqlite::Result<T>,
    ) -> Result<T> {
        run_patiently(self, |connection| f(connection.rusqlite()).map_err(from_rusqlite))
    }

    /// BEGIN IMMEDIATE for a user's closure; it begins as other statements do. The statements that the closure runs
    /// wait for attached files only.
    ///
    /// # Errors
    /// SQLITE_BUSY when the busy handler gave up, or the error of the file system.
    pub fn begin_immediate(&self) -> Result<rusqlite::Transaction<'_>> {
        let immediate = rusqlite::TransactionBehavior::Immediate;
        self.patiently_with(|sqlite| rusqlite::Transaction::new_unchecked(sqlite, immediate))
    }

    /// Waits, and returns true, if whoever uses the connection still waits for a lock that it did not get after so many
    /// tries: decided by the busy handler, and by what ends statements.
    #[must_use]
    pub fn waits_for_lock(&self, tries: u32) -> bool {
        self.hooks().waits(tries)
    }

    /// After a failure: waits, if the cause was that no snapshot began and the busy handler returns true. Otherwise
    /// returns the error.
    fn wait_for_snapshot(&self, error: Error, tries: u32) -> Result<()> {
        let Error::Sqlite(SqliteError { code, .. }) = &error else { return Err(error) };
        let is_refused = refused(*code) == Some(Refused::Snapshot);
        let is_locked = is_refused || *code & 0xff == ffi::SQLITE_BUSY;
        if is_locked && self.hooks().armed.is_over() {
            return Err(SqliteError::from_code(ffi::SQLITE_INTERRUPT).into());
        }
        if is_refused && self.hooks().waits(tries) { Ok(()) } else { Err(error) }
    }
}

fn run_patiently<C: Borrow<Connection>, T>(mut connection: C, mut f: impl FnMut(&mut C) -> Result<T>) -> Result<T> {
    let mut tries = 0;
    loop {
        // SAFETY: the guard is dropped before the connection is.
        let patient = unsafe { connection.borrow().patient() };
        let result = f(&mut connection);
        if patient.is_none() {
            return result;
        }
        drop(patient);
        match result {
            Err(error) => connection.borrow().wait_for_snapshot(error, tries)?,
            result => return result,
        }
        tries = tries.saturating_add(1);
    }
}
