//! What the guard refuses, and the codes by which a refusal is told from other failures.
//!
//! Owns: the codes. Pure. Invariant: none of them is a code of SQLite's own. Leaves out: when something is refused
//! (`guard`).

use std::ffi::c_int;

use rusqlite::ffi;

/// The error that refuses a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageRefusal {
    /// SQLITE_INTERRUPT, after which SQLite keeps an open transaction if the statement only reads
    /// (<https://sqlite.org/c3ref/interrupt.html>).
    Interrupt,
    /// SQLITE_IOERR, after which SQLite rolls the transaction back.
    Failure,
}

/// The thing that was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// A page that would have been read too late.
    Page,
    /// A snapshot that did not begin at once. The statement had no effect.
    Snapshot,
    /// The new snapshot of a commit that was about to start the WAL over. Nothing of the commit was written, and its
    /// transaction is rolled back.
    CommitSnapshot,
}

/// Marks the extended result codes of refusals. SQLite has no such codes.
pub(super) const MARK: c_int = 0x7f << 8;
const COMMIT_MARK: c_int = 0x7e << 8;

/// A code after which SQLite neither retries nor assumes a failure of the file system (`walTryBeginRead` and
/// `sqlite3VdbeHalt`).
pub(super) const SNAPSHOT: c_int = ffi::SQLITE_PROTOCOL | MARK;
pub(super) const COMMIT_SNAPSHOT: c_int = ffi::SQLITE_PROTOCOL | COMMIT_MARK;

/// Returns what was refused, given the extended error code of a failed statement; `None` if it failed for another
/// reason.
#[must_use]
pub fn refused(extended_code: c_int) -> Option<Refused> {
    match extended_code {
        SNAPSHOT => Some(Refused::Snapshot),
        COMMIT_SNAPSHOT => Some(Refused::CommitSnapshot),
        code if code & !0xff == MARK => Some(Refused::Page),
        _ => None,
    }
}
