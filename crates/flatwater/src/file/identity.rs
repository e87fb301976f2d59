//! Identifying a file, whatever path leads to it, and whether another process changed the files of a database that has no
//! connection.
//!
//! Owns: the identity of a file: device and inode, which are equal for all paths, links and hard links of one file. Where the system
//! has no inodes, or the file does not exist yet, the path is the identity. Also the stamp of a database: what shows a change from
//! outside, the length and the times of the database and of its WAL. Blocks on the file system, for a `stat`. Invariant: a commit
//! changes the stamp, since it writes to the WAL or, without one, to the database; whether two commits within one tick of the file
//! system's clock do, it cannot tell. Leaves out: storing identities, and how often to look.

use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::options::resolve::beside;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum FileId {
    #[cfg(unix)]
    Inode {
        device: u64,
        inode: u64,
    },
    Path(PathBuf),
}

impl FileId {
    /// The file that `path`, resolved, leads to now, or the path itself if no file is found.
    pub(crate) fn of(path: &Path) -> Self {
        std::fs::metadata(path)
            .map_or_else(|_| Self::Path(path.to_owned()), |metadata| Self::of_metadata(&metadata, path))
    }

    #[cfg(unix)]
    pub(crate) fn of_metadata(metadata: &Metadata, _: &Path) -> Self {
        use std::os::unix::fs::MetadataExt;
        Self::Inode { device: metadata.dev(), inode: metadata.ino() }
    }

    /// The file's inode number, if it has one.
    pub(crate) fn inode(&self) -> Option<u64> {
        match self {
            #[cfg(unix)]
            Self::Inode { inode, .. } => Some(*inode),
            Self::Path(_) => None,
        }
    }

    #[cfg(not(unix))]
    pub(crate) fn of_metadata(_: &Metadata, path: &Path) -> Self {
        Self::Path(path.to_owned())
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) database: Option<FileStamp>,
    /// There is none if nobody has the file open in WAL mode: the last one removes it.
    pub(crate) wal: Option<FileStamp>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileStamp {
    file: FileId,
    bytes: u64,
    modified: Option<SystemTime>,
}

impl Stamp {
    pub(crate) fn of(database: &Path) -> Self {
        Self { database: FileStamp::of(database), wal: FileStamp::of(&beside(database, "-wal")) }
    }
}

impl FileStamp {
    fn of(path: &Path) -> Option<Self> {
        let of = |metadata: Metadata| Self {
            file: FileId::of_metadata(&metadata, path),
            bytes: metadata.len(),
            modified: metadata.modified().ok(),
        };
        std::fs::metadata(path).ok().map(of)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn links_lead_to_one_file_and_a_missing_file_is_its_path() {
        let directory = tempfile::tempdir().unwrap();
        let [file, hard, symbolic, other] = ["a", "b", "c", "d"].map(|name| directory.path().join(name));
        assert_eq!(FileId::of(&file), FileId::Path(file.clone()));
        std::fs::write(&file, "").unwrap();
        std::fs::write(&other, "").unwrap();
        std::fs::hard_link(&file, &hard).unwrap();
        std::os::unix::fs::symlink(&file, &symbolic).unwrap();
        let id = FileId::of(&file);
        assert_eq!([FileId::of(&hard), FileId::of(&symbolic)], [id.clone(), id.clone()]);
        assert_ne!(FileId::of(&other), id);
    }
}

#[cfg(test)]
mod stamp_tests {
    use super::*;

    #[test]
    fn a_commit_of_another_connection_changes_it_and_its_last_close_too() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.db");
        let open = || rusqlite::Connection::open(&path).unwrap();
        open().execute_batch("PRAGMA journal_mode = wal; CREATE TABLE t (a)").unwrap();
        let before = Stamp::of(&path);
        assert!(before.wal.is_none() && before == Stamp::of(&path));
        let other = open();
        other.execute_batch("INSERT INTO t VALUES (randomblob(10000))").unwrap();
        let wrote = Stamp::of(&path);
        assert!(wrote != before && wrote.wal.is_some());
        drop(other);
        assert!(Stamp::of(&path).database != before.database);
    }
}
