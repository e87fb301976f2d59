//! Checkpoints of the main database.
//!
//! Owns: one checkpoint of one mode. Runs on the thread that uses the connection, and blocks on the file system. Invariant:
//! it waits for locks with the busy handler. Leaves out: when to checkpoint, and syncing beforehand (`files`).

use std::ffi::c_int;

use rusqlite::ffi;

use super::Sqlite;
use crate::error::{Error, Result};
use crate::handle::Handle;

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

impl Sqlite {
    /// Runs a checkpoint of the main database. Blocks for as long as the mode and the busy handler allow. Every mode
    /// but `Passive` waits for another checkpoint as for any lock.
    ///
    /// # Errors
    /// SQLITE_BUSY if the locks of the mode could not be taken, or the error of the file system.
    pub fn checkpoint(&mut self, mode: CheckpointMode) -> Result<CheckpointInfo> {
        let mut tries = 0;
        loop {
            match once(&self.handle, mode) {
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
}

fn once(handle: &Handle, mode: CheckpointMode) -> Result<CheckpointInfo> {
    let mode = match mode {
        CheckpointMode::Passive => ffi::SQLITE_CHECKPOINT_PASSIVE,
        CheckpointMode::Full => ffi::SQLITE_CHECKPOINT_FULL,
        CheckpointMode::Restart => ffi::SQLITE_CHECKPOINT_RESTART,
        CheckpointMode::Truncate => ffi::SQLITE_CHECKPOINT_TRUNCATE,
    };
    let (mut frames, mut copied): (c_int, c_int) = (0, 0);
    // SAFETY: the connection is open and used here alone; both out-pointers live for the call.
    let rc = unsafe {
        ffi::sqlite3_wal_checkpoint_v2(handle.raw(), c"main".as_ptr(), mode, &raw mut frames, &raw mut copied)
    };
    if rc == ffi::SQLITE_OK {
        // SQLite returns -1 for a database that is not in WAL mode.
        let count = |frames: c_int| u32::try_from(frames).unwrap_or(0);
        Ok(CheckpointInfo { frames: count(frames), copied: count(copied) })
    } else {
        Err(handle.error(rc))
    }
}
