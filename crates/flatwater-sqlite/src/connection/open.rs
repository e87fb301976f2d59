//! Opening a connection with SQLite's own call.
//!
//! Owns: the call itself, and the paths that it takes. rusqlite has the call too, but closes a connection that could not
//! be opened before its system error can be read (<https://sqlite.org/c3ref/system_errno.html>). Runs on the thread that
//! opens, and blocks on the file system. Invariant: a connection that could not be opened is closed here. Leaves out:
//! the set-up of an open connection.

use std::ffi::{CString, c_int};
use std::path::Path;
use std::ptr;

use rusqlite::{OpenFlags, ffi};

use crate::error::{Error, Result, SqliteError, from_rusqlite};
use crate::heap;

/// Opens `path` with `flags`, to which extended result codes are added, and the VFS of that name.
pub(crate) fn open(path: &Path, flags: OpenFlags, vfs: Option<&str>) -> Result<rusqlite::Connection> {
    heap::install();
    if !has_mutexes() {
        return Err(misuse("the linked SQLite was built, or is configured, for one thread only"));
    }
    let c_path = c_path(path)?;
    let vfs = vfs.map(CString::new).transpose().map_err(|_| misuse("the name of the VFS has a NUL byte"))?;
    let flags = flags | OpenFlags::SQLITE_OPEN_EXRESCODE;
    let mut db: *mut ffi::sqlite3 = ptr::null_mut();
    // SAFETY: both names end with a NUL and live for the call, as does the out-pointer.
    let rc = unsafe {
        let vfs = vfs.as_ref().map_or(ptr::null(), |vfs| vfs.as_ptr());
        ffi::sqlite3_open_v2(c_path.as_ptr(), &raw mut db, flags.bits(), vfs)
    };
    if rc == ffi::SQLITE_OK {
        // SAFETY: just opened, and no other code has it: from here on rusqlite closes it.
        return unsafe { rusqlite::Connection::from_handle_owned(db) }.map_err(from_rusqlite);
    }
    Err(refused(db, rc, path).into())
}

/// Returns the error of a connection that could not be opened, and closes the connection.
fn refused(db: *mut ffi::sqlite3, rc: c_int, path: &Path) -> SqliteError {
    if db.is_null() {
        return SqliteError::from_code(rc);
    }
    // SAFETY: SQLite returns a connection that may be queried for its error and closed, and no other code has it.
    let error = unsafe {
        let error = SqliteError::of(db, rc);
        ffi::sqlite3_close(db);
        error
    };
    if error.primary() == ffi::SQLITE_CANTOPEN {
        return SqliteError { message: format!("{}: {}", error.message, path.display()), ..error };
    }
    error
}

/// Returns true if SQLite has mutexes. A SQLite without mutexes must not be used by several threads, not even with one
/// connection for each (<https://sqlite.org/threadsafe.html>). If that was configured, and not compiled in, only the
/// address of its mutexes shows it: rusqlite checks the same.
fn has_mutexes() -> bool {
    const NO_MUTEX: usize = 8;
    // SAFETY: a mutex is made and freed; without mutexes SQLite returns its number for none.
    unsafe {
        if ffi::sqlite3_threadsafe() == 0 {
            return false;
        }
        let mutex = ffi::sqlite3_mutex_alloc(0);
        let is_one = mutex.addr() != NO_MUTEX;
        ffi::sqlite3_mutex_free(mutex);
        is_one
    }
}

/// Returns true if `path` contains a NUL byte, which SQLite does not accept.
#[must_use]
pub fn has_nul(path: &Path) -> bool {
    CString::new(path.as_os_str().as_encoded_bytes()).is_err()
}

#[cfg(unix)]
fn c_path(path: &Path) -> Result<CString> {
    use std::os::unix::ffi::OsStrExt;
    CString::new(path.as_os_str().as_bytes()).map_err(|_| misuse("the path has a NUL byte"))
}

#[cfg(not(unix))]
fn c_path(path: &Path) -> Result<CString> {
    let path = path.to_str().ok_or_else(|| misuse("the path is not valid Unicode"))?;
    CString::new(path).map_err(|_| misuse("the path has a NUL byte"))
}

fn misuse(message: &str) -> Error {
    SqliteError { message: message.to_owned(), ..SqliteError::from_code(ffi::SQLITE_MISUSE) }.into()
}
