//! Watching the files of an open database, and refusing writes after a fault.
//!
//! Owns: the identities of the files of one open database, checking them, and the refusal. The check runs on a thread
//! of its own (`engine::file_table`) and at open, and holds no lock while it asks the file system; the code that opens
//! and closes connections reports to it; the writer reads the refusal. Invariants: once writes are refused they stay
//! refused until the database is opened again; nothing is concluded from a list of mappings that is older than the
//! connection. Leaves out: how often to check.
//!
//! ```text
//! fw-check                                 threads that park and open databases
//!                                          SQLite removes the -shm of A, which is mapped yet
//! reads the list: at this address is
//! a file that was deleted
//!                                          SQLite unmaps it
//!                                          B is opened: its wal-index is mapped at this address
//! looks at B: the list is older than its
//! connection, and says nothing
//! ```

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;

use super::drain::{Drains, ParkedState};
use super::guard::Guard;
use super::identity::FileId;
use super::second_library::{Mapped, Mappings, mappings};
use crate::events;
use crate::options::resolve::beside;
use flatwater_base::error::hint::hint;
use flatwater_base::error::kind::is_failed_sync;
use flatwater_base::error::{Error, ErrorCode, Result};
use flatwater_base::thread::lock;

pub(crate) struct Watch {
    path: PathBuf,
    /// Set when the file is known to exist.
    file: OnceLock<FileId>,
    allows_second: bool,
    open: Mutex<OpenFiles>,
    refusal: OnceLock<Error>,
    second_copies: AtomicU64,
    /// There was a wal-index before this crate's SQLite opened the file for writing, or that is not known.
    had_index: AtomicBool,
    /// The drains of this file: closing every connection to it.
    pub(crate) drains: Drains,
    guard: Mutex<Option<Guard>>,
    /// Whether the database is open and has no connection.
    pub(crate) parked: ParkedState,
}

/// The files of the connection that was opened last.
#[derive(Default, Clone)]
struct OpenFiles {
    /// How often a connection was opened or closed.
    number: u64,
    wal: Option<FileId>,
    /// The address at which its wal-index is mapped, and since when at the latest.
    index: Option<(usize, Instant)>,
}

impl Watch {
    pub(crate) fn new(path: &Path, allows_second: bool) -> Self {
        Self {
            path: path.to_owned(),
            file: OnceLock::new(),
            allows_second,
            open: Mutex::default(),
            refusal: OnceLock::new(),
            second_copies: AtomicU64::new(0),
            had_index: AtomicBool::new(true),
            drains: Drains::default(),
            guard: Mutex::default(),
            parked: ParkedState::default(),
        }
    }

    /// Guards the files against a second library, from now until `unguard`. Called while a connection is open. Blocks
    /// for a moment if another connection has one of them locked exclusively.
    pub(crate) fn guard(&self) -> Result<()> {
        let guard = Guard::hold(&self.path).map_err(|error| {
            let sentence = format!("{} cannot be guarded against a second library: {error}", self.path.display());
            Error::new(ErrorCode::System, sentence)
                .with_hint("another process holds an exclusive lock on the file or its -shm, or this process has reached its open-file limit")
                .in_operation("open")
        })?;
        *lock(&self.guard) = guard;
        Ok(())
    }

    /// Returns the guard. Dropping it releases the files.
    pub(crate) fn unguard(&self) -> Option<Guard> {
        lock(&self.guard).take()
    }

    /// Called when the writer has opened its connection again: guards the files, looks for a second library, and allows
    /// other connections.
    pub(crate) fn unpark(&self) -> Result<()> {
        if self.parked.is_set() {
            self.guard()?;
            self.look_at_open()?;
            self.parked.end();
        }
        Ok(())
    }

    /// Called before the writer's connection is opened.
    pub(crate) fn opens(&self) {
        self.had_index.store(beside(&self.path, "-shm").exists(), Ordering::Relaxed);
    }

    /// The check when the database was opened. Whoever uses the WAL has a wal-index: if there was none before, no second library
    /// has the file open, and the mappings of the process, which take long to read, are left to the periodic check.
    pub(crate) fn look_at_open(&self) -> Result<()> {
        let may_have_second_copy = self.had_index.load(Ordering::Relaxed);
        let mappings = if may_have_second_copy { mappings() } else { Arc::default() };
        self.look(&mappings)
    }

