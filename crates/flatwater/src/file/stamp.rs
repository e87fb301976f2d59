//! Whether another process changed the files of a database that has no connection.
//!
//! Owns: what shows a change from outside, the length and the times of the database and of its WAL. Blocks on the file system.
//! Invariant: a commit changes it, since it writes to the WAL or, without one, to the database; whether two commits within one
//! tick of the file system's clock do, it cannot tell. Leaves out: how often to look.

use std::fs::Metadata;
use std::path::Path;
use std::time::SystemTime;

use super::identity::FileId;
use crate::options::resolve::beside;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stamp {
    database: Option<One>,
    wal: Option<One>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct One {
    file: FileId,
    bytes: u64,
    modified: Option<SystemTime>,
}

impl Stamp {
    pub(crate) fn of(database: &Path) -> Self {
        Self { database: One::of(database), wal: One::of(&beside(database, "-wal")) }
    }

    /// Returns true if nobody has the file open in WAL mode: the last one removes the WAL.
    pub(crate) fn has_no_wal(&self) -> bool {
        self.wal.is_none()
    }

    pub(crate) fn has_database_of(&self, other: &Self) -> bool {
        self.database == other.database
    }
}

impl One {
    fn of(path: &Path) -> Option<Self> {
        let of = |metadata: Metadata| Self {
            file: FileId::of_metadata(&metadata, path),
            bytes: metadata.len(),
            modified: metadata.modified().ok(),
        };
        std::fs::metadata(path).ok().map(of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_of_another_connection_changes_it_and_its_last_close_too() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.db");
        let open = || rusqlite::Connection::open(&path).unwrap();
        open().execute_batch("PRAGMA journal_mode = wal; CREATE TABLE t (a)").unwrap();
        let before = Stamp::of(&path);
        assert!(before.has_no_wal() && before == Stamp::of(&path));
        let other = open();
        other.execute_batch("INSERT INTO t VALUES (randomblob(10000))").unwrap();
        let wrote = Stamp::of(&path);
        assert!(wrote != before && !wrote.has_no_wal());
        drop(other);
        assert!(!Stamp::of(&path).has_database_of(&before));
    }
}
