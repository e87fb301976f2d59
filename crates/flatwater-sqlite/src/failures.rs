//! The operating system's reason for a failed call: its error number as an enum, and the code that a failed read passes
//! to SQLite.
//!
//! Owns: the numbers that are distinguished, and when the number that SQLite recorded is valid. Runs on the thread that
//! uses the connection. Invariant: the number is read only for codes that follow from a system call. Leaves out: the
//! messages for each failure.

use std::ffi::c_int;

use rusqlite::ffi;

use crate::connection::Connection;
use crate::error::SqliteError;

/// Why the operating system refused a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SystemFailure {
    /// This process may not open more files.
    TooManyFiles,
    /// No process on this machine may open more files.
    TooManyFilesInSystem,
    /// The permissions of the file, or of a directory above it.
    Permission,
    /// The file system is mounted read-only.
    ReadOnlyFileSystem,
    /// There is no space on the disk, or in the user's quota.
    DiskFull,
    /// The disk, or the device that acts as one, failed.
    Device,
    /// The machine is out of memory.
    Memory,
    /// There is no such file or directory.
    NotFound,
    /// Another failure, with the system's error number.
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

    /// Returns the failure behind an I/O error of Rust's library, if the operating system reported one.
    #[must_use]
    pub fn of_io(error: &std::io::Error) -> Option<Self> {
        error.raw_os_error().map(Self::from_errno)
    }

    /// Returns the failure that SQLite recorded for `code`, its extended code of the last call on `db`
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

/// Returns true if a system call caused the code. Otherwise the number that SQLite recorded is from an earlier call.
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

/// Converts the code of a read of a file before it is passed on to SQLite. SQLite's code for a disk that fails a read
/// (EIO) is SQLITE_IOERR_CORRUPTFS, which `sqlite3VdbeExec` reports as SQLITE_CORRUPT: "the database disk image is
/// malformed". The image need not be malformed, and that message makes users restore a backup. SQLITE_IOERR_READ
/// reports the failure as what it is.
pub(crate) fn of_read(code: c_int) -> c_int {
    if code == ffi::SQLITE_IOERR_CORRUPTFS { ffi::SQLITE_IOERR_READ } else { code }
}

/// Returns the code of the failure that came first, according to SQLite's message. SQLite calls the progress handler
/// once more after a statement failed (`vdbe_return` in `sqlite3VdbeExec`). If the handler then ends the statement, the
/// code is SQLITE_INTERRUPT, but the message and the effect are those of the failure: after an I/O error the
/// transaction is rolled back.
pub(crate) fn first(code: c_int, message: &str) -> c_int {
    let failures = [ffi::SQLITE_IOERR, ffi::SQLITE_FULL, ffi::SQLITE_NOMEM, ffi::SQLITE_CORRUPT];
    let is_first = |failure: &c_int| SqliteError::from_code(*failure).message == message;
    if code == ffi::SQLITE_INTERRUPT { failures.into_iter().find(is_first).unwrap_or(code) } else { code }
}

impl Connection {
    /// The system's reason for the last failed call on this connection, which failed with this extended code.
    #[must_use]
    pub fn system_failure(&self, code: i32) -> Option<SystemFailure> {
        // SAFETY: the connection is open and used here alone.
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
