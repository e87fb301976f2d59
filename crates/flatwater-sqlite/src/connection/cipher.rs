//! The encryption of a connection's databases, as SQLCipher does it.
//!
//! Owns: giving SQLCipher a key, getting the derived one back, changing it, and what became of the pages. Runs on the
//! thread that uses the connection. `set_key` copies the key and reads nothing: SQLCipher derives the key when it first
//! reads or writes a page, which takes about a tenth of a second for a passphrase (`sqlite3Codec`,
//! `sqlcipher_codec_key_derive`). Invariants: a key is never part of a text, SQL or other; without the feature
//! `sqlcipher` no key can be set. Leaves out: which key, and what a failure means.
//!
//! A page that cannot be decrypted spoils the connection: from then on SQLCipher decrypts nothing on it
//! (`sqlcipher_codec_ctx_set_error`). It decrypts a page even if the file could not be read, and then fails as well
//! (`readDbPage`), so a failed read of the disk spoils the connection too.

use rusqlite::ffi;

use super::Sqlite;
use crate::error::{Result, SqliteError};
use crate::handle::Handle;
use crate::secret::Secret;
use crate::wal::files::Files;

/// True if the linked SQLite can encrypt: the feature `sqlcipher`.
pub const CAN_ENCRYPT: bool = cfg!(feature = "sqlcipher");

/// The first bytes of a file that is not encrypted (<https://sqlite.org/fileformat2.html#magic_header_string>).
pub const PLAIN_HEADER: &[u8; 16] = b"SQLite format 3\0";

/// The encryption of a connection's databases.
pub struct Cipher<'c>(&'c Files);

impl<'c> Cipher<'c> {
    /// That of this connection.
    #[must_use]
    pub fn of(connection: &'c Sqlite) -> Self {
        Self(connection.files())
    }

    /// Sets the key of the main database, before anything is read of it.
    ///
    /// # Errors
    /// SQLite's error: SQLITE_NOMEM; SQLITE_MISUSE for an empty key; SQLITE_ERROR without the feature `sqlcipher`.
    pub fn set_key(&self, key: &[u8]) -> Result<()> {
        linked::set_key(self.0.handle(), key)?;
        self.0.set_encrypted();
        Ok(())
    }

    /// True once a key was set.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.0.are_encrypted()
    }

    /// The derived key of a database with its salt, as SQLCipher takes it in the place of the key: with it nothing has
    /// to be derived. `None` if no page has been read or written, or the database has no key.
    #[must_use]
    pub fn derived(&self, database: &str) -> Option<Secret> {
        linked::derived(self.0.handle(), database)
    }

    /// Encrypts the main database with another key: writes every page, in a transaction of its own. SQLite reports a
    /// commit that failed as a success (`sqlite3_rekey_v2`), so open the file with the new key to see what became of
    /// it.
    ///
    /// # Errors
    /// SQLite's error; the database has its key as before.
    pub fn change_key(&self, key: &[u8]) -> Result<()> {
        linked::change_key(self.0.handle(), key)
    }

    /// True if a page of a database could not be decrypted, or encrypted: then nothing else can be.
    #[must_use]
    pub fn is_spoilt(&self, connection: &rusqlite::Connection, database: &str) -> bool {
        let ask = format!("PRAGMA \"{}\".cipher_status", database.replace('"', "\"\""));
        CAN_ENCRYPT && connection.query_row(&ask, [], |row| row.get::<_, String>(0)).is_ok_and(|status| status == "0")
    }

    /// The first bytes of a database's file, as they are on the disk. `None` if there are fewer, or they cannot be
    /// read.
    #[must_use]
    pub fn header(&self, database: &str) -> Option<[u8; 16]> {
        let name = std::ffi::CString::new(database).ok()?;
        let file = self.0.find_of(&name, ffi::SQLITE_FCNTL_FILE_POINTER)?;
        let mut header = [0; 16];
        // SAFETY: the file is open and its methods belong to it; the buffer has as many bytes as are read.
        let rc = unsafe { (*(*file).pMethods).xRead?(file, header.as_mut_ptr().cast(), 16, 0) };
        (rc == ffi::SQLITE_OK).then_some(header)
    }
}

/// Sets the key of a connection that is not one of this crate's.
///
/// # Errors
/// As [`Cipher::set_key`].
pub fn set_key(connection: &rusqlite::Connection, key: &[u8]) -> Result<()> {
    // SAFETY: the connection is open for as long as it is borrowed, and not `Sync`.
    linked::set_key(&unsafe { Handle::new(connection.handle()) }, key)
}

