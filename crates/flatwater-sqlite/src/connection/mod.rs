//! One SQLite connection that moves between threads together with its statements.
//!
//! Owns: the rusqlite connection, the statements prepared on it and the hook state. Used by one thread at a time, which
//! may be any thread (<https://sqlite.org/threadsafe.html>, multi-thread mode). Invariants: statements live in a table
//! inside the connection and are finalised before it closes; the hook state keeps its address for as long as the
//! connection is open. Leaves out: pragmas, the length of waits, and which texts may run.

mod bounds;
pub(crate) mod checkpoint;
pub(crate) mod control;
pub(crate) mod cursor;
pub(crate) mod explain;
mod lend;
pub(crate) mod open;
mod snapshot_wait;
pub(crate) mod statement;

use std::ffi::c_int;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use rusqlite::{OpenFlags, ffi};

use crate::error::system_failure::SystemFailure;
use crate::error::{Error, Result, SqliteError, from_rusqlite};
use crate::hooks::changes::ChangedRows;
use crate::hooks::interrupts::Interrupt;
use crate::hooks::{AuthEvent, Busy, Hooks, Policy};
use crate::statements::Slots;
use crate::wal::mapping::Mapping;

/// SQLite 3.51.3: the first one without the WAL-reset bug.
const OLDEST_LIBRARY: i32 = 3_051_003;

/// A connection, its statements and its hooks. `Send`, not `Sync`.
pub struct Connection {
    pub(crate) slots: Slots,
    /// A raw pointer, because C holds its address: made by `Box::into_raw`, freed by `Drop`.
    hooks: *mut Hooks,
    db: *mut ffi::sqlite3,
    wal: bool,
    pub(crate) mapping: Mapping,
    /// `None` only inside `drop`.
    pub(crate) inner: Option<rusqlite::Connection>,
}

// SAFETY: SQLite allows different threads to use a connection and its statements one after the other when the
// connection was opened without a mutex; `&mut self` and the missing `Sync` prevent use at the same time. The hook
// state holds only `Send` values.
unsafe impl Send for Connection {}

impl Connection {
    /// Opens `path` with `flags`, to which NOMUTEX and extended result codes are added, and the VFS of that name.
    /// Blocks on the file system.
    ///
    /// # Errors
    /// [`Error::LibraryTooOld`], or SQLite's error.
    pub fn open(path: &Path, flags: OpenFlags, vfs: Option<&str>) -> Result<Self> {
        check_library(rusqlite::version_number())?;
        let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let inner = open::open(path, flags, vfs)?;
        // SAFETY: the handle is used only while `inner`, which this connection owns, is open.
        let db = unsafe { inner.handle() };
        let hooks = Box::into_raw(Box::new(Hooks::new()));
        let connection =
            Self { slots: Slots::default(), hooks, db, wal: false, mapping: Mapping::new(), inner: Some(inner) };
        // SAFETY: `db` is open and only used here, and the hooks live until `drop` has closed it.
        unsafe {
            connection.hooks().install_authorizer(db);
            connection.hooks().install_handlers(db);
        }
        Ok(connection)
    }

    /// The rusqlite connection, for the user's closures and for set-up.
    ///
    /// # Panics
    /// Never: the connection exists until `self` is dropped.
    #[must_use]
    pub fn rusqlite(&self) -> &rusqlite::Connection {
        self.mapping.lend();
        self.inner.as_ref().expect("the connection is open until it is dropped")
    }

    pub(crate) fn raw(&self) -> *mut ffi::sqlite3 {
        self.db
    }

    pub(crate) fn hooks(&self) -> &Hooks {
        // SAFETY: made by `Box::into_raw` in `open` and freed only in `drop`; only shared references are ever made.
        unsafe { &*self.hooks }
    }

    /// Sets the policy that decides what a text may do. Returns the previous policy.
    pub fn set_policy(&self, policy: Policy) -> Policy {
        self.hooks().set_policy(policy)
    }

    /// Returns the first event that was denied since the last `prepare` began.
    #[must_use]
    pub fn take_denied(&self) -> Option<AuthEvent> {
        self.hooks().take_denied()
    }

    /// Starts to record when a commit reaches its point of no return.
    pub fn watch_commit(&self) {
        self.hooks().commits.watch();
    }

    /// Returns when the last commit since [`watch_commit`](Self::watch_commit) reached its point of no return, if one
    /// did. The time before it was execution, the time after it is writing and syncing. Ends the recording.
    #[must_use]
    pub fn commit_began(&self) -> Option<Instant> {
        self.hooks().commits.began()
    }

