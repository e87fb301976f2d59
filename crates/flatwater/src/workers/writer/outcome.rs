//! What a failed COMMIT means. Pure.
//!
//! Owns: the decision from what can be known: SQLite's code, and the change counter of the wal-index before and after.
//! While we hold the write lock only our own COMMIT can move that counter, and it moves only when all frames and the
//! index were written without error. A COMMIT that failed without moving it can still leave a valid commit frame at the
//! end of the WAL, which a recovery after a crash would find ("ghost"); one more successful commit overwrites it. So the
//! answer is not given before such a commit, the fence, is done. Leaves out: doing it.

use rusqlite::ffi;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AfterFailure {
    /// Nothing of it is there, nor will be.
    NotCommitted,
    /// Nothing of it will be there once a fence is committed; if that fails it cannot be known.
    Fence,
    /// It may be there: it was published, or somebody else committed meanwhile.
    Unknown,
}

/// What tells a commit from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// Nothing outlives the connection.
    InMemory,
    /// The change counter of the wal-index.
    Wal(u32),
    /// A file without a wal-index that can be read.
    Unseen,
}

pub(crate) fn after_failed_commit(code: i32, before: Change, after: Change) -> AfterFailure {
    if !can_leave_a_ghost(code) {
        return AfterFailure::NotCommitted;
    }
    match (before, after) {
        (Change::InMemory, _) => AfterFailure::NotCommitted,
        (Change::Wal(before), Change::Wal(after)) if before == after => AfterFailure::Fence,
        _ => AfterFailure::Unknown,
    }
}

/// Whether the commit frame may have been written whole before the failure. It is written last: SQLITE_FULL means that
/// it, or a frame before it, did not fit. The others are no failures of writing at all.
fn can_leave_a_ghost(code: i32) -> bool {
    !matches!(
        code & 0xff,
        ffi::SQLITE_FULL
            | ffi::SQLITE_BUSY
            | ffi::SQLITE_LOCKED
            | ffi::SQLITE_INTERRUPT
            | ffi::SQLITE_CONSTRAINT
            | ffi::SQLITE_ERROR
            | ffi::SQLITE_ABORT
            | ffi::SQLITE_SCHEMA
            | ffi::SQLITE_TOOBIG
            | ffi::SQLITE_MISMATCH
            | ffi::SQLITE_MISUSE
            | ffi::SQLITE_AUTH
            | ffi::SQLITE_RANGE
            | ffi::SQLITE_READONLY
            | ffi::SQLITE_PERM
            | ffi::SQLITE_CANTOPEN
            | ffi::SQLITE_CORRUPT
            | ffi::SQLITE_NOTADB
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use AfterFailure::{Fence, NotCommitted, Unknown};
    use Change::{InMemory, Unseen, Wal};

    #[test]
    fn a_failed_commit_is_fenced_unless_it_is_known_to_be_gone_or_may_be_published() {
        let table = [
            (ffi::SQLITE_IOERR_FSYNC, Wal(7), Wal(7), Fence),
            (ffi::SQLITE_IOERR_WRITE, Wal(7), Wal(7), Fence),
            (ffi::SQLITE_NOMEM, Wal(7), Wal(7), Fence),
            (ffi::SQLITE_PROTOCOL, Wal(7), Wal(7), Fence),
            (ffi::SQLITE_IOERR_FSYNC, Wal(7), Wal(8), Unknown),
            (ffi::SQLITE_IOERR_FSYNC, Wal(7), Unseen, Unknown),
            (ffi::SQLITE_IOERR_FSYNC, InMemory, InMemory, NotCommitted),
            (ffi::SQLITE_IOERR_FSYNC, Unseen, Unseen, Unknown),
            (ffi::SQLITE_FULL, Wal(7), Wal(7), NotCommitted),
            (ffi::SQLITE_CONSTRAINT_FOREIGNKEY, Wal(7), Wal(7), NotCommitted),
            (ffi::SQLITE_BUSY, Wal(7), Wal(9), NotCommitted),
        ];
        for (code, before, after, expected) in table {
            assert_eq!(after_failed_commit(code, before, after), expected, "{code} {before:?} {after:?}");
        }
    }
}
