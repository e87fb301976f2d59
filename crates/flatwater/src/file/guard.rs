//! Locks that keep a second SQLite library in this process from concluding that it is the last user of a file.
//!
//! Owns: this crate's descriptors of the database and of its wal-index, and the locks on them, which belong to a
//! descriptor and so survive when the second library closes the file. Runs on the threads that open and close
//! databases. Invariants: one descriptor per file; a guard is held from before the first write to the moment before
//! SQLite closes the file, or until the second library that also has the file open has closed it; a descriptor is
//! closed only while no process holds a lock on its file, otherwise it is kept, released, and closed at a later
//! attempt. Leaves out: the byte ranges (`flatwater-sqlite`), and detecting the second library (`second_library`).

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use flatwater_sqlite::{LockFile, LockedFile, Origin, PerProcess};

use super::identity::FileId;
use super::second_library::{Mappings, mappings};
use crate::options::resolve::beside;

/// Attempts to lock a file that another connection has locked exclusively, a millisecond apart.
const TRIES: u32 = 1000;

struct Kept {
    /// Descriptors that are released and could not be closed.
    files: Vec<(FileId, LockFile)>,
    /// Guards that are still held, because a second library has the file open.
    guards: Vec<Guard>,
}

/// Per process: a forked child shares its parent's locks through these descriptors, so it must not use them.
static KEPT: PerProcess<Kept> = PerProcess::new(|| Kept { files: Vec::new(), guards: Vec::new() });

/// Holds both files as in use. Dropping it releases them.
pub(crate) struct Guard {
    files: Vec<(FileId, LockFile)>,
    origin: Origin,
}

impl Guard {
    /// Locks the database at `path` and its wal-index. Call it while SQLite has both open. Blocks for a moment if
    /// another connection has one of them locked exclusively. Returns `None` where the system has no such locks, or
    /// without a wal-index.
    pub(crate) fn hold(path: &Path) -> io::Result<Option<Self>> {
        let index = beside(path, "-shm");
        if !index.exists() {
            return Ok(None);
        }
        if let Some(guard) = take_held(&[FileId::of(path), FileId::of(&index)]) {
            return Ok(Some(guard));
        }
        let mut guard = Self { files: Vec::new(), origin: Origin::here() };
        for (path, which) in [(path, LockedFile::Database), (&*index, LockedFile::WalIndex)] {
            let (id, file) = match open(path, which) {
                Err(error) if error.kind() == io::ErrorKind::Unsupported => return Ok(None),
                opened => opened?,
            };
            // Kept from here on, so that no return path closes it.
            guard.files.push((id, file));
            hold(&guard.files[guard.files.len() - 1].1)?;
        }
        Ok(Some(guard))
    }

    /// Keeps the guard while a second library has the file open, because that library lost its own locks when this
    /// crate's SQLite closed the file. Call it before [`close_kept`], which checks for that library.
    pub(crate) fn keep(self) {
        KEPT.lock().guards.push(self);
    }

    fn is_needed(&self, mappings: &Mappings) -> bool {
        let inodes = self.files.iter().filter_map(|(id, _)| id.inode());
        inodes.into_iter().any(|inode| mappings.has(inode))
    }
}

/// Returns the guard of these files, if one is held because of a second library.
fn take_held(ids: &[FileId]) -> Option<Guard> {
    let mut kept = KEPT.lock();
    let guards = &mut kept.guards;
    let at = guards.iter().position(|guard| guard.files.iter().map(|(id, _)| id).eq(ids))?;
    Some(guards.swap_remove(at))
}

fn open(path: &Path, which: LockedFile) -> io::Result<(FileId, LockFile)> {
    let mut kept = KEPT.lock();
    let wanted = FileId::of(path);
    if let Some(at) = kept.files.iter().position(|(id, _)| *id == wanted) {
        return Ok(kept.files.swap_remove(at));
    }
    let file = LockFile::open(path, which)?;
    // The identity of the opened file counts, because the name may lead to another file meanwhile.
    let id = file.metadata().map(|metadata| FileId::of_metadata(&metadata, path));
    Ok((id.unwrap_or(wanted), file))
}

fn hold(file: &LockFile) -> io::Result<()> {
    for _ in 0..TRIES {
        if file.hold()? {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Err(io::ErrorKind::WouldBlock.into())
}

impl Drop for Guard {
    fn drop(&mut self) {
        // In a forked child these are the parent's locks.
        if self.origin.is_inherited() {
            return std::mem::forget(std::mem::take(&mut self.files));
        }
        for (_, file) in &self.files {
            // A lock that cannot be released ends with the process; until then it only keeps other connections from
            // cleaning up.
            let _ = file.release();
        }
        KEPT.lock().files.append(&mut self.files);
    }
}

/// Returns true if a guard or a descriptor is kept.
pub(crate) fn has_kept() -> bool {
    let kept = KEPT.lock();
    !kept.guards.is_empty() || !kept.files.is_empty()
}

/// Releases the guards and closes the descriptors that are no longer needed. Blocks while guards are kept for a second
/// library, because it reads the mappings of the process.
pub(crate) fn close_kept() {
    let unneeded: Vec<Guard> = {
        let mut kept = KEPT.lock();
        let guards = &mut kept.guards;
        let mappings = if guards.is_empty() { Arc::default() } else { mappings() };
        guards.extract_if(.., |guard| !guard.is_needed(&mappings)).collect()
    };
    drop(unneeded);
    let mut kept = KEPT.lock();
    let files = std::mem::take(&mut kept.files);
    kept.files = files.into_iter().filter_map(|(id, file)| Some((id, file.close().err()?))).collect();
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    fn kept_of(path: &Path) -> usize {
        let id = FileId::of(path);
        KEPT.lock().files.iter().filter(|(kept, _)| *kept == id).count()
    }

    #[test]
    fn a_guard_is_kept_while_somebody_uses_the_file_and_is_used_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.db");
        let user = rusqlite::Connection::open(&path).unwrap();
        user.execute_batch("PRAGMA journal_mode = wal; CREATE TABLE t (a)").unwrap();
        let guard = Guard::hold(&path).unwrap().unwrap();
        drop(guard);
        close_kept();
        assert_eq!(kept_of(&path), 1, "the connection holds locks that closing would take away");
        let guard = Guard::hold(&path).unwrap().unwrap();
        assert_eq!(kept_of(&path), 0);
        drop(guard);
        drop(user);
        close_kept();
        assert_eq!(kept_of(&path), 0, "nobody holds a lock");
    }
}
