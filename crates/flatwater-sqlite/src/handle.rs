//! SQLite's own connection, and what it says of its state.
//!
//! Owns: the calls that need nothing but SQLite's connection. Runs on the thread that uses the connection. Invariant: a
//! handle is reached only through a connection that is open: each part of a connection has its own, and whoever has the
//! part borrows the connection. Leaves out: opening and closing it (`connection`).

use std::ffi::c_int;

use rusqlite::ffi;

use crate::error::system_failure::SystemFailure;
use crate::error::{Error, SqliteError};

/// What the page caches of a connection did: counters, which wrap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheUse {
    /// The pages that were read into a cache.
    pub missed: u32,
    /// The pages that were written from a cache.
    pub written: u32,
    /// The size of the caches now.
    pub bytes: u32,
}

/// SQLite's own connection. Neither `Send` nor `Sync`.
pub struct Handle(*mut ffi::sqlite3);

impl Handle {
    /// # Safety
    /// `db` is open whenever the handle is used, and no other thread uses it at the same time.
    pub(crate) unsafe fn new(db: *mut ffi::sqlite3) -> Self {
        Self(db)
    }

    #[inline]
    pub(crate) fn raw(&self) -> *mut ffi::sqlite3 {
        self.0
    }

    /// Returns true while no transaction is open (<https://sqlite.org/c3ref/get_autocommit.html>).
    #[must_use]
    pub fn is_autocommit(&self) -> bool {
        // SAFETY: the connection is open.
        unsafe { ffi::sqlite3_get_autocommit(self.0) != 0 }
    }

    /// Returns true while a transaction has begun to write, in any database of the connection
    /// (<https://sqlite.org/c3ref/txn_state.html>).
    #[must_use]
    pub fn is_writing(&self) -> bool {
        // SAFETY: the connection is open.
        unsafe { ffi::sqlite3_txn_state(self.0, std::ptr::null()) == ffi::SQLITE_TXN_WRITE }
    }

    /// Returns true while a transaction has begun to read or to write, in any database of the connection: after BEGIN that is
    /// from its first statement on (<https://sqlite.org/c3ref/txn_state.html>).
    #[must_use]
    pub fn has_begun(&self) -> bool {
        // SAFETY: the connection is open.
        unsafe { ffi::sqlite3_txn_state(self.0, std::ptr::null()) != ffi::SQLITE_TXN_NONE }
    }

    /// The same of the main database alone.
    #[must_use]
    pub fn has_begun_in_main(&self) -> bool {
        // SAFETY: the connection is open, and the name is terminated.
        unsafe { ffi::sqlite3_txn_state(self.0, c"main".as_ptr()) != ffi::SQLITE_TXN_NONE }
    }

    /// The number of rows that all INSERTs, UPDATEs and DELETEs changed since the connection was opened
    /// (<https://sqlite.org/c3ref/total_changes.html>).
    #[must_use]
    pub fn total_changes(&self) -> u64 {
        // SAFETY: the connection is open.
        unsafe { ffi::sqlite3_total_changes64(self.0) }.unsigned_abs()
    }

    /// What the page caches of the connection did up to now
    /// (<https://sqlite.org/c3ref/c_dbstatus_options.html#sqlitedbstatuscachemiss>).
    #[must_use]
    pub fn cache_use(&self) -> CacheUse {
        let value = |which| {
            let (mut current, mut highest): (c_int, c_int) = (0, 0);
            // SAFETY: the connection is open; both out-pointers live for the call.
            unsafe { ffi::sqlite3_db_status(self.0, which, &raw mut current, &raw mut highest, 0) };
            current.cast_unsigned()
        };
        CacheUse {
            missed: value(ffi::SQLITE_DBSTATUS_CACHE_MISS),
            written: value(ffi::SQLITE_DBSTATUS_CACHE_WRITE),
            bytes: value(ffi::SQLITE_DBSTATUS_CACHE_USED),
        }
    }