#[cfg(feature = "sqlcipher")]
mod linked {
    use std::ffi::{CString, c_char, c_int, c_void};
    use std::ptr::null_mut;
    use std::sync::Once;

    use super::{Handle, Result, Secret, SqliteError, ffi};

    /// `x'`, the key, the key of the checksums, the salt, each byte in hexadecimal, and `'`.
    const DERIVED_BYTES: usize = 2 + 2 * (32 + 32 + 16) + 1;

    // Of SQLCipher's own, not in its header: what ATTACH and the backup use.
    unsafe extern "C" {
        fn sqlcipher_find_db_index(db: *mut ffi::sqlite3, name: *const c_char) -> c_int;
        fn sqlcipherCodecGetKey(db: *mut ffi::sqlite3, index: c_int, key: *mut *mut c_void, bytes: *mut c_int);
        fn sqlcipher_free(key: *mut c_void, bytes: u64);
    }

    fn checked(handle: &Handle, rc: c_int) -> Result<()> {
        if rc == ffi::SQLITE_OK { Ok(()) } else { Err(handle.error(rc)) }
    }

    fn length(key: &[u8]) -> Result<c_int> {
        c_int::try_from(key.len()).map_err(|_| SqliteError::from_code(ffi::SQLITE_TOOBIG).into())
    }

    pub(super) fn set_key(handle: &Handle, key: &[u8]) -> Result<()> {
        be_quiet(handle);
        // SAFETY: the connection is open and used here alone; the name and the key live for the call, which copies the
        // key.
        let rc = unsafe { ffi::sqlite3_key_v2(handle.raw(), c"main".as_ptr(), key.as_ptr().cast(), length(key)?) };
        checked(handle, rc)
    }

    pub(super) fn change_key(handle: &Handle, key: &[u8]) -> Result<()> {
        // SAFETY: as in `set_key`.
        let rc = unsafe { ffi::sqlite3_rekey_v2(handle.raw(), c"main".as_ptr(), key.as_ptr().cast(), length(key)?) };
        checked(handle, rc)
    }

    pub(super) fn derived(handle: &Handle, database: &str) -> Option<Secret> {
        let name = CString::new(database).ok()?;
        let (mut key, mut count): (*mut c_void, c_int) = (null_mut(), 0);
        // SAFETY: the connection is open and used here alone. SQLCipher checks the index, writes a copy of `count`
        // bytes or null, and overwrites the copy when it is freed.
        unsafe {
            let index = sqlcipher_find_db_index(handle.raw(), name.as_ptr());
            sqlcipherCodecGetKey(handle.raw(), index, &raw mut key, &raw mut count);
            if key.is_null() {
                return None;
            }
            let bytes = std::slice::from_raw_parts(key.cast::<u8>(), count.unsigned_abs() as usize);
            // Before it is derived, SQLCipher returns what was set.
            let is_derived = bytes.len() == DERIVED_BYTES && bytes.starts_with(b"x'");
            let secret = is_derived.then(|| Secret::copy_of(bytes));
            sqlcipher_free(key, u64::from(count.unsigned_abs()));
            secret
        }
    }

    /// SQLCipher writes to the standard error stream when a page cannot be decrypted. The errors say that. A program
    /// that turns this on again keeps it.
    fn be_quiet(handle: &Handle) {
        static QUIET: Once = Once::new();
        QUIET.call_once(|| {
            let (sql, none) = (c"PRAGMA cipher_log_level = NONE", null_mut());
            // SAFETY: the connection is open and used here alone; the text ends with a NUL. If it fails, SQLCipher goes
            // on writing.
            unsafe { ffi::sqlite3_exec(handle.raw(), sql.as_ptr(), None, none, null_mut()) };
        });
    }
}

#[cfg(not(feature = "sqlcipher"))]
mod linked {
    use super::{Handle, Result, Secret, SqliteError, ffi};

    pub(super) fn set_key(_: &Handle, _: &[u8]) -> Result<()> {
        let message = "it was compiled without the feature `sqlcipher`".to_owned();
        Err(SqliteError { message, ..SqliteError::from_code(ffi::SQLITE_ERROR) }.into())
    }

    pub(super) use set_key as change_key;

    pub(super) fn derived(_: &Handle, _: &str) -> Option<Secret> {
        None
    }
}
