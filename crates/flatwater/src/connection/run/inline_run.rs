//! One inline run: a short statement on its caller's thread, under limits that a worker's run does not have.
//!
//! Owns: setting and removing the limits, and telling the permit of the run what pages it read. Runs on the thread that
//! has the connection. Invariants: within an inline run no snapshot begins that would have to wait; the limit on lengths
//! holds from one inline run to the next, until a worker removes it before its own work.
//! Leaves out: the run itself (`execute`), which statements are eligible, and what to do with one that did not end.
//!
//! What SQLite does meanwhile, and what each step may wait for. "Refused" is what the file methods of
//! `flatwater-sqlite` answer with an error (`guard`). A lock is a non-blocking fcntl, under this process's mutex for
//! the file. A write that fails before its commit leaves nothing but frames without a commit mark, which no connection
//! reads, or a phantom commit.
//!
//! ```text
//! compare the copies of the header    Wal::state (ours)                nothing; if they differ nothing runs inline
//! map the first region                walIndexPage                     nothing: mapped since the connection first read
//! copy the header; if it differs:     walIndexTryHdr, walIndexReadHdr  refused: the WRITE lock, walIndexRecover
//! is a recovery running: RECOVER      walTryBeginRead                  refused
//! READ(0), or move and take a mark    walTryBeginRead                  nothing; a mark whose lock is held is skipped
//! try again after a change            walBeginReadTransaction          nothing in four attempts; the fifth is refused
//! first page                          lockBtree                        one read of the file
//! compare the schema cookie           OP_Transaction                   nothing: sqlite3InitOne only if it differs
//! other pages                         getPageNormal, walFindFrame      one read each
//! temporary data, statement journal   temp_store                       nothing: in memory; a file with TempStore::File
//! end of the read                     sqlite3WalEndReadTransaction     nothing
//! begin of a write: WRITE             sqlite3WalBeginWriteTransaction  nothing: SQLITE_BUSY, or SQLITE_BUSY_SNAPSHOT
//! restart of the WAL                  walRestartLog                    not entered, unless a checkpoint ends just then
//! frames                              walFrames, walWriteOneFrame      pwrite, which the system may slow
//! index                               walIndexAppend, unixShmMap       nothing; each 4,096 frames extend the -shm
//! publish the commit                  walIndexWriteHdr                 nothing
//! BEGIN IMMEDIATE                     OP_Transaction, OP_AutoCommit    as a read and the begin of a write
//! COMMIT                              sqlite3VdbeHalt, vdbeCommit      as frames; auto_vacuum: a read per freed page
//! ROLLBACK                            pagerRollbackWal                 one read of the first page
//! a failure before the commit         sqlite3VdbeHalt, pager_playback  one read
//! ```

use flatwater_sqlite::{Sqlite, Unheld};

use super::statement_cache::CachedStatement;
use crate::connection::EngineConnection;
use flatwater_base::inline::eligibility::Permit;

/// SQLite builds its error messages under the same limit, and loses a message that exceeds it.
const MESSAGE_BYTES: usize = 1024;

/// The limit of lengths of a connection.
#[derive(Default)]
pub(crate) struct LengthLimit {
    /// The limit outside of inline runs, in bytes, while the limit of inline runs holds.
    outside: Option<usize>,
}

impl LengthLimit {
    /// Limits values, rows and parameters to `bytes`, or to less if the limit was lower before, until `restore`.
    pub(crate) fn lower(&mut self, sqlite: &mut Sqlite, bytes: usize) {
        if self.outside.is_some() {
            return;
        }
        let bytes = bytes.max(MESSAGE_BYTES);
        let before = sqlite.handle().set_length_limit(bytes);
        if before < bytes {
            sqlite.handle().set_length_limit(before);
        }
        self.outside = Some(before);
    }

    /// Restores the limit from before. To be called by a worker before it uses the connection.
    pub(crate) fn restore(&mut self, sqlite: &mut Sqlite) {
        if let Some(before) = self.outside.take() {
            sqlite.handle().set_length_limit(before);
        }
    }
}

/// Prevents the connection from holding up the thread, during an inline run.
#[must_use]
pub(crate) struct Begun<'a>(Unheld, &'a Permit<'a>);

/// Begins an inline run: no snapshot begins that would have to wait or to recover the wal-index. Returns `None` if this
/// connection is not capable of inline runs.
pub(crate) fn begin<'a>(permit: &'a Permit<'_>, sqlite: &Sqlite) -> Option<Begun<'a>> {
    sqlite.unheld().map(|unheld| Begun(unheld, permit))
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        self.1.note_reading(self.0.reading());
    }
}

impl EngineConnection {
    /// The steps that an inline run of the statement made, as far as they were counted.
    pub(crate) fn steps_of(&self, statement: &CachedStatement) -> u32 {
        if statement.is_bounded() { self.sqlite.hooks().interrupts.steps_seen() } else { 0 }
    }
}