    /// Returns true if a deferred foreign key is violated right now, so that a COMMIT would fail
    /// (<https://sqlite.org/c3ref/c_dbstatus_options.html#sqlitedbstatusdeferredfks>).
    #[must_use]
    pub fn has_deferred_violations(&self) -> bool {
        let (mut current, mut highest): (c_int, c_int) = (0, 0);
        // SAFETY: the connection is open; both out-pointers live for the call.
        let rc = unsafe {
            ffi::sqlite3_db_status(self.0, ffi::SQLITE_DBSTATUS_DEFERRED_FKS, &raw mut current, &raw mut highest, 0)
        };
        rc == ffi::SQLITE_OK && current != 0
    }

    /// The number of rows that the last INSERT, UPDATE or DELETE changed (<https://sqlite.org/c3ref/changes.html>).
    #[must_use]
    pub fn changes(&self) -> u64 {
        // SAFETY: the connection is open.
        unsafe { ffi::sqlite3_changes64(self.0) }.unsigned_abs()
    }

    /// The rowid of the last successful insert on this connection
    /// (<https://sqlite.org/c3ref/last_insert_rowid.html>).
    #[must_use]
    pub fn last_insert_rowid(&self) -> i64 {
        // SAFETY: the connection is open.
        unsafe { ffi::sqlite3_last_insert_rowid(self.0) }
    }

    /// Sets what [`last_insert_rowid`](Self::last_insert_rowid) tells until a row is inserted
    /// (<https://sqlite.org/c3ref/set_last_insert_rowid.html>).
    pub fn set_last_insert_rowid(&self, rowid: i64) {
        // SAFETY: the connection is open.
        unsafe { ffi::sqlite3_set_last_insert_rowid(self.0, rowid) }
    }

    /// Returns true if the main database cannot be written through this connection.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        // SAFETY: the connection is open; "main" always exists.
        unsafe { ffi::sqlite3_db_readonly(self.0, c"main".as_ptr()) == 1 }
    }

    /// Sets the longest text, blob or row that a statement may touch. Returns the previous limit. A longer value is
    /// SQLITE_TOOBIG before the work on it begins (<https://sqlite.org/c3ref/c_limit_attached.html>).
    pub fn set_length_limit(&self, bytes: usize) -> usize {
        let bytes = c_int::try_from(bytes).unwrap_or(c_int::MAX);
        // SAFETY: the connection is open and used here alone.
        let before = unsafe { ffi::sqlite3_limit(self.0, ffi::SQLITE_LIMIT_LENGTH, bytes) };
        before.unsigned_abs() as usize
    }

    /// Returns true if any statement, of this crate or of the user, is stepped and not reset.
    #[must_use]
    pub fn has_busy_statement(&self) -> bool {
        self.busy_statements().next().is_some()
    }

    /// All statements, of this crate or of the user, that are stepped and not reset.
    fn busy_statements(&self) -> impl Iterator<Item = *mut ffi::sqlite3_stmt> {
        let mut statement = std::ptr::null_mut();
        std::iter::from_fn(move || {
            loop {
                // SAFETY: the connection is open, and `statement` is null or one of its statements.
                statement = unsafe { ffi::sqlite3_next_stmt(self.0, statement) };
                if statement.is_null() {
                    return None;
                }
                // SAFETY: as above.
                if unsafe { ffi::sqlite3_stmt_busy(statement) } != 0 {
                    return Some(statement);
                }
            }
        })
    }

    /// Resets all statements, of this crate or of the user.
    pub(crate) fn reset_busy_statements(&self) {
        for statement in self.busy_statements() {
            // SAFETY: a statement of this connection, which no other code uses now; its owner, if it has one, learns
            // from SQLite at its next step that the statement starts over.
            unsafe { ffi::sqlite3_reset(statement) };
        }
    }

    /// The system's reason for the last failed call on this connection, which failed with this extended code.
    #[must_use]
    pub fn system_failure(&self, code: i32) -> Option<SystemFailure> {
        // SAFETY: the connection is open and used here alone.
        unsafe { SystemFailure::of(self.0, code) }
    }

    pub(crate) fn error(&self, code: c_int) -> Error {
        // SAFETY: the connection is open and used here alone.
        unsafe { SqliteError::of(self.0, code) }.into()
    }
}
