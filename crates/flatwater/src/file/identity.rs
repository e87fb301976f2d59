//! Identifying a file, whatever path leads to it.
//!
//! Owns: the identity of a file: device and inode, which are equal for all paths, links and hard links of one file.
//! Where the system has no inodes, or the file does not exist yet, the path is the identity. Pure apart from one
//! `stat`; runs on any thread. Leaves out: storing identities.

use std::fs::Metadata;
use std::path::{Path, PathBuf};

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
