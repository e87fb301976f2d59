//! SQLite's own handles of a connection's files.
//!
//! Owns: finding them. Runs on the thread that uses the connection. Invariant: a handle is returned only in WAL mode,
//! in which both files stay open for as long as the connection does. Leaves out: the use of the handles.

use std::ffi::{CStr, c_int};

use rusqlite::ffi;

use crate::connection::Connection;

/// One of SQLite's files.
#[derive(Clone, Copy)]
pub(crate) enum File {
    Database,
    Wal,
}

impl Connection {
    /// Returns SQLite's own handle of a file, if the file is open. The handle stays open as long as the connection is
    /// open and in WAL mode.
    pub(crate) fn file(&self, which: File) -> Option<*mut ffi::sqlite3_file> {
        if !self.in_wal_mode() {
            return None;
        }
        let control = match which {
            File::Database => ffi::SQLITE_FCNTL_FILE_POINTER,
            // In WAL mode the journal is the WAL.
            File::Wal => ffi::SQLITE_FCNTL_JOURNAL_POINTER,
        };
        self.file_of(c"main", control)
    }

    /// Returns the handle that a control reports for one of the connection's databases, if its file is open.
    pub(crate) fn file_of(&self, database: &CStr, control: c_int) -> Option<*mut ffi::sqlite3_file> {
        let mut file: *mut ffi::sqlite3_file = std::ptr::null_mut();
        // SAFETY: the connection is open, and the controls for files store a pointer.
        let rc = unsafe { ffi::sqlite3_file_control(self.raw(), database.as_ptr(), control, (&raw mut file).cast()) };
        // SAFETY: a handle that SQLite returns is valid; a handle without methods is not open.
        let is_open = rc == ffi::SQLITE_OK && unsafe { file.as_ref() }.is_some_and(|file| !file.pMethods.is_null());
        is_open.then_some(file)
    }
}