    /// Records that a connection was opened, with its wal-index at `index`.
    pub(crate) fn opened(&self, index: Option<usize>) {
        self.file.get_or_init(|| FileId::of(&self.path));
        let wal = index.and_then(|_| existing(&beside(&self.path, "-wal")));
        self.note(wal, index);
    }

    /// Records that the connection was closed: until the next one is opened, no WAL and no wal-index are expected.
    pub(crate) fn closed(&self) {
        self.note(None, None);
    }

    fn note(&self, wal: Option<FileId>, index: Option<usize>) {
        let mut open = lock(&self.open);
        *open = OpenFiles { number: open.number + 1, wal, index: index.map(|address| (address, Instant::now())) };
    }

    /// The identity of the opened database file.
    pub(crate) fn file(&self) -> Option<&FileId> {
        self.file.get()
    }

    /// The reason why writes are refused, if they are.
    pub(crate) fn refusal(&self) -> Option<&Error> {
        self.refusal.get()
    }

    pub(crate) fn second_copies(&self) -> u64 {
        self.second_copies.load(Ordering::Relaxed)
    }

    /// Returns true if a second library has the file open, according to the `mappings` of the process, which are read only if
    /// this crate has it open.
    pub(crate) fn has_second_copy(&self, mappings: impl FnOnce() -> Arc<Mappings>) -> bool {
        let index = lock(&self.open).index;
        index.is_some_and(|(address, _)| matches!(mappings().at(address), Mapped::Twice(_)))
    }

    /// Drops the guard, so that SQLite can be the last user of the file and remove the WAL; unless another library in this
    /// process uses the file too: then the WAL must stay. Blocks.
    pub(crate) fn release(&self) {
        if !self.has_second_copy(mappings) {
            drop(self.unguard());
        }
    }

    /// Checks whether the files are unchanged. Records what changed, and returns the error if writes are refused
    /// because of it. Blocks on the file system.
    pub(crate) fn look(&self, mappings: &Mappings) -> Result<()> {
        if let Some(error) = self.find(mappings) {
            self.refuse(|| error);
        }
        self.refusal().map_or(Ok(()), |error| Err(error.clone()))
    }

    /// Checks that the path still leads to the open file. Called before a connection is opened.
    pub(crate) fn check_file(&self) -> Result<()> {
        if self.is_moved() { Err(self.refuse(|| self.moved()).clone()) } else { Ok(()) }
    }

    /// Refuses writes from now on. The first reason stays.
    fn refuse(&self, error: impl FnOnce() -> Error) -> &Error {
        let mut is_first = false;
        let error = self.refusal.get_or_init(|| {
            is_first = true;
            error()
        });
        if is_first {
            events::refused(&self.path, error);
        }
        error
    }

    fn is_moved(&self) -> bool {
        // A custom VFS may have a file that is not visible in the file system.
        self.file().is_some_and(|file| file.inode().is_some() && existing(&self.path).as_ref() != Some(file))
    }

    fn find(&self, mappings: &Mappings) -> Option<Error> {
        if self.is_moved() {
            return Some(self.moved());
        }
        let before = lock(&self.open).clone();
        // Without the lock, which opening and closing a connection take: the file system may hang. A WAL that is gone
        // because the connection was closed meanwhile is not lost.
        if before.wal.is_some()
            && existing(&beside(&self.path, "-wal")) != before.wal
            && lock(&self.open).number == before.number
        {
            return Some(self.lost("WAL"));
        }
        let (address, since) = lock(&self.open).index?;
        if !mappings.was_read_since(since) {
            return None;
        }
        match mappings.at(address) {
            Mapped::Deleted => Some(self.lost("wal-index")),
            Mapped::Twice(libraries) => {
                if self.second_copies.fetch_add(1, Ordering::Relaxed) == 0 && self.allows_second {
                    events::second_copy(&self.path, &libraries);
                }
                (!self.allows_second).then(|| self.copied(&libraries))
            }
            Mapped::Once | Mapped::Unknown => None,
        }
    }

    fn moved(&self) -> Error {
        Error::new(
            ErrorCode::FileReplaced,
            format!("{} was replaced or removed while it was open", self.path.display()),
        )
        .with_hint("writes are refused because they would be lost: close all handles and reopen the file")
    }

