//! Locks on a database file and its `-shm` file that belong to a descriptor and not to the process.
//!
//! Owns: the one place that opens these files outside of SQLite, and the byte ranges that SQLite locks there. Closing
//! any descriptor of a file drops all POSIX locks that the process holds on it, including SQLite's
//! (<https://sqlite.org/howtocorrupt.html#_posix_advisory_locks_canceled_by_a_separate_thread_doing_close_>). So
//! dropping a [`LockFile`] does not close it, and [`LockFile::close`] closes it only while it holds every byte
//! exclusively: then no process, including this one, holds a lock that could be lost. Runs on any thread, and never
//! waits for a lock. Linux only: on other systems `open` returns `Unsupported`. Leaves out: when to lock.

pub(crate) mod ofd;

use std::io;
use std::path::Path;

use crate::locks::ofd::{Kind, set};
use crate::process::{forks, without_forks};

/// One of the two files, which determines the bytes to lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockedFile {
    /// The database: SQLite's lock bytes begin at 1 GiB (<https://sqlite.org/fileformat2.html#the_lock_byte_page>).
    Database,
    /// The wal-index (<https://sqlite.org/walformat.html#wal_locks>).
    WalIndex,
}

/// PENDING, RESERVED and the 510 SHARED bytes.
const PENDING_BYTE: i64 = 0x4000_0000;
const SHARED_FIRST: i64 = PENDING_BYTE + 2;
const SHARED_BYTES: i64 = 510;
/// The eight locks of the wal-index and, after them, the byte that every user of it holds shared while it has it open.
const WAL_LOCKS: i64 = 120;
const ALIVE: i64 = WAL_LOCKS + 8;

impl LockedFile {
    /// First byte and length of the range that a user of the file holds shared as long as it has the file open.
    #[must_use]
    pub fn in_use(self) -> (i64, i64) {
        match self {
            Self::Database => (SHARED_FIRST, SHARED_BYTES),
            Self::WalIndex => (ALIVE, 1),
        }
    }

    /// First byte and length of all bytes that SQLite may ever lock.
    #[must_use]
    pub fn all(self) -> (i64, i64) {
        match self {
            Self::Database => (PENDING_BYTE, 2 + SHARED_BYTES),
            Self::WalIndex => (WAL_LOCKS, 9),
        }
    }
}

/// An open descriptor that SQLite does not use.
#[derive(Debug)]
pub struct LockFile {
    file: std::mem::ManuallyDrop<std::fs::File>,
    which: LockedFile,
    /// The number of forks when it was opened. A child forked later has the descriptor too.
    forks: u32,
}

impl LockFile {
    /// Opens `path`, which must exist and be writable: without an exclusive lock a descriptor could never be closed.
    ///
    /// # Errors
    /// The operating system's error; `Unsupported` where there are no locks that belong to a descriptor.
    pub fn open(path: &Path, which: LockedFile) -> io::Result<Self> {
        if !cfg!(target_os = "linux") {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let forks = forks();
        let file = std::fs::OpenOptions::new().read(true).write(true).open(path)?;
        Ok(Self { file: std::mem::ManuallyDrop::new(file), which, forks })
    }

    /// The metadata of the open file, even if its name now leads to another file or to none.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn metadata(&self) -> io::Result<std::fs::Metadata> {
        self.file.metadata()
    }

    /// Holds the file as in use, so that no other descriptor can lock it exclusively. Returns false if another one has
    /// it locked exclusively at the moment.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn hold(&self) -> io::Result<bool> {
        set(&self.file, Kind::Shared, self.which.in_use())
    }

    /// Releases the lock that [`hold`](Self::hold) took.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn release(&self) -> io::Result<()> {
        set(&self.file, Kind::None, self.which.all()).map(drop)
    }

    /// Closes the descriptor if that can drop no lock; otherwise returns the file.
    ///
    /// ```text
    /// this thread                                      any other thread or process
    /// locks every byte exclusively: done, so no process
    /// holds one, not even this one by POSIX locks
    ///                                                  asks for one: refused
    /// close(2): drops the process' POSIX locks,
    /// of which there are none; then the lock alone,
    /// which goes with the descriptor
    ///                                                  asks again: granted
    /// ```
    ///
    /// The lock ends with the descriptor only if no child process has the descriptor too. So the descriptor is kept
    /// once this process was forked, and no thread can fork during the close.
    ///
    /// # Errors
    /// The file itself, still open.
    pub fn close(self) -> Result<(), Self> {
        without_forks(|| {
            if self.forks == forks() && matches!(set(&self.file, Kind::Alone, self.which.all()), Ok(true)) {
                drop(std::mem::ManuallyDrop::into_inner(self.file));
                return Ok(());
            }
            Err(self)
        })
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_file_in_use_cannot_be_taken_alone_and_is_not_closed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        std::fs::write(&path, "").unwrap();
        let open = || LockFile::open(&path, LockedFile::Database).unwrap();
        let (first, second) = (open(), open());
        assert!(first.hold().unwrap() && second.hold().unwrap(), "both share it");
        let first = first.close().expect_err("the second one holds it");
        second.release().unwrap();
        assert!(first.close().is_ok());
        assert!(second.close().is_ok());
    }
}
