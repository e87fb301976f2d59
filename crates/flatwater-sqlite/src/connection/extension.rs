//! Loadable extensions: foreign machine code that registers functions and modules on one connection.
//!
//! Owns: loading one. Runs on the thread that uses the connection, and blocks on the file system. Invariant: loading is
//! possible only within `load_extension`; no SQL can load anything at any time. Without the feature `load_extension` the
//! linked SQLite need not be able to. Leaves out: which extensions, and what they leave on the connection.

use std::path::Path;

use super::Sqlite;
use crate::error::Result;

impl Sqlite {
    /// Loads the extension at `path`, to which SQLite adds the system's suffix if there is no such file. Its entry point is
    /// `entry`, or one that SQLite [derives](https://sqlite.org/loadext.html#loading_an_extension) from the path. The library
    /// is loaded once in the process, and its entry point is called for each connection.
    ///
    /// # Errors
    /// SQLITE_ERROR with the message of the system's loader or of the entry point.
    #[cfg(feature = "load_extension")]
    pub fn load_extension(&self, path: &Path, entry: Option<&str>) -> Result<()> {
        use std::ffi::{CStr, CString};
        use std::ptr::null;

        use rusqlite::ffi;

        use crate::error::{Error, SqliteError};

        let failed = |code, message: &str| {
            Error::Sqlite(SqliteError { message: message.to_owned(), ..SqliteError::from_code(code) })
        };
        let text = |text: &[u8]| CString::new(text).map_err(|_| failed(ffi::SQLITE_MISUSE, "a name has a NUL byte"));
        let path = text(path.as_os_str().as_encoded_bytes())?;
        let entry = entry.map(|entry| text(entry.as_bytes())).transpose()?;
        let entry = entry.as_ref().map_or(null(), |entry| entry.as_ptr());
        let mut said = std::ptr::null_mut();
        let _allowed = Allowed::new(self)?;
        // SAFETY: the connection is open and used here alone; the texts and the out-pointer live for the call. That the code
        // of the extension is sound is the promise of whoever names it.
        let rc = unsafe { ffi::sqlite3_load_extension(self.handle.raw(), path.as_ptr(), entry, &raw mut said) };
        if rc == ffi::SQLITE_OK {
            return Ok(());
        }
        if said.is_null() {
            return Err(self.handle.error(rc));
        }
        // SAFETY: SQLite wrote a NUL-terminated message, which is the caller's to free.
        let message = unsafe { CStr::from_ptr(said) }.to_string_lossy().into_owned();
        // SAFETY: as above; it is not used any more.
        unsafe { ffi::sqlite3_free(said.cast()) };
        Err(failed(rc, &message))
    }

    /// This program links an SQLite that is not known to be able to.
    ///
    /// # Errors
    /// Always SQLITE_ERROR.
    #[cfg(not(feature = "load_extension"))]
    pub fn load_extension(&self, _: &Path, _: Option<&str>) -> Result<()> {
        let message = "it was compiled without the feature `load_extension`".to_owned();
        let error = crate::error::SqliteError::from_code(rusqlite::ffi::SQLITE_ERROR);
        Err(crate::error::Error::Sqlite(crate::error::SqliteError { message, ..error }))
    }
}

/// While it lives, the connection can load extensions.
#[cfg(feature = "load_extension")]
struct Allowed<'a>(&'a Sqlite);

#[cfg(feature = "load_extension")]
impl<'a> Allowed<'a> {
    fn new(connection: &'a Sqlite) -> Result<Self> {
        let rc = allow(connection, true);
        if rc == rusqlite::ffi::SQLITE_OK { Ok(Self(connection)) } else { Err(connection.handle.error(rc)) }
    }
}

#[cfg(feature = "load_extension")]
impl Drop for Allowed<'_> {
    fn drop(&mut self) {
        allow(self.0, false);
    }
}

/// Lets the function of C load extensions, or nothing. The function of SQL never can
/// (<https://sqlite.org/c3ref/c_dbconfig_defensive.html#sqlitedbconfigenableloadextension>).
#[cfg(feature = "load_extension")]
fn allow(connection: &Sqlite, on: bool) -> std::ffi::c_int {
    use rusqlite::ffi;

    let now = std::ptr::null_mut::<std::ffi::c_int>();
    // SAFETY: the connection is open and used here alone; these are the arguments of this option, of which the last may be null.
    unsafe {
        ffi::sqlite3_db_config(
            connection.handle.raw(),
            ffi::SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION,
            std::ffi::c_int::from(on),
            now,
        )
    }
}
