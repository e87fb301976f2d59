//! What the file system says of a database: its header, the files beside it, and who has it open.
//!
//! Owns: reading that, without SQLite. Invariant: a descriptor of the database is closed before the library opens it, because closing
//! one later would release the locks of this process. Leaves out: judging it (`commands::check`). Processes are found on Linux only,
//! those of other users only with their rights.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::figures::{self, Shown};

/// What the header of a database says (<https://sqlite.org/fileformat2.html#the_database_header>).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) page_bytes: u32,
    pub(crate) is_wal: bool,
}

/// A file beside the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Beside {
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
}

/// A process that has the file open, or one that was at its path and is deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) process: u32,
    pub(crate) name: String,
    pub(crate) has_deleted: bool,
}

#[derive(Debug)]
pub(crate) struct Files {
    pub(crate) bytes: u64,
    pub(crate) links: u64,
    /// `None` for an empty file, or one that is no plain database.
    pub(crate) header: Option<Header>,
    pub(crate) wal: Option<Beside>,
    /// What the header of the WAL says, if it has one.
    pub(crate) wal_page_bytes: Option<u32>,
    pub(crate) shm: Option<Beside>,
    pub(crate) journal: Option<Beside>,
    /// What backups that were killed have left.
    pub(crate) partial: Vec<Beside>,
    /// What programs with the option `observe` show of themselves.
    pub(crate) shown: Vec<Shown>,
    pub(crate) users: Vec<User>,
}

impl Files {
    /// Reads what there is at the path of a database. A link is followed, as SQLite does.
    pub(crate) fn of(path: &Path) -> std::io::Result<Self> {
        let path = path.canonicalize()?;
        let metadata = path.metadata()?;
        let wal = beside(&path, "-wal");
        Ok(Self {
            bytes: metadata.len(),
            links: links(&metadata),
            header: begin::<100>(&path).and_then(|bytes| header(&bytes)),
            wal_page_bytes: wal.as_ref().and_then(|wal| begin::<32>(&wal.path)).and_then(|bytes| wal_header(&bytes)),
            wal,
            shm: beside(&path, "-shm"),
            journal: beside(&path, "-journal"),
            partial: partial_files(&path),
            shown: figures::beside(&path),
            users: users(&path),
        })
    }
}

fn beside(path: &Path, suffix: &str) -> Option<Beside> {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    let path = PathBuf::from(name);
    let bytes = path.metadata().ok()?.len();
    Some(Beside { path, bytes })
}

/// The files of backups to this path that are not whole: `NAME.RANDOM.partial`.
pub(crate) fn partial_files(path: &Path) -> Vec<Beside> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return Vec::new() };
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let head = format!("{}.", name.to_string_lossy());
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let partial = entries.filter(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        name.starts_with(&head) && name.ends_with(".partial")
    });
    let with_length =
        |entry: std::fs::DirEntry| Some(Beside { path: entry.path(), bytes: entry.metadata().ok()?.len() });
    partial.filter_map(with_length).collect()
}

fn begin<const LENGTH: usize>(path: &Path) -> Option<[u8; LENGTH]> {
    let mut bytes = [0; LENGTH];
    File::open(path).ok()?.read_exact(&mut bytes).ok()?;
    Some(bytes)
}

fn header(bytes: &[u8; 100]) -> Option<Header> {
    let page = u16::from_be_bytes([bytes[16], bytes[17]]);
    let page_bytes = if page == 1 { 65_536 } else { u32::from(page) };
    bytes.starts_with(b"SQLite format 3\0").then_some(Header { page_bytes, is_wal: bytes[18] == 2 || bytes[19] == 2 })
}

/// The size of a page, by <https://sqlite.org/fileformat2.html#the_write_ahead_log>.
fn wal_header(bytes: &[u8; 32]) -> Option<u32> {
    let number = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    (number(0) & !1 == 0x377f_0682).then(|| number(8))
}

#[cfg(unix)]
fn links(metadata: &std::fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::nlink(metadata)
}

#[cfg(not(unix))]
fn links(_: &std::fs::Metadata) -> u64 {
    1
}

#[cfg(target_os = "linux")]
fn users(path: &Path) -> Vec<User> {
    use std::os::unix::fs::MetadataExt;

    let Ok(own) = path.metadata() else { return Vec::new() };
    let deleted = format!("{} (deleted)", path.display());
    let mut users: Vec<User> = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(process) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        if process == std::process::id() {
            continue;
        }
        for descriptor in std::fs::read_dir(entry.path().join("fd")).into_iter().flatten().flatten() {
            let has_deleted = std::fs::read_link(descriptor.path()).is_ok_and(|to| to.as_os_str() == &*deleted);
            let is_it =
                || descriptor.path().metadata().is_ok_and(|file| (file.dev(), file.ino()) == (own.dev(), own.ino()));
            if has_deleted || is_it() {
                let name = std::fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
                users.push(User { process, name: name.trim().to_owned(), has_deleted });
                break;
            }
        }
    }
    users
}

#[cfg(not(target_os = "linux"))]
fn users(_: &Path) -> Vec<User> {
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read() {
        let mut bytes = [0; 100];
        bytes[..16].copy_from_slice(b"SQLite format 3\0");
        bytes[16] = 16;
        assert_eq!(header(&bytes), Some(Header { page_bytes: 4096, is_wal: false }));
        bytes[16..20].copy_from_slice(&[0, 1, 2, 2]);
        assert_eq!(header(&bytes), Some(Header { page_bytes: 65_536, is_wal: true }));
        assert_eq!(header(&[1; 100]), None);
        let mut wal = [0; 32];
        wal[..12].copy_from_slice(&[0x37, 0x7f, 6, 0x83, 0, 0x2d, 0xe2, 0x18, 0, 0, 16, 0]);
        assert_eq!(wal_header(&wal), Some(4096));
        assert_eq!(wal_header(&[0; 32]), None);
    }

    #[test]
    fn the_files_of_killed_backups_are_found() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a.db.x1.partial", "a.db", "b.db.x1.partial", "a.db.x2"] {
            std::fs::write(folder.path().join(name), "xy").unwrap();
        }
        let found = partial_files(&folder.path().join("a.db"));
        assert_eq!(found, [Beside { path: folder.path().join("a.db.x1.partial"), bytes: 2 }]);
    }
}
