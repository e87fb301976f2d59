//! Checkpoints of the main database, and syncing its files without holding a lock.
//!
//! Owns: one checkpoint of one mode, the syncs, and the lengths of the files. Runs on the thread that uses the connection,
//! and blocks on the file system. Invariant: the syncs take no lock that another connection waits for. Leaves out: when
//! to checkpoint.

use std::ffi::{CString, c_int};

use rusqlite::ffi;

use crate::connection::Connection;
use crate::error::{Error, Result, SqliteError};
use crate::wal::files::File;

/// How far a checkpoint goes (<https://sqlite.org/c3ref/wal_checkpoint_v2.html>).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckpointMode {
    /// Copies what it can without waiting for other connections.
    Passive,
    /// Waits for writers, then copies everything.
    Full,
    /// Like `Full`, then waits for readers so that the next writer starts the WAL over.
    Restart,
    /// Like `Restart`, and truncates the WAL file to zero bytes.
    Truncate,
}

/// The result of a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckpointInfo {
    /// Frames in the WAL.
    pub frames: u32,
    /// Frames of the WAL that are copied into the database.
    pub copied: u32,
}

impl Connection {
    /// Runs a checkpoint of the main database. Blocks for as long as the mode and the busy handler allow. Every mode
    /// but `Passive` waits for another checkpoint as for any lock.
    ///
    /// # Errors
    /// SQLITE_BUSY if the locks of the mode could not be taken, or the error of the file system.
    pub fn checkpoint(&mut self, mode: CheckpointMode) -> Result<CheckpointInfo> {
        let mut tries = 0;
        loop {
            match self.checkpoint_once(mode) {
                // SQLite calls the busy handler for the other locks only.
                Err(Error::Sqlite(error))
                    if error.code & 0xff == ffi::SQLITE_BUSY
                        && mode != CheckpointMode::Passive
                        && self.hooks().waits(tries) =>
                {
                    tries = tries.saturating_add(1);
                }
                done => return done,
            }
        }
    }

    fn checkpoint_once(&mut self, mode: CheckpointMode) -> Result<CheckpointInfo> {
        let mode = match mode {
            CheckpointMode::Passive => ffi::SQLITE_CHECKPOINT_PASSIVE,
            CheckpointMode::Full => ffi::SQLITE_CHECKPOINT_FULL,
            CheckpointMode::Restart => ffi::SQLITE_CHECKPOINT_RESTART,
            CheckpointMode::Truncate => ffi::SQLITE_CHECKPOINT_TRUNCATE,
        };
        let (mut frames, mut copied): (c_int, c_int) = (0, 0);
        // SAFETY: the connection is open and borrowed here alone; both out-pointers live for the call.
        let rc = unsafe {
            ffi::sqlite3_wal_checkpoint_v2(self.raw(), c"main".as_ptr(), mode, &raw mut frames, &raw mut copied)
        };
        if rc == ffi::SQLITE_OK {
            // SQLite returns -1 for a database that is not in WAL mode.
            let count = |frames: c_int| u32::try_from(frames).unwrap_or(0);
            Ok(CheckpointInfo { frames: count(frames), copied: count(copied) })
        } else {
            // SAFETY: as above.
            Err(unsafe { SqliteError::of(self.raw(), rc) }.into())
        }
    }

    /// Syncs the database file and the WAL, so that the next checkpoint finds little left to sync. Takes no lock that
    /// another connection waits for. Call it after the connection has read the database.
    ///
    /// # Errors
    /// SQLITE_IOERR_FSYNC. After it the system may have dropped the pages that it could not write.
    pub fn sync_files(&mut self) -> Result<()> {
        self.sync(self.file(File::Database))?;
        self.sync(self.file(File::Wal))
    }

    /// Syncs the database file, so that a later sync of it finds little left. Otherwise like
    /// [`sync_files`](Self::sync_files).
    ///
    /// # Errors
    /// As [`sync_files`](Self::sync_files).
    pub fn sync_database(&mut self) -> Result<()> {
        self.sync(self.file(File::Database))
    }

    /// Syncs the WAL of a database, whatever the value of `synchronous`. Takes no lock. Call it after the connection
    /// has read the database. For a database without a WAL it syncs the journal, if that is open.
    ///
    /// # Errors
    /// As [`sync_files`](Self::sync_files).
    pub fn sync_wal(&mut self, database: &str) -> Result<()> {
        let name = CString::new(database).ok();
        self.sync(name.and_then(|name| self.file_of(&name, ffi::SQLITE_FCNTL_JOURNAL_POINTER)))
    }

    fn sync(&mut self, file: Option<*mut ffi::sqlite3_file>) -> Result<()> {
        let Some(file) = file else { return Ok(()) };
        // SAFETY: the file is open and its methods belong to it; see `file`.
        let rc =
            unsafe { (*(*file).pMethods).xSync.map_or(ffi::SQLITE_OK, |sync| sync(file, ffi::SQLITE_SYNC_NORMAL)) };
        if rc == ffi::SQLITE_OK { Ok(()) } else { Err(SqliteError::from_code(rc).into()) }
    }

    /// The length of the WAL file. A restart of the WAL does not shorten it. `None` if there is no WAL file.
    #[must_use]
    pub fn wal_file_bytes(&self) -> Option<u64> {
        self.file_bytes(File::Wal)
    }

    /// The length of the database file. `None` if the database is not in WAL mode.
    #[must_use]
    pub fn database_file_bytes(&self) -> Option<u64> {
        self.file_bytes(File::Database)
    }

    fn file_bytes(&self, which: File) -> Option<u64> {
        let file = self.file(which)?;
        let mut bytes: ffi::sqlite3_int64 = 0;
        // SAFETY: as in `sync_files`; the out-pointer lives for the call.
        let rc = unsafe { (*(*file).pMethods).xFileSize?(file, &raw mut bytes) };
        (rc == ffi::SQLITE_OK).then(|| bytes.unsigned_abs())
    }
}
