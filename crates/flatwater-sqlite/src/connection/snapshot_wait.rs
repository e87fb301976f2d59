//! Waiting for a snapshot that does not begin at once, with the busy handler.
//!
//! Owns: repeating the attempt. SQLite by itself sleeps inside the attempt, for ten seconds in all, and calls neither
//! the busy nor the progress handler (`walTryBeginRead`). Runs on a thread that may block. Invariant: an attempt that
//! is repeated had no effect. Leaves out: ending the attempt (`guard`), and how long to wait (the busy handler).

use std::borrow::Borrow;

use rusqlite::ffi;

use super::Sqlite;
use crate::error::{Error, Result, SqliteError, from_rusqlite};
use crate::guard::PatientSnapshots;
use crate::guard::refusals::{Refused, refused};
use crate::hooks::Hooks;

impl Sqlite {
    /// Runs `f`, in which a snapshot may begin, as this crate's statements run: if the snapshot does not begin at once, `f`
    /// runs again while the busy handler returns true. A failed attempt is repeated even if it began or read something.
    ///
    /// # Errors
    /// SQLITE_BUSY when the busy handler gave up, or SQLite's error.
    pub fn patiently_with<'c, T>(
        &'c self,
        mut f: impl FnMut(&'c rusqlite::Connection) -> rusqlite::Result<T>,
    ) -> Result<T> {
        repeat(self, |connection| f(connection.rusqlite()).map_err(from_rusqlite))
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
}

/// Runs `f`, in which a snapshot may begin. A snapshot that does not begin at once is refused, and `f` runs again while
/// the busy handler returns true and nothing ends the connection's statements. On a thread that must not be held up, `f`
/// runs once.
pub(super) fn patiently<T>(connection: &mut Sqlite, mut f: impl FnMut(&mut Sqlite) -> Result<T>) -> Result<T> {
    repeat(connection, |connection| f(connection))
}

fn repeat<C: Borrow<Sqlite>, T>(mut connection: C, mut f: impl FnMut(&mut C) -> Result<T>) -> Result<T> {
    let mut tries = 0;
    loop {
        let patient = {
            let Sqlite { hooks, handle, wal, .. } = connection.borrow();
            // SAFETY: the guard is dropped before the connection is.
            unsafe { PatientSnapshots::begin(*hooks, handle, &wal.files) }
        };
        let result = f(&mut connection);
        if patient.is_none() {
            return result;
        }
        drop(patient);
        match result {
            Err(error) => wait(connection.borrow().hooks(), error, tries)?,
            result => return result,
        }
        tries = tries.saturating_add(1);
    }
}

/// After a failure: waits, if the cause was that no snapshot began and the busy handler returns true. Otherwise returns
/// the error.
fn wait(hooks: &Hooks, error: Error, tries: u32) -> Result<()> {
    let Error::Sqlite(SqliteError { code, .. }) = &error else { return Err(error) };
    let is_refused = refused(*code) == Some(Refused::Snapshot);
    let is_locked = is_refused || *code & 0xff == ffi::SQLITE_BUSY;
    if is_locked && hooks.interrupts.is_over() {
        return Err(SqliteError::from_code(ffi::SQLITE_INTERRUPT).into());
    }
    if is_refused && hooks.waits(tries) { Ok(()) } else { Err(error) }
}