    /// Refuses every commit with SQLITE_CONSTRAINT_COMMITHOOK while `refused` is true: its transaction is rolled back. Call
    /// it once per connection. A closure that replaces the commit hook is not refused while it runs.
    pub fn refuse_commits_while(&self, refused: Arc<AtomicBool>) {
        self.hooks().commits.refuse_while(refused);
    }

    /// Returns true once after a callback of the engine (policy, busy, interrupt) panicked.
    #[must_use]
    pub fn take_callback_panic(&self) -> bool {
        self.hooks().take_panicked()
    }

    /// Sets the busy handler, which runs when another connection holds a lock. Returns the previous one. Without a busy
    /// handler a held lock is SQLITE_BUSY at once.
    pub fn set_busy(&self, busy: Option<Busy>) -> Option<Busy> {
        self.hooks().set_busy(busy)
    }

    /// Lets `interrupt` end the statements that run from now on, until [`disarm`](Self::disarm) or until a commit
    /// reaches its point of no return.
    pub fn arm(&self, interrupt: Arc<dyn Interrupt>) {
        self.hooks().armed.arm(interrupt);
    }

    /// Undoes [`arm`](Self::arm) and [`arm_until`](Self::arm_until).
    pub fn disarm(&self) {
        self.hooks().armed.disarm();
    }

    /// Sets the number of virtual machine steps between two checks of the interrupt. For tests.
    pub fn set_progress_steps(&self, steps: i32) {
        // SAFETY: the connection is open and used here alone, and the hooks live as long.
        unsafe { self.hooks().set_progress_steps(self.db, steps) };
    }

    /// Returns true while no transaction is open (<https://sqlite.org/c3ref/get_autocommit.html>).
    #[must_use]
    pub fn is_autocommit(&self) -> bool {
        // SAFETY: the connection is open.
        unsafe { ffi::sqlite3_get_autocommit(self.db) != 0 }
    }

    /// Returns true if a deferred foreign key is violated right now, so that a COMMIT would fail
    /// (<https://sqlite.org/c3ref/c_dbstatus_options.html#sqlitedbstatusdeferredfks>).
    #[must_use]
    pub fn has_deferred_violations(&self) -> bool {
        let (mut current, mut highest): (c_int, c_int) = (0, 0);
        // SAFETY: the connection is open; both out-pointers live for the call.
        let rc = unsafe {
            ffi::sqlite3_db_status(self.db, ffi::SQLITE_DBSTATUS_DEFERRED_FKS, &raw mut current, &raw mut highest, 0)
        };
        rc == ffi::SQLITE_OK && current != 0
    }

    /// The number of rows that the last INSERT, UPDATE or DELETE changed (<https://sqlite.org/c3ref/changes.html>).
    #[must_use]
    pub fn changes(&self) -> u64 {
        // SAFETY: the connection is open.
        unsafe { ffi::sqlite3_changes64(self.db) }.unsigned_abs()
    }

    /// The rowid of the last successful insert on this connection
    /// (<https://sqlite.org/c3ref/last_insert_rowid.html>).
    #[must_use]
    pub fn last_insert_rowid(&self) -> i64 {
        // SAFETY: the connection is open.
        unsafe { ffi::sqlite3_last_insert_rowid(self.db) }
    }

    /// Starts to watch for an insert into `table`, which may be a virtual table; [`saw_insert`](Self::saw_insert)
    /// returns whether there was one.
    pub fn watch_inserts(&self, table: &str) {
        self.hooks().inserts.watch(table);
    }

    /// Returns true if the table passed to [`watch_inserts`](Self::watch_inserts) got a row since then.
    #[must_use]
    pub fn saw_insert(&self) -> bool {
        self.hooks().inserts.saw(self.last_insert_rowid())
    }

    /// Starts or stops recording which rows change. What was recorded is dropped.
    pub fn record_changes(&self, on: bool) {
        self.hooks().changes.record(on);
        self.report_rows(on);
    }

    /// Returns true if changed rows are recorded.
    #[must_use]
    pub fn records_changes(&self) -> bool {
        self.hooks().changes.is_recording()
    }

    /// Returns what was recorded since the last call.
    #[must_use]
    pub fn take_changes(&self) -> Vec<ChangedRows> {
        self.hooks().changes.take()
    }

