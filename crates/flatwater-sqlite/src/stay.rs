//! What bounds a statement that runs on a thread which must not be held up, and what tells why one took long.
//!
//! Owns: the limit on the length of values, and SQLite's counter of steps. None of it blocks. Leaves
//! out: deciding what is too long.

use std::ffi::c_int;

use rusqlite::ffi;

use crate::connection::Connection;
use crate::slots::StatementId;

impl Connection {
    /// Sets the longest text, blob or row that a statement may touch, and answers the limit before. A longer one is
    /// SQLITE_TOOBIG before the work on it begins (<https://sqlite.org/c3ref/c_limit_attached.html>).
    pub fn set_length_limit(&mut self, bytes: usize) -> usize {
        let bytes = c_int::try_from(bytes).unwrap_or(c_int::MAX);
        // SAFETY: the connection is open and ours.
        let before = unsafe { ffi::sqlite3_limit(self.raw(), ffi::SQLITE_LIMIT_LENGTH, bytes) };
        before.unsigned_abs() as usize
    }

    /// Steps of the virtual machine that the statement took since the last call
    /// (<https://sqlite.org/c3ref/c_stmtstatus_counter.html#sqlitestmtstatusvmstep>).
    #[must_use]
    pub fn take_steps(&self, id: StatementId) -> u32 {
        let Ok(raw) = self.statement(id) else { return 0 };
        // SAFETY: the statement is alive.
        unsafe { ffi::sqlite3_stmt_status(raw, ffi::SQLITE_STMTSTATUS_VM_STEP, 1) }.unsigned_abs()
    }
}
