//! One SQLite connection that moves between threads together with its statements.
//!
//! Owns: the rusqlite connection, the statements prepared on it and the hook state. Used by one thread at a time, any
//! thread (<https://sqlite.org/threadsafe.html>, multi-thread mode). Invariants: statements live in a table inside the
//! connection and are finalised before it closes; the hook state keeps its address for as long as the connection is
//! open. Leaves out: which pragmas, which waits, which texts may run.

use std::ffi::{CString, c_int};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use rusqlite::{OpenFlags, ffi};

use crate::armed::Interrupt;
use crate::error::{Error, Result, SqliteError};
use crate::hooks::{AuthEvent, Busy, Hooks, Policy};
use crate::opening;
use crate::slots::Slots;
use crate::wal::Mapping;

/// SQLite 3.51.3: the first one without the WAL-reset bug.
const OLDEST_LIBRARY: i32 = 3_051_003;

/// A connection, its statements and its hooks. `Send`, not `Sync`.
pub struct Connection {
    pub(crate) slots: Slots,
    /// Behind a raw pointer, because C holds its address: made by `Box::into_raw`, freed by `Drop`.
    hooks: *mut Hooks,
    db: *mut ffi::sqlite3,
    wal: bool,
    pub(crate) mapping: Mapping,
    /// `None` only inside `drop`.
    inner: Option<rusqlite::Connection>,
}

// SAFETY: SQLite allows a connection and its statements to be used by different threads one after the other when it
// was opened without a mutex; `&mut self` and the missing `Sync` keep them from using it at once. The hook state holds
// only `Send` values.
unsafe impl Send for Connection {}

impl Connection {
    /// Opens `path` with `flags`, to which NOMUTEX and extended result codes are added, and the VFS of that name. Blocks
    /// on the file system.
    ///
    /// # Errors
    /// [`Error::LibraryTooOld`], or what SQLite answers.
    pub fn open(path: &Path, flags: OpenFlags, vfs: Option<&str>) -> Result<Self> {
        check_library(rusqlite::version_number())?;
        let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let inner = opening::open(path, flags, vfs)?;
        // SAFETY: the handle is used only while `inner`, which we own, is open.
        let db = unsafe { inner.handle() };
        let hooks = Box::into_raw(Box::new(Hooks::new()));
        let connection =
            Self { slots: Slots::default(), hooks, db, wal: false, mapping: Mapping::new(), inner: Some(inner) };
        // SAFETY: `db` is open and ours, and the hooks live until `drop` has closed it.
        unsafe {
            connection.hooks().install_authorizer(db);
            connection.hooks().install_handlers(db);
        }
        Ok(connection)
    }

    /// The rusqlite connection, for closures of the user and for set-up.
    ///
    /// # Panics
    /// Never: it is there until it is dropped.
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

    /// Sets who decides what a text may do, and answers who did before.
    pub fn set_policy(&self, policy: Policy) -> Policy {
        self.hooks().set_policy(policy)
    }

    /// The first event that was denied since the last `prepare` began.
    #[must_use]
    pub fn take_denied(&self) -> Option<AuthEvent> {
        self.hooks().take_denied()
    }

    /// From now on it is noted when a commit reaches its point of no return.
    pub fn watch_commit(&self) {
        self.hooks().watch_commit();
    }

    /// When the last commit since [`watch_commit`](Self::watch_commit) reached its point of no return, if one did: what
    /// came before was execution, what comes after is writing and syncing. Ends the watch.
    #[must_use]
    pub fn commit_began(&self) -> Option<Instant> {
        self.hooks().commit_began()
    }

    /// True once after a callback of the engine (policy, busy, interrupt) panicked.
    #[must_use]
    pub fn take_callback_panic(&self) -> bool {
        self.hooks().take_panicked()
    }

    /// Sets what to do when a lock is held by somebody else, and answers what was done before. Without it the answer is
    /// SQLITE_BUSY at once.
    pub fn set_busy(&self, busy: Option<Busy>) -> Option<Busy> {
        self.hooks().set_busy(busy)
    }

    /// Lets `interrupt` end the statements that run from now on, until [`disarm`](Self::disarm) or until a commit
    /// reaches its point of no return.
    pub fn arm(&self, interrupt: Arc<dyn Interrupt>) {
        self.hooks().armed.arm(interrupt);
    }

    /// Takes back what [`arm`](Self::arm) or [`arm_until`](Self::arm_until) allowed.
    pub fn disarm(&self) {
        self.hooks().armed.disarm();
    }

    /// How many virtual machine steps lie between two looks at the interrupt. For tests.
    pub fn set_progress_steps(&self, steps: i32) {
        // SAFETY: the connection is open and ours, the hooks live as long.
        unsafe { self.hooks().set_progress_steps(self.db, steps) };
    }

    /// True while no transaction is open (<https://sqlite.org/c3ref/get_autocommit.html>).
    #[must_use]
    pub fn is_autocommit(&self) -> bool {
        // SAFETY: the connection is open.
        unsafe { ffi::sqlite3_get_autocommit(self.db) != 0 }
    }

    /// True if a deferred foreign key is violated right now, so that a COMMIT would fail
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

    /// Rows the last INSERT, UPDATE or DELETE changed (<https://sqlite.org/c3ref/changes.html>).
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

    /// Starts to look for an insert into `table`, which may be a virtual one; [`saw_insert`](Self::saw_insert) tells
    /// whether there was one.
    pub fn watch_inserts(&self, table: &str) {
        self.hooks().inserts.watch(table);
    }

