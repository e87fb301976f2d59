//! The bounds of a statement that runs on a thread which must not be held up, and the data that shows why one took
//! long.
//!
//! Owns: the limit on the length of values, the time at which statements end, and the steps they took. Runs on the
//! thread that uses the connection. Invariant: none of it blocks. Leaves out: deciding what is too long.

use std::ffi::c_int;
use std::time::Instant;

use rusqlite::ffi;

use crate::connection::Connection;
use crate::statements::{Statement, StatementId};

impl Connection {
    /// Sets the longest text, blob or row that a statement may touch. Returns the previous limit. A longer value is
    /// SQLITE_TOOBIG before the work on it begins (<https://sqlite.org/c3ref/c_limit_attached.html>).
    pub fn set_length_limit(&mut self, bytes: usize) -> usize {
        let bytes = c_int::try_from(bytes).unwrap_or(c_int::MAX);
        // SAFETY: the connection is open and used here alone.
        let before = unsafe { ffi::sqlite3_limit(self.raw(), ffi::SQLITE_LIMIT_LENGTH, bytes) };
        before.unsigned_abs() as usize
    }

    /// Like [`arm`](Self::arm): the statement, which runs next, ends at `end`. A check comes after each 1,000 of its
    /// steps, and none before.
    pub fn arm_until(&self, id: StatementId, end: Instant) {
        if let Ok(Statement { raw, .. }) = self.statement(id) {
            // The checks come where this counter is a multiple of 1,000.
            // SAFETY: the statement is alive.
            unsafe { ffi::sqlite3_stmt_status(raw, ffi::SQLITE_STMTSTATUS_VM_STEP, 1) };
        }
        self.hooks().armed.arm_until(end);
    }

    /// Steps of the virtual machine since the last [`arm`](Self::arm) or [`arm_until`](Self::arm_until), in thousands.
    #[must_use]
    pub fn steps_seen(&self) -> u32 {
        self.hooks().armed.steps_seen()
    }
}