    /// Returns true if the main database cannot be written through this connection.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        // SAFETY: the connection is open; "main" always exists.
        unsafe { ffi::sqlite3_db_readonly(self.db, c"main".as_ptr()) == 1 }
    }

    pub(crate) fn in_wal_mode(&self) -> bool {
        self.wal
    }

    /// Reads the journal mode, and records whether it is WAL. Reads the database.
    ///
    /// # Errors
    /// SQLite's error, such as SQLITE_NOTADB for a file that is not a database.
    pub fn read_journal_mode(&mut self) -> Result<String> {
        let mode: String = self.patiently(|connection| {
            connection.rusqlite().query_row("PRAGMA main.journal_mode", [], |row| row.get(0)).map_err(from_rusqlite)
        })?;
        self.wal = mode.eq_ignore_ascii_case("wal");
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
        // SAFETY: the connection is open and used here alone, and the hooks live as long.
        let ours = unsafe { self.hooks().install_handlers(self.db) };
        let reports_rows = self.report_rows(self.records_changes());
        self.disarm();
        ours && reports_rows && self.authorizer_is_ours()
    }

    /// Makes a connection usable again that cannot be replaced, because its database is in memory: sets handlers and
    /// authorizer again and rolls back what is half done.
    ///
    /// # Errors
    /// The error of ROLLBACK.
    pub fn repair(&mut self) -> Result<()> {
        // SAFETY: the connection is open and used here alone, and the hooks live as long.
        unsafe {
            self.hooks().install_authorizer(self.db);
            self.hooks().install_handlers(self.db);
        }
        self.report_rows(self.records_changes());
        self.disarm();
        self.reset_busy_statements();
        if self.is_autocommit() { Ok(()) } else { self.execute_batch("ROLLBACK") }
    }

    /// Returns true if any statement, of this crate or of the user, is stepped and not reset.
    #[must_use]
    pub fn has_busy_statement(&self) -> bool {
        self.busy_statements().next().is_some()
    }

    /// All statements, of this crate or of the user, that are stepped and not reset.
    fn busy_statements(&self) -> impl Iterator<Item = *mut ffi::sqlite3_stmt> {
        let mut statement = std::ptr::null_mut();
        std::iter::from_fn(move || {
            loop {
                // SAFETY: the connection is open, and `statement` is null or one of its statements.
                statement = unsafe { ffi::sqlite3_next_stmt(self.db, statement) };
                if statement.is_null() {
                    return None;
                }
                // SAFETY: as above.
                if unsafe { ffi::sqlite3_stmt_busy(statement) } != 0 {
                    return Some(statement);
                }
            }
        })
    }

    fn reset_busy_statements(&self) {
        for statement in self.busy_statements() {
            // SAFETY: a statement of this connection, which no other code uses now; its owner, if it has one, learns
            // from SQLite at its next step that the statement starts over.
            unsafe { ffi::sqlite3_reset(statement) };
        }
    }

    /// Prepares a small SELECT and checks whether SQLite calls this crate's authorizer.
    fn authorizer_is_ours(&self) -> bool {
        self.hooks().start_recording();
        let prepared = self.rusqlite().prepare("SELECT 1").is_ok();
        prepared && !self.hooks().stop_recording().is_empty()
    }

    /// The system's reason for the last failed call on this connection, which failed with this extended code.
    #[must_use]
    pub fn system_failure(&self, code: i32) -> Option<SystemFailure> {
        // SAFETY: the connection is open and used here alone.
        unsafe { SystemFailure::of(self.raw(), code) }
    }

    pub(crate) fn error(&self, code: c_int) -> Error {
        // SAFETY: the connection is open and borrowed here.
        unsafe { SqliteError::of(self.db, code) }.into()
    }
}

fn check_library(number: i32) -> Result<()> {
    if number >= OLDEST_LIBRARY { Ok(()) } else { Err(Error::LibraryTooOld { found: rusqlite::version() }) }
}

impl Drop for Connection {
    /// A statement that a closure leaked cannot be distinguished from those that virtual tables keep, and so must not
    /// be finalised here. It is reset, so that it ends its read, and its connection is never closed: SQLite refuses to
    /// close it (<https://sqlite.org/c3ref/close.html>), and keeps memory and descriptors until the process ends.
    fn drop(&mut self) {
        self.slots.finalize_all();
        self.reset_busy_statements();
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

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("statements", &self.slots.len()).finish_non_exhaustive()
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
