//! Asking SQLite for a connection.
//!
//! Owns: the call itself, which rusqlite has too, but it closes a connection that could not be opened before anybody can
//! ask it why (<https://sqlite.org/c3ref/system_errno.html>). Blocks on the file system. Leaves out: everything that is
//! done to a connection once it is open.

use std::ffi::{CString, c_int};
use std::path::Path;
use std::ptr;

use rusqlite::{OpenFlags, ffi};

use crate::connection::from_rusqlite;
use crate::error::{Error, Result, SqliteError};

/// Opens `path` with `flags`, to which extended result codes are added, and the VFS of that name.
pub(crate) fn open(path: &Path, flags: OpenFlags, vfs: Option<&str>) -> Result<rusqlite::Connection> {
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
        // SAFETY: just opened, and nobody else has it: from here on it is rusqlite's to close.
        return unsafe { rusqlite::Connection::from_handle_owned(db) }.map_err(from_rusqlite);
    }
    Err(refused(db, rc, path).into())
}

/// What a connection says that could not be opened, which ends with it.
fn refused(db: *mut ffi::sqlite3, rc: c_int, path: &Path) -> SqliteError {
    if db.is_null() {
        return SqliteError::from_code(rc);
    }
    // SAFETY: SQLite answers a connection that is good for asking and for closing, and only we have it.
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

/// A SQLite without mutexes must not be used by several threads, not even with a connection for each
/// (<https://sqlite.org/threadsafe.html>). If that was configured, and not compiled in, only the address of its mutexes
/// tells: rusqlite looks at the same.
fn has_mutexes() -> bool {
    const NO_MUTEX: usize = 8;
    // SAFETY: a mutex is made and freed; SQLite answers its number for none where there are none.
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

#[cfg(unix)]
fn c_path(path: &Path) -> Result<CString> {
    use std::os::unix::ffi::OsStrExt;
    CString::new(path.as_os_str().as_bytes()).map_err(|_| misuse("the path has a NUL byte"))
}

#[cfg(not(unix))]
fn c_path(path: &Path) -> Result<CString> {
    let path = path.to_str().ok_or_else(|| misuse("the path is no valid Unicode"))?;
    CString::new(path).map_err(|_| misuse("the path has a NUL byte"))
}

fn misuse(message: &str) -> Error {
    SqliteError { message: message.to_owned(), ..SqliteError::from_code(ffi::SQLITE_MISUSE) }.into()
}
