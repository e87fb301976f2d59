//! What bounds a statement that runs on a thread which must not be held up, and what tells why one took long.
//!
//! Owns: the limit on the length of values, the moment at which statements end, and the steps they took. None of it
//! blocks. Leaves out: deciding what is too long.

use std::ffi::c_int;
use std::time::Instant;

use rusqlite::ffi;

use crate::connection::Connection;

impl Connection {
    /// Sets the longest text, blob or row that a statement may touch, and answers the limit before. A longer one is
    /// SQLITE_TOOBIG before the work on it begins (<https://sqlite.org/c3ref/c_limit_attached.html>).
    pub fn set_length_limit(&mut self, bytes: usize) -> usize {
        let bytes = c_int::try_from(bytes).unwrap_or(c_int::MAX);
        // SAFETY: the connection is open and ours.
        let before = unsafe { ffi::sqlite3_limit(self.raw(), ffi::SQLITE_LIMIT_LENGTH, bytes) };
        before.unsigned_abs() as usize
    }

    /// As [`arm`](Self::arm): the statements that run from now on end at `end`.
    pub fn arm_until(&self, end: Instant) {
        self.hooks().armed.arm_until(end);
    }

    /// Steps of the virtual machine since the last [`arm`](Self::arm) or [`arm_until`](Self::arm_until), down to whole
    /// thousands for each statement.
    #[must_use]
    pub fn steps_seen(&self) -> u32 {
        self.hooks().armed.steps_seen()
    }
}
