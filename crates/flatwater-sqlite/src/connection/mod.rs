//! One SQLite connection that moves between threads together with its statements.
//!
//! Owns: the rusqlite connection, and the parts of a connection: its statements, hooks and files. Used by one thread at a
//! time, which may be any thread (<https://sqlite.org/threadsafe.html>, multi-thread mode). Invariants: statements live in
//! a table inside the connection and are finalised before it closes; the hooks keep their address for as long as the
//! connection is open. Leaves out: what each part does, pragmas, the length of waits, and which texts may run.

pub(crate) mod checkpoint;
pub(crate) mod cipher;
mod cursor;
pub(crate) mod explain;
mod extension;
mod lend;
pub(crate) mod newest_schema;
pub(crate) mod open;
pub(crate) mod plans;
pub(crate) mod prepare;
mod snapshot_wait;
pub(crate) mod stable;
pub(crate) mod statement;
pub(crate) mod transaction_control;

use std::path::Path;

use rusqlite::OpenFlags;

use crate::error::{Error, Result, from_rusqlite};
use crate::guard::Unheld;
use crate::handle::Handle;
use crate::hooks::Hooks;
use crate::statements::Statements;
use crate::wal::Wal;
use crate::wal::files::Files;

/// SQLite 3.51.3: the first one without the WAL-reset bug.
const OLDEST_LIBRARY: i32 = 3_051_003;

/// A connection, its statements and its hooks. `Send`, not `Sync`.
pub struct Sqlite {
    statements: Statements,
    /// A raw pointer, because C holds its address: made by `Box::into_raw`, freed by `Drop`.
    hooks: *mut Hooks,
    wal: Wal,
    handle: Handle,
    /// `None` only inside `drop`.
    inner: Option<rusqlite::Connection>,
}

// SAFETY: SQLite allows different threads to use a connection and its statements one after the other when the
// connection was opened without a mutex; `&mut self` and the missing `Sync` prevent use at the same time. Of the parts
// only shared references are returned, which stay on their thread; apart from SQLite's pointers they hold only `Send`
// values.
unsafe impl Send for Sqlite {}

impl Sqlite {
    /// Opens `path` with `flags`, to which NOMUTEX and extended result codes are added, and the VFS of that name.
    /// Blocks on the file system.
    ///
    /// # Errors
    /// [`Error::LibraryTooOld`], or SQLite's error.
    pub fn open(path: &Path, flags: OpenFlags, vfs: Option<&str>) -> Result<Self> {
        check_library(rusqlite::version_number())?;
        let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let inner = open::open(path, flags, vfs)?;
        // SAFETY: `inner`, which this connection owns, is open for as long as the parts are used: they are reached through
        // the connection only, and the hooks are freed when it has been closed.
        unsafe {
            let db = inner.handle();
            let (hooks, wal, handle) = (Hooks::install(db), Wal::new(db), Handle::new(db));
            Ok(Self { statements: Statements::default(), hooks, wal, handle, inner: Some(inner) })
        }
    }

    /// The rusqlite connection, for the user's closures and for set-up.
    ///
    /// # Panics
    /// Never: the connection exists until `self` is dropped.
    #[must_use]
    pub fn rusqlite(&self) -> &rusqlite::Connection {
        self.wal.files.mapping.lend();
        self.inner.as_ref().expect("the connection is open until it is dropped")
    }

    /// SQLite's own connection, and what it says of its state.
    #[must_use]
    #[inline]
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// The callbacks from SQLite: what is allowed, what ends statements, what changed.
    #[must_use]
    #[inline]
    pub fn hooks(&self) -> &Hooks {
        // SAFETY: made by `Box::into_raw` in `open` and freed only in `drop`; only shared references are ever made.
        unsafe { &*self.hooks }
    }

    /// The WAL of the main database, as its shared memory shows it.
    #[must_use]
    #[inline]
    pub fn wal(&self) -> &Wal {
        &self.wal
    }

    /// The files of the databases.
    #[must_use]
    #[inline]
    pub fn files(&self) -> &Files {
        &self.wal.files
    }

    /// What is known of the prepared statements.
    #[must_use]
    #[inline]
    pub fn statements(&self) -> &Statements {
        &self.statements
    }

