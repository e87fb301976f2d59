//! What a failed COMMIT means. Pure.
//!
//! Owns: the decision from what can be known: SQLite's code, and the change counter of the wal-index before and after.
//! While the connection holds the write lock, only its own COMMIT can change that counter, and it does so only after
//! all frames and the index were written without error. A COMMIT that failed without changing it can still leave a
//! valid commit frame at the end of the WAL (a "phantom commit"), which a recovery after a crash would find; one more
//! successful commit overwrites it. So the caller is answered only after such a commit, the barrier commit, is done.
//! With attached files SQLite commits one file after the other (<https://sqlite.org/lang_attach.html>), so each file is
//! checked. Runs on the thread that holds the slot. Invariant: `NotCommitted` is returned only if no phantom commit
//! can be left. Leaves out: making the barrier commit (`commit`).

use rusqlite::ffi;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AfterFailure {
    /// Nothing of the commit is in the database, nor will be.
    NotCommitted,
    /// Nothing of the commit will be in the database once a barrier commit is committed; if the barrier commit fails,
    /// the outcome is unknown.
    Barrier,
    /// The commit may be in the database: it was published, or another connection committed meanwhile.
    Unknown,
}

/// What shows a commit from outside the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// A database in memory: nothing outlives the connection.
    InMemory,
    /// The change counter of the wal-index.
    Wal(u32),
    /// A file without a wal-index that can be read.
    Unseen,
}

/// The same for all files of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Changes {
    pub(crate) main: Change,
    /// The attached files with a wal-index, by name.
    pub(crate) attached: Vec<(Box<str>, u32)>,
}

impl Changes {
    /// Returns the changes of a write that touches the main file only.
    pub(crate) fn of_main(main: Change) -> Self {
        Self { main, attached: Vec::new() }
    }

    /// Returns the files in which a commit was published since `before`.
    pub(crate) fn moved_since<'a>(&'a self, before: &'a Self) -> impl Iterator<Item = &'a str> {
        let was = |name: &str| before.attached.iter().find(|(before, _)| **before == *name).map(|(_, change)| *change);
        let attached = self.attached.iter().filter(move |(name, change)| was(name).is_some_and(|was| was != *change));
        let main = (self.main != before.main).then_some("main");
        main.into_iter().chain(attached.map(|(name, _)| &**name))
    }
}

pub(crate) fn after_failed_commit(code: i32, before: &Changes, after: &Changes) -> AfterFailure {
    if is_before_the_commit(code) {
        return AfterFailure::NotCommitted;
    }
    // SQLite commits file by file: a commit that failed because one file was full may be published in another.
    if !before.attached.is_empty() && after.moved_since(before).next().is_some() {
        return AfterFailure::Unknown;
    }
    if !can_leave_a_phantom(code) {
        return AfterFailure::NotCommitted;
    }
    match (before.main, after.main) {
        (Change::InMemory, _) => AfterFailure::NotCommitted,
        (Change::Wal(before), Change::Wal(after)) if before == after => AfterFailure::Barrier,
        _ => AfterFailure::Unknown,
    }
}

/// Returns true if the statement failed before anything of a commit was written.
fn is_before_the_commit(code: i32) -> bool {
    matches!(
        code & 0xff,
        ffi::SQLITE_BUSY
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
    )
}

/// Returns true if the commit frame may have been written completely before the failure. It is written last:
/// SQLITE_FULL means that it, or a frame before it, did not fit. SQLITE_PROTOCOL comes from the snapshot that a commit
/// takes before its first frame when it starts the WAL over. The other codes are not failures of writing.
fn can_leave_a_phantom(code: i32) -> bool {
    !matches!(
        code & 0xff,
        ffi::SQLITE_FULL
            | ffi::SQLITE_PROTOCOL
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
    use AfterFailure::{Barrier, NotCommitted, Unknown};
    use Change::{InMemory, Unseen, Wal};

    #[test]
    fn a_failed_commit_has_a_barrier_unless_it_is_known_to_be_gone_or_may_be_published() {
        let table = [
            (ffi::SQLITE_IOERR_FSYNC, Wal(7), Wal(7), Barrier),
            (ffi::SQLITE_IOERR_WRITE, Wal(7), Wal(7), Barrier),
            (ffi::SQLITE_NOMEM, Wal(7), Wal(7), Barrier),
            (ffi::SQLITE_PROTOCOL, Wal(7), Wal(7), NotCommitted),
            (ffi::SQLITE_PROTOCOL, Wal(7), Wal(8), NotCommitted),
            (ffi::SQLITE_IOERR_FSYNC, Wal(7), Wal(8), Unknown),
            (ffi::SQLITE_IOERR_FSYNC, Wal(7), Unseen, Unknown),
            (ffi::SQLITE_IOERR_FSYNC, InMemory, InMemory, NotCommitted),
            (ffi::SQLITE_IOERR_FSYNC, Unseen, Unseen, Unknown),
            (ffi::SQLITE_FULL, Wal(7), Wal(7), NotCommitted),
            (ffi::SQLITE_FULL, Wal(7), Wal(8), NotCommitted),
            (ffi::SQLITE_CONSTRAINT_FOREIGNKEY, Wal(7), Wal(7), NotCommitted),
            (ffi::SQLITE_BUSY, Wal(7), Wal(9), NotCommitted),
        ];
        for (code, before, after, expected) in table {
            let (before, after) = (Changes::of_main(before), Changes::of_main(after));
            assert_eq!(after_failed_commit(code, &before, &after), expected, "{code} {before:?} {after:?}");
        }
    }

    #[test]
    fn with_an_attached_file_a_commit_that_failed_may_be_in_one_of_them() {
        let changes = |main, other| Changes { main: Wal(main), attached: vec![("other".into(), other)] };
        let table = [
            (ffi::SQLITE_FULL, changes(8, 3), Unknown),
            (ffi::SQLITE_FULL, changes(7, 4), Unknown),
            (ffi::SQLITE_FULL, changes(7, 3), NotCommitted),
            (ffi::SQLITE_READONLY, changes(8, 3), Unknown),
            (ffi::SQLITE_PROTOCOL, changes(8, 3), Unknown),
            (ffi::SQLITE_IOERR_WRITE, changes(7, 4), Unknown),
            (ffi::SQLITE_IOERR_WRITE, changes(7, 3), Barrier),
            (ffi::SQLITE_CONSTRAINT_UNIQUE, changes(8, 4), NotCommitted),
        ];
        for (code, after, expected) in table {
            assert_eq!(after_failed_commit(code, &changes(7, 3), &after), expected, "{code} {after:?}");
        }
        let (before, after) = (changes(7, 3), changes(8, 4));
        assert_eq!(after.moved_since(&before).collect::<Vec<_>>(), ["main", "other"]);
        assert_eq!(changes(7, 4).moved_since(&before).collect::<Vec<_>>(), ["other"]);
    }
}
