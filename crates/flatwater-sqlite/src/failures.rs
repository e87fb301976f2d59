//! Why the system refused: its error number as something that can be told, and what SQLite makes of a read that fails.
//!
//! Owns: the numbers that are told apart, and when SQLite's note of one may be believed. Invariant: only codes that
//! follow from a call of the system are asked for their number. Leaves out: what to say about each.

use std::ffi::c_int;

use rusqlite::ffi;

use crate::connection::Connection;
use crate::error::SqliteError;

/// Why the system refused a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SystemFailure {
    /// This process may open no more files.
    TooManyFiles,
    /// Nobody on this machine may open more files.
    TooManyFilesInSystem,
    /// The permissions of the file, or of a directory before it.
    Permission,
    /// The file system is mounted for reading only.
    ReadOnlyFileSystem,
    /// There is no room on the disk, or in the user's share of it.
    DiskFull,
    /// The disk, or whatever is in its place, failed.
    Device,
    /// The machine is out of memory.
    Memory,
    /// There is no such file or directory.
    NotFound,
    /// Something else, with the system's number.
    Other(i32),
}

impl SystemFailure {
    #[cfg(unix)]
    pub(crate) fn from_errno(errno: i32) -> Self {
        match errno {
            libc::EMFILE => Self::TooManyFiles,
            libc::ENFILE => Self::TooManyFilesInSystem,
            libc::EACCES | libc::EPERM => Self::Permission,
            libc::EROFS => Self::ReadOnlyFileSystem,
            libc::ENOSPC | libc::EDQUOT => Self::DiskFull,
            libc::EIO | libc::ENXIO | libc::ENODEV | libc::ESTALE => Self::Device,
            libc::ENOMEM => Self::Memory,
            libc::ENOENT | libc::ENOTDIR => Self::NotFound,
            other => Self::Other(other),
        }
    }

    #[cfg(not(unix))]
    pub(crate) fn from_errno(errno: i32) -> Self {
        Self::Other(errno)
    }

    /// The failure behind an I/O error of Rust's library, if it was the system's.
    #[must_use]
    pub fn of_io(error: &std::io::Error) -> Option<Self> {
        error.raw_os_error().map(Self::from_errno)
    }

    /// What SQLite noted of the failure behind `code`, its extended code of the last call on `db`
    /// (<https://sqlite.org/c3ref/system_errno.html>).
    ///
    /// # Safety
    /// `db` is an open connection, or one that could not be opened, which no other thread uses meanwhile.
    pub(crate) unsafe fn of(db: *mut ffi::sqlite3, code: c_int) -> Option<Self> {
        if !is_of_the_system(code) {
            return None;
        }
        // SAFETY: as the caller promises.
        let errno = unsafe { ffi::sqlite3_system_errno(db) };
        (errno != 0).then(|| Self::from_errno(errno))
    }
}

/// Whether a call of the system is behind the code. SQLite notes the number that it finds, which is an old one otherwise.
fn is_of_the_system(code: c_int) -> bool {
    code & 0xff == ffi::SQLITE_CANTOPEN
        || matches!(
            code,
            ffi::SQLITE_IOERR_READ
                | ffi::SQLITE_IOERR_CORRUPTFS
                | ffi::SQLITE_IOERR_WRITE
                | ffi::SQLITE_IOERR_FSYNC
                | ffi::SQLITE_IOERR_DIR_FSYNC
                | ffi::SQLITE_IOERR_TRUNCATE
                | ffi::SQLITE_IOERR_FSTAT
                | ffi::SQLITE_IOERR_DELETE
                | ffi::SQLITE_IOERR_SHMOPEN
                | ffi::SQLITE_IOERR_SHMSIZE
                | ffi::SQLITE_IOERR_SHMMAP
        )
}

/// The code of a read of a file, as it is passed on to SQLite. A disk that fails a read (EIO) is SQLITE_IOERR_CORRUPTFS
/// there, which `sqlite3VdbeExec` tells as SQLITE_CORRUPT: "the database disk image is malformed". It need not be, and
/// who is told so restores a backup. As SQLITE_IOERR_READ it is told as what it is.
pub(crate) fn of_read(code: c_int) -> c_int {
    if code == ffi::SQLITE_IOERR_CORRUPTFS { ffi::SQLITE_IOERR_READ } else { code }
}

/// The code of the failure that came first, by SQLite's message. SQLite asks the progress handler once more after a
/// statement failed (`vdbe_return` in `sqlite3VdbeExec`). If that ends the statement the code is SQLITE_INTERRUPT then, while
/// the message is that of the failure, and so is what it did: after an I/O error the transaction is rolled back.
pub(crate) fn first(code: c_int, message: &str) -> c_int {
    let failures = [ffi::SQLITE_IOERR, ffi::SQLITE_FULL, ffi::SQLITE_NOMEM, ffi::SQLITE_CORRUPT];
    let is_first = |failure: &c_int| SqliteError::from_code(*failure).message == message;
    if code == ffi::SQLITE_INTERRUPT { failures.into_iter().find(is_first).unwrap_or(code) } else { code }
}

impl Connection {
    /// What the system said when a call on this connection failed with that extended code, the last one that did.
    #[must_use]
    pub fn system_failure(&self, code: i32) -> Option<SystemFailure> {
        // SAFETY: the connection is open and only ours.
        unsafe { SystemFailure::of(self.raw(), code) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_interrupted_after_it_failed_has_the_code_of_its_failure() {
        let table = [
            (ffi::SQLITE_INTERRUPT, "disk I/O error", ffi::SQLITE_IOERR),
            (ffi::SQLITE_INTERRUPT, "database or disk is full", ffi::SQLITE_FULL),
            (ffi::SQLITE_INTERRUPT, "interrupted", ffi::SQLITE_INTERRUPT),
            (ffi::SQLITE_INTERRUPT, "UNIQUE constraint failed: t.a", ffi::SQLITE_INTERRUPT),
            (ffi::SQLITE_IOERR_READ, "disk I/O error", ffi::SQLITE_IOERR_READ),
        ];
        for (code, message, expected) in table {
            assert_eq!(first(code, message), expected, "{code} {message}");
        }
    }
}