    /// Refuses writes from now on if the error is a failed sync. After such a failure the system drops the pages that
    /// it could not write, and another sync would report success (<https://wiki.postgresql.org/wiki/Fsync_Errors>).
    pub(crate) fn refuse_after_failed_sync(&self, error: &Error) {
        if !error.sqlite_code().is_some_and(is_failed_sync) {
            return;
        }
        self.refuse(|| {
            Error::new(
                ErrorCode::SyncFailed,
                format!(
                    "a sync of {} failed ({}), so its disk may have lost writes",
                    self.path.display(),
                    error.message()
                ),
            )
            .with_hint("check the disk, close all handles, reopen the file and run PRAGMA integrity_check")
        });
    }

    fn lost(&self, what: &str) -> Error {
        Error::new(
            ErrorCode::FileReplaced,
            format!("the {what} of {} was removed while it was open", self.path.display()),
        )
        .with_hint("writes are refused because they would be lost: close all handles and reopen the file")
    }

    fn copied(&self, libraries: &[String]) -> Error {
        let which = match libraries {
            [] => String::new(),
            libraries => format!(" (loaded here: {})", libraries.join(", ")),
        };
        Error::new(ErrorCode::SecondSqlite, format!(
            "another SQLite library in this process has {} open{which}; when it closes the file, acknowledged writes \
             can be lost",
            self.path.display()
        ))
        .with_hint(hint!["open the file with one library only, then reopen it; " AllowSecondSqlite " allows both, at your own risk"])
    }
}

fn existing(path: &Path) -> Option<FileId> {
    std::fs::metadata(path).ok().map(|metadata| FileId::of_metadata(&metadata, path))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use flatwater_base::error::ErrorKind;

    fn watched() -> (tempfile::TempDir, Watch) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.db");
        std::fs::write(&path, "").unwrap();
        std::fs::write(beside(&path, "-wal"), "").unwrap();
        let watch = Watch::new(&path, false);
        watch.opened(Some(0x1000));
        assert_eq!(watch.look(&Mappings::default()), Ok(()));
        (directory, watch)
    }

    #[test]
    fn a_replaced_file_is_noticed_and_stays_noticed() {
        let (directory, watch) = watched();
        let other = directory.path().join("b.db");
        std::fs::write(&other, "").unwrap();
        std::fs::rename(&watch.path, directory.path().join("old.db")).unwrap();
        std::fs::rename(other, &watch.path).unwrap();
        let error = watch.look(&Mappings::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io);
        std::fs::rename(directory.path().join("old.db"), &watch.path).unwrap();
        assert_eq!(watch.look(&Mappings::default()), Err(error));
    }

    #[test]
    fn a_lost_wal_is_noticed_unless_the_connection_was_closed() {
        let (_directory, watch) = watched();
        std::fs::remove_file(beside(&watch.path, "-wal")).unwrap();
        watch.closed();
        assert_eq!(watch.look(&Mappings::default()), Ok(()));
        let (_directory, watch) = watched();
        std::fs::remove_file(beside(&watch.path, "-wal")).unwrap();
        assert!(watch.look(&Mappings::default()).unwrap_err().message().contains("WAL"));
    }

    #[test]
    fn a_list_of_mappings_that_is_older_than_the_connection_says_nothing() {
        let lists = [
            "1000-9000 rw-s 0 fe:00 77 /b-shm (deleted)",
            "1000-9000 rw-s 0 fe:00 77 /b-shm\na000-12000 rw-s 0 fe:00 77 /b-shm",
        ];
        for list in lists {
            let before = Instant::now();
            let (_directory, watch) = watched();
            assert_eq!(watch.look(&Mappings::parse(list, before)), Ok(()));
            assert!(watch.look(&Mappings::parse(list, Instant::now())).is_err(), "{list}");
        }
    }

    #[test]
    fn a_second_library_is_refused_or_only_counted() {
        let list = "1000-9000 rw-s 0 fe:00 77 /a-shm\na000-12000 rw-s 0 fe:00 77 /a-shm";
        let (_directory, watch) = watched();
        let (_other, warns) = watched();
        let twice = Arc::new(Mappings::parse(list, Instant::now()));
        assert!(watch.has_second_copy(|| twice.clone()));
        assert_eq!(watch.look(&twice).unwrap_err().kind(), ErrorKind::Misuse);
        let warns = Watch { allows_second: true, ..warns };
        assert_eq!((warns.look(&twice), warns.second_copies()), (Ok(()), 1));
    }
}