    /// Whether the table given to [`watch_inserts`](Self::watch_inserts) got a row since.
    #[must_use]
    pub fn saw_insert(&self) -> bool {
        self.hooks().inserts.saw(self.last_insert_rowid())
    }

    /// True if the main database cannot be written through this connection.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        // SAFETY: the connection is open; "main" always exists.
        unsafe { ffi::sqlite3_db_readonly(self.db, c"main".as_ptr()) == 1 }
    }

    pub(crate) fn in_wal_mode(&self) -> bool {
        self.wal
    }

    /// Reads the journal mode, and remembers whether it is WAL. Reads the database.
    ///
    /// # Errors
    /// What SQLite answers, SQLITE_NOTADB for a file that is no database among it.
    pub fn read_journal_mode(&mut self) -> Result<String> {
        let mode: String = self.patiently(|connection| {
            connection.rusqlite().query_row("PRAGMA main.journal_mode", [], |row| row.get(0)).map_err(from_rusqlite)
        })?;
        self.wal = mode.eq_ignore_ascii_case("wal");
        Ok(mode)
    }

    /// Runs trusted SQL of our own, any number of statements, without parameters or rows.
    ///
    /// # Errors
    /// What SQLite answers.
    pub fn execute_batch(&self, sql: &str) -> Result<()> {
        self.rusqlite().execute_batch(sql).map_err(from_rusqlite)
    }

    /// Puts every handler of ours back that a closure of the user may have replaced, and tells whether all that can be
    /// asked were still ours. To be called before anything else of ours runs, a COMMIT above all.
    ///
    /// The busy handler and the progress handler cannot be read back and are simply set again.
    #[must_use]
    pub fn restore_handlers(&mut self) -> bool {
        // SAFETY: the connection is open and ours, the hooks live as long.
        let ours = unsafe { self.hooks().install_handlers(self.db) };
        self.disarm();
        ours && self.authorizer_is_ours()
    }

    /// Makes a connection that cannot be replaced, because its database is in memory, usable again: handlers and
    /// authorizer are set anew and what is half done is rolled back.
    ///
    /// # Errors
    /// What ROLLBACK answers.
    pub fn repair(&mut self) -> Result<()> {
        // SAFETY: the connection is open and ours, the hooks live as long.
        unsafe {
            self.hooks().install_authorizer(self.db);
            self.hooks().install_handlers(self.db);
        }
        self.disarm();
        self.reset_busy_statements();
        if self.is_autocommit() { Ok(()) } else { self.execute_batch("ROLLBACK") }
    }

    /// Whether a statement of anybody is stepped and not reset.
    #[must_use]
    pub fn has_busy_statement(&self) -> bool {
        self.busy_statements().next().is_some()
    }

    /// The statements of anybody that are stepped and not reset.
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
            // SAFETY: a statement of this connection, which nobody else uses; its owner, if it has one, is told by
            // SQLite at its next step that it starts over.
            unsafe { ffi::sqlite3_reset(statement) };
        }
    }

    /// Prepares a small SELECT and looks whether our authorizer is asked.
    fn authorizer_is_ours(&self) -> bool {
        self.hooks().start_recording();
        let prepared = self.rusqlite().prepare("SELECT 1").is_ok();
        prepared && !self.hooks().stop_recording().is_empty()
    }

    pub(crate) fn error(&self, code: c_int) -> Error {
        // SAFETY: the connection is open and borrowed by us.
        unsafe { SqliteError::of(self.db, code) }.into()
    }
}

fn check_library(number: i32) -> Result<()> {
    if number >= OLDEST_LIBRARY { Ok(()) } else { Err(Error::LibraryTooOld { found: rusqlite::version() }) }
}

impl Drop for Connection {
    /// A statement that a closure forgot can be told neither from the ones that virtual tables keep, nor finalised by
    /// us. It is reset, so that it ends its read, and its connection is never closed: SQLite refuses to
    /// (<https://sqlite.org/c3ref/close.html>), and keeps memory and descriptors until the process ends.
    fn drop(&mut self) {
        self.slots.finalize_all();
        self.reset_busy_statements();
        match self.inner.take().map(rusqlite::Connection::close) {
            Some(Err((connection, _))) => {
                // The hooks live on too, as the connection knows their address.
                std::mem::forget(connection);
            }
            // SAFETY: made by `Box::into_raw` in `open`; the connection that knew its address is closed.
            _ => drop(unsafe { Box::from_raw(self.hooks) }),
        }
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("statements", &self.slots.len()).finish_non_exhaustive()
    }
}

/// The error of floor 0 for an error of rusqlite.
#[must_use]
pub fn from_rusqlite(error: rusqlite::Error) -> Error {
    match error {
        rusqlite::Error::SqliteFailure(e, message) => {
            let general = SqliteError::from_code(e.extended_code);
            SqliteError { message: message.unwrap_or(general.message), ..general }.into()
        }
        rusqlite::Error::SqlInputError { error: e, msg, offset, .. } => {
            let offset = usize::try_from(offset).ok();
            SqliteError { code: e.extended_code, message: msg, offset, system: None }.into()
        }
        other => {
            SqliteError { code: ffi::SQLITE_MISUSE, message: other.to_string(), offset: None, system: None }.into()
        }
    }
}

/// True if `path` has a byte SQLite cannot take.
#[must_use]
pub fn has_nul(path: &Path) -> bool {
    CString::new(path.as_os_str().as_encoded_bytes()).is_err()
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