    /// Prevents the connection's locks from holding up this thread: no snapshot begins that would have to recover the
    /// wal-index, or to wait. Reads of the database's file and the WAL are timed. Returns `None` if the files do not have
    /// this crate's methods: then nothing may run on a thread that must not be held up.
    pub fn unheld(&self) -> Option<Unheld> {
        Some(Unheld::begin(self.files().guarded()?, &self.handle))
    }

    /// Reads the journal mode, and records whether it is WAL. Reads the database.
    ///
    /// # Errors
    /// SQLite's error, such as SQLITE_NOTADB for a file that is not a database.
    pub fn read_journal_mode(&mut self) -> Result<String> {
        let mode: String =
            self.patiently_with(|sqlite| sqlite.query_row("PRAGMA main.journal_mode", [], |row| row.get(0)))?;
        self.files().set_wal_mode(mode.eq_ignore_ascii_case("wal"));
        Ok(mode)
    }

    /// Runs the crate's own trusted SQL: any number of statements, without parameters or rows.
    ///
    /// # Errors
    /// SQLite's error.
    pub fn execute_batch(&self, sql: &str) -> Result<()> {
        self.rusqlite().execute_batch(sql).map_err(from_rusqlite)
    }

    /// Restores every handler that a user's closure may have replaced. Returns true if all handlers that can be read
    /// back were still this crate's. Call it before running anything else of the crate, above all a COMMIT.
    ///
    /// The busy handler and the progress handler cannot be read back and are simply set again.
    #[must_use]
    pub fn restore_handlers(&mut self) -> bool {
        self.hooks().restore() && self.authorizer_is_ours()
    }

    /// Makes a connection usable again that cannot be replaced, because its database is in memory: sets handlers and
    /// authorizer again and rolls back what is half done.
    ///
    /// # Errors
    /// The error of ROLLBACK.
    pub fn repair(&mut self) -> Result<()> {
        self.hooks().install_authorizer();
        self.hooks().restore();
        self.handle.reset_busy_statements();
        let _of_a_closure = self.hooks().failure.take();
        if self.handle.is_autocommit() { Ok(()) } else { self.execute_batch("ROLLBACK") }
    }

    /// Prepares a small SELECT and checks whether SQLite calls this crate's authorizer.
    fn authorizer_is_ours(&self) -> bool {
        let authorizer = &self.hooks().authorizer;
        authorizer.start_recording();
        let prepared = self.rusqlite().prepare("SELECT 1").is_ok();
        prepared && !authorizer.stop_recording().is_empty()
    }
}

fn check_library(number: i32) -> Result<()> {
    if number >= OLDEST_LIBRARY { Ok(()) } else { Err(Error::LibraryTooOld { found: rusqlite::version() }) }
}

impl Drop for Sqlite {
    /// A statement that a closure leaked cannot be distinguished from those that virtual tables keep, and so must not
    /// be finalised here. It is reset, so that it ends its read, and its connection is never closed: SQLite refuses to
    /// close it (<https://sqlite.org/c3ref/close.html>), and keeps memory and descriptors until the process ends.
    fn drop(&mut self) {
        self.statements.finalize_all();
        self.handle.reset_busy_statements();
        match self.inner.take().map(rusqlite::Connection::close) {
            Some(Err((connection, _))) => {
                // The hooks stay allocated too, because the connection holds their address.
                std::mem::forget(connection);
            }
            // SAFETY: made by `Box::into_raw` in `open`; the connection that held its address is closed.
            _ => drop(unsafe { Box::from_raw(self.hooks) }),
        }
    }
}

impl std::fmt::Debug for Sqlite {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sqlite").field("statements", &self.statements.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_with_the_wal_reset_bug_is_refused() {
        assert!(matches!(check_library(3_051_002), Err(Error::LibraryTooOld { .. })));
        assert!(matches!(check_library(3_040_001), Err(Error::LibraryTooOld { .. })));
        assert_eq!(check_library(3_051_003), Ok(()));
        assert_eq!(check_library(rusqlite::version_number()), Ok(()), "the one that is linked here");
    }
}
