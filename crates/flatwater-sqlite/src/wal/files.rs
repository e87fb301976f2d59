//! The files of a connection, by SQLite's own handles.
//!
//! Owns: finding the handles, what is remembered of the files, syncing them without holding a lock, and their lengths. Runs
//! on the thread that uses the connection, and blocks on the file system. Invariants: a handle of the main database is
//! returned only in WAL mode, in which both files stay open for as long as the connection does; a sync takes no lock that
//! another connection waits for. Leaves out: the methods that SQLite calls (`file_methods`), and when to sync.

use std::cell::Cell;
use std::ffi::{CStr, CString, c_int};

use rusqlite::ffi;

use crate::error::{Result, SqliteError};
use crate::handle::Handle;
use crate::wal::mapping::Mapping;

/// One of SQLite's files.
#[derive(Clone, Copy)]
pub(crate) enum File {
    Database,
    Wal,
}

/// The files of a connection.
pub struct Files {
    handle: Handle,
    is_wal: Cell<bool>,
    are_encrypted: Cell<bool>,
    pub(crate) mapping: Mapping,
}

impl Files {
    /// # Safety
    /// As for [`Handle::new`].
    pub(super) unsafe fn new(db: *mut ffi::sqlite3) -> Self {
        // SAFETY: as the caller promises.
        let handle = unsafe { Handle::new(db) };
        Self { handle, is_wal: Cell::new(false), are_encrypted: Cell::new(false), mapping: Mapping::new() }
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    pub(crate) fn in_wal_mode(&self) -> bool {
        self.is_wal.get()
    }

    pub(crate) fn set_wal_mode(&self, is_wal: bool) {
        self.is_wal.set(is_wal);
    }

    pub(crate) fn are_encrypted(&self) -> bool {
        self.are_encrypted.get()
    }

    pub(crate) fn set_encrypted(&self) {
        self.are_encrypted.set(true);
    }

    /// Returns SQLite's own handle of a file, if the file is open. The handle stays open as long as the connection is
    /// open and in WAL mode.
    pub(crate) fn find(&self, which: File) -> Option<*mut ffi::sqlite3_file> {
        if !self.in_wal_mode() {
            return None;
        }
        let control = match which {
            File::Database => ffi::SQLITE_FCNTL_FILE_POINTER,
            // In WAL mode the journal is the WAL.
            File::Wal => ffi::SQLITE_FCNTL_JOURNAL_POINTER,
        };
        self.find_of(c"main", control)
    }

    /// Returns the handle that a control reports for one of the connection's databases, if its file is open.
    pub(crate) fn find_of(&self, database: &CStr, control: c_int) -> Option<*mut ffi::sqlite3_file> {
        let mut file: *mut ffi::sqlite3_file = std::ptr::null_mut();
        let db = self.handle.raw();
        // SAFETY: the connection is open, and the controls for files store a pointer.
        let rc = unsafe { ffi::sqlite3_file_control(db, database.as_ptr(), control, (&raw mut file).cast()) };
        // SAFETY: a handle that SQLite returns is valid; a handle without methods is not open.
        let is_open = rc == ffi::SQLITE_OK && unsafe { file.as_ref() }.is_some_and(|file| !file.pMethods.is_null());
        is_open.then_some(file)
    }

    /// Syncs the database file and the WAL, so that the next checkpoint finds little left to sync. Takes no lock that
    /// another connection waits for. Call it after the connection has read the database.
    ///
    /// # Errors
    /// SQLITE_IOERR_FSYNC. After it the system may have dropped the pages that it could not write.
    pub fn sync(&self) -> Result<()> {
        self.sync_file(self.find(File::Database))?;
        self.sync_file(self.find(File::Wal))
    }

    /// Syncs the database file, so that a later sync of it finds little left. Otherwise like [`sync`](Self::sync).
    ///
    /// # Errors
    /// As [`sync`](Self::sync).
    pub fn sync_database(&self) -> Result<()> {
        self.sync_file(self.find(File::Database))
    }

    /// Syncs the WAL of a database, whatever the value of `synchronous`. Takes no lock. Call it after the connection
    /// has read the database. For a database without a WAL it syncs the journal, if that is open.
    ///
    /// # Errors
    /// As [`sync`](Self::sync).
    pub fn sync_wal(&self, database: &str) -> Result<()> {
        let name = CString::new(database).ok();
        self.sync_file(name.and_then(|name| self.find_of(&name, ffi::SQLITE_FCNTL_JOURNAL_POINTER)))
    }

    /// The length of the WAL file. A restart of the WAL does not shorten it. `None` if there is no WAL file.
    #[must_use]
    pub fn wal_bytes(&self) -> Option<u64> {
        self.bytes(File::Wal)
    }

    /// The length of the database file. `None` if the database is not in WAL mode.
    #[must_use]
    pub fn database_bytes(&self) -> Option<u64> {
        self.bytes(File::Database)
    }

    fn sync_file(&self, file: Option<*mut ffi::sqlite3_file>) -> Result<()> {
        let Some(file) = file else { return Ok(()) };
        // SAFETY: the file is open and its methods belong to it; see `find`.
        let rc =
            unsafe { (*(*file).pMethods).xSync.map_or(ffi::SQLITE_OK, |sync| sync(file, ffi::SQLITE_SYNC_NORMAL)) };
        if rc == ffi::SQLITE_OK { Ok(()) } else { Err(SqliteError::from_code(rc).into()) }
    }

    fn bytes(&self, which: File) -> Option<u64> {
        let file = self.find(which)?;
        let mut bytes: ffi::sqlite3_int64 = 0;
        // SAFETY: as in `sync_file`; the out-pointer lives for the call.
        let rc = unsafe { (*(*file).pMethods).xFileSize?(file, &raw mut bytes) };
        (rc == ffi::SQLITE_OK).then(|| bytes.unsigned_abs())
    }
}
