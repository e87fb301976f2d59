//! The operating system's reason for a failed call: its error number as an enum, and the code that a failed read passes
//! to SQLite.
//!
//! Owns: the numbers that are distinguished, and when the number that SQLite recorded is valid. Runs on the thread that
//! uses the connection. Invariant: the number is read only for codes that follow from a system call. Leaves out: the
//! messages for each failure.

use std::ffi::c_int;

use rusqlite::ffi;

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
