//! Preparing statements.
//!
//! Owns: the step from a text to a statement of the table, with what SQLite reported of it. Runs on the thread that uses
//! the connection. Invariant: no row is reported, and nothing is remembered of the files, while SQLite prepares. Leaves
//! out: caching by text, and running the statement (`statement`).

use std::ffi::{c_char, c_int};

use rusqlite::ffi;

use super::Sqlite;
use super::snapshot_wait::patiently;
use crate::error::{Error, Result};
use crate::hooks::authorizer::AuthEvent;
use crate::statements::StatementId;

/// The result of [`Sqlite::prepare`].
#[derive(Debug)]
pub struct Prepared {
    /// The statement.
    pub id: StatementId,
    /// The number of bytes of the text that belong to the statement. The remaining bytes are the rest of the text.
    pub length: usize,
    /// What the statement does, as SQLite reported it to the authorizer.
    pub events: Vec<AuthEvent>,
    /// The number of result columns; 0 for a statement that returns no rows.
    pub columns: usize,
    /// True if SQLite reports that the statement writes nothing. This is also true for COMMIT, SAVEPOINT and ATTACH, so
    /// it is not suitable for routing (<https://sqlite.org/c3ref/stmt_readonly.html>).
    pub readonly: bool,
    /// True for EXPLAIN and EXPLAIN QUERY PLAN.
    pub explain: bool,
}

/// Calls one of SQLite's functions that prepare.
pub(super) type By =
    unsafe fn(*mut ffi::sqlite3, *const c_char, c_int, *mut *mut ffi::sqlite3_stmt, *mut *const c_char) -> c_int;

impl Sqlite {
    /// Prepares the first statement of `sql`, to be kept (SQLITE_PREPARE_PERSISTENT). Returns `None` if `sql` contains
    /// only white space and comments. SQLite copies a text that does not end with a NUL, whole, before it reads its first
    /// statement (<https://sqlite.org/c3ref/prepare.html>), so a script should.
    ///
    /// # Errors
    /// Returns SQLite's error, with the offset of the offending token, or [`Error::TextTooLong`].
    pub fn prepare(&mut self, sql: &str) -> Result<Option<Prepared>> {
        prepare_by(self, sql, |db, text, bytes, statement, tail| {
            // SAFETY: as `prepare_by` promises.
            unsafe { ffi::sqlite3_prepare_v3(db, text, bytes, ffi::SQLITE_PREPARE_PERSISTENT, statement, tail) }
        })
    }

    fn prepare_once(&mut self, sql: &str, by: By) -> Result<Option<Prepared>> {
        let bytes = c_int::try_from(sql.len()).map_err(|_| Error::TextTooLong)?;
        let mut raw: *mut ffi::sqlite3_stmt = std::ptr::null_mut();
        let mut tail: *const c_char = std::ptr::null();
        let db = self.handle.raw();
        let (rc, events) = self.hooks().preparing(|| {
            self.wal.files.mapping.forget();
            // SAFETY: the connection is open and only this value uses it; `sql` has `bytes` bytes; both out-pointers live
            // for the call.
            unsafe { by(db, sql.as_ptr().cast(), bytes, &raw mut raw, &raw mut tail) }
        });
        if rc != ffi::SQLITE_OK {
            return self.hooks().interrupts.explain(Err(self.handle.error(rc)));
        }
        if raw.is_null() {
            return Ok(None);
        }
        let length = (tail as usize).saturating_sub(sql.as_ptr() as usize).min(sql.len());
        // SAFETY: `raw` was just prepared and is not null.
        let (columns, readonly, explain) = unsafe {
            (ffi::sqlite3_column_count(raw), ffi::sqlite3_stmt_readonly(raw), ffi::sqlite3_stmt_isexplain(raw))
        };
        let (readonly, explain) = (readonly != 0, explain != 0);
        // SAFETY: the statement was just prepared on this connection, and no other code has the pointer.
        let id = unsafe { self.statements.keep(raw) };
        Ok(Some(Prepared { id, length, events, columns: columns.unsigned_abs() as usize, readonly, explain }))
    }

    /// Returns true if `sql` contains anything but white space and comments. Runs nothing.
    #[must_use]
    pub fn has_statement(&mut self, sql: &str) -> bool {
        match self.prepare(sql) {
            Ok(Some(prepared)) => {
                self.statement(prepared.id).finalize();
                true
            }
            Ok(None) => false,
            Err(_) => true,
        }
    }
}

/// Prepares with one of SQLite's functions. It is given the open connection, which only this value uses, the text with its length
/// in bytes, and two places for what it returns.
pub(super) fn prepare_by(connection: &mut Sqlite, sql: &str, by: By) -> Result<Option<Prepared>> {
    // Preparing may have to read the schema.
    patiently(connection, |connection| connection.prepare_once(sql, by))
}
