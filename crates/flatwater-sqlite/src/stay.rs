//! What bounds a statement that runs on a thread which must not be held up, and what tells why one took long.
//!
//! Owns: the limit on the length of values, and SQLite's counters of pages read and of steps. None of it blocks. Leaves
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

    /// Pages that were not in the cache when they were asked for, since the connection was opened
    /// (<https://sqlite.org/c3ref/c_dbstatus_options.html#sqlitedbstatuscachemiss>).
    #[must_use]
    pub fn cache_misses(&self) -> u32 {
        let (mut misses, mut highest): (c_int, c_int) = (0, 0);
        // SAFETY: the connection is open; both out-pointers live for the call.
        unsafe {
            ffi::sqlite3_db_status(self.raw(), ffi::SQLITE_DBSTATUS_CACHE_MISS, &raw mut misses, &raw mut highest, 0);
        }
        misses.unsigned_abs()
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
