//! What the guard refuses, and the codes by which a refusal is told from other failures.
//!
//! Owns: the codes. Pure. Invariant: none of them is a code of SQLite's own. Leaves out: when something is refused
//! (`guard`).

use std::ffi::c_int;

use rusqlite::ffi;

/// The thing that was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// A snapshot that did not begin at once. The statement had no effect.
    Snapshot,
    /// The new snapshot of a commit that was about to start the WAL over. Nothing of the commit was written, and its
    /// transaction is rolled back.
    CommitSnapshot,
}

/// A code after which SQLite neither retries nor assumes a failure of the file system (`walTryBeginRead` and
/// `sqlite3VdbeHalt`). SQLite has no such extended codes.
pub(super) const SNAPSHOT: c_int = ffi::SQLITE_PROTOCOL | (0x7f << 8);
pub(super) const COMMIT_SNAPSHOT: c_int = ffi::SQLITE_PROTOCOL | (0x7e << 8);

/// Returns what was refused, given the extended error code of a failed statement; `None` if it failed for another
/// reason.
#[must_use]
pub fn refused(extended_code: c_int) -> Option<Refused> {
    match extended_code {
        SNAPSHOT => Some(Refused::Snapshot),
        COMMIT_SNAPSHOT => Some(Refused::CommitSnapshot),
        _ => None,
    }
}
