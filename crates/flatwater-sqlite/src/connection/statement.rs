//! Prepared statements: preparing them, and running them in one go.
//!
//! Owns: preparing, and one run of a statement, from bind to reset. Runs on the thread that uses the connection.
//! Invariant: a statement is reset when `run` returns, on every path. Leaves out: binding and reading (`running`), the
//! columns of the result (`columns`), runs in several parts (`cursor`), caching by text, and what the caller does with the rows.

use std::ffi::{c_char, c_int};

use rusqlite::ffi;

use crate::connection::Connection;
use crate::error::{Error, Result};
use crate::hooks::AuthEvent;
use crate::statements::bindings::Bindings;
use crate::statements::running::Running;
use crate::statements::sink::{Discard, Sink};
use crate::statements::{Statement, StatementId};

/// The result of [`Connection::prepare`].
#[derive(Debug)]
pub struct Prepared {
    /// The statement.
    pub id: StatementId,
    /// The number of bytes of the text that belong to the statement. The remaining bytes are the rest of the text.
    pub length: usize,
    /// What the statement does, as SQLite reported it to the authorizer.
    pub events: Vec<AuthEvent>,
    /// The number of result columns; 0 for a statement that returns no rows.
    pub columns: usize,
    /// True if SQLite reports that the statement writes nothing. This is also true for COMMIT, SAVEPOINT and ATTACH, so
    /// it is not suitable for routing (<https://sqlite.org/c3ref/stmt_readonly.html>).
    pub readonly: bool,
    /// True for EXPLAIN and EXPLAIN QUERY PLAN.
    pub explain: bool,
}

impl Connection {
    /// Prepares the first statement of `sql`, to be kept (SQLITE_PREPARE_PERSISTENT). Returns `None` if `sql` contains
    /// only white space and comments. SQLite copies a text that does not end with a NUL, whole, before it reads its first
    /// statement (<https://sqlite.org/c3ref/prepare.html>), so a script should.
    ///
    /// # Errors
    /// Returns SQLite's error, with the offset of the offending token, or [`Error::TextTooLong`].
    pub fn prepare(&mut self, sql: &str) -> Result<Option<Prepared>> {
        // Preparing may have to read the schema.
        self.patiently(|connection| connection.prepare_once(sql))
    }

    fn prepare_once(&mut self, sql: &str) -> Result<Option<Prepared>> {
        let bytes = c_int::try_from(sql.len()).map_err(|_| Error::TextTooLong)?;
        let mut raw: *mut ffi::sqlite3_stmt = std::ptr::null_mut();
        let mut tail: *const c_char = std::ptr::null();
        let reports_rows = self.records_changes();
        if reports_rows {
            self.report_rows(false);
        }
        self.hooks().start_recording();
        self.mapping.forget();
        // SAFETY: the connection is open and only this value uses it; `sql` has `bytes` bytes; both out-pointers live
        // for the call.
        let rc = unsafe {
            ffi::sqlite3_prepare_v3(
                self.raw(),
                sql.as_ptr().cast(),
                bytes,
                ffi::SQLITE_PREPARE_PERSISTENT,
                &raw mut raw,
                &raw mut tail,
            )
        };
        let events = self.hooks().stop_recording();
        if reports_rows {
            self.report_rows(true);
        }
        if rc != ffi::SQLITE_OK {
            return Err(self.error(rc));
        }
        if raw.is_null() {
            return Ok(None);
        }
        let length = (tail as usize).saturating_sub(sql.as_ptr() as usize).min(sql.len());
        // SAFETY: `raw` was just prepared and is not null.
        let (columns, readonly, explain) = unsafe {
            (ffi::sqlite3_column_count(raw), ffi::sqlite3_stmt_readonly(raw), ffi::sqlite3_stmt_isexplain(raw))
        };
        let (readonly, explain) = (readonly != 0, explain != 0);
        // SAFETY: the statement was just prepared on this connection, and no other code has the pointer.
        let id = unsafe { self.slots.keep(raw) };
        Ok(Some(Prepared { id, length, events, columns: columns.unsigned_abs() as usize, readonly, explain }))
    }

    /// Returns true if `sql` contains anything but white space and comments. Runs nothing.
    #[must_use]
    pub fn has_statement(&mut self, sql: &str) -> bool {
        match self.prepare(sql) {
            Ok(Some(prepared)) => {
                self.finalize(prepared.id);
                true
            }
            Ok(None) => false,
            Err(_) => true,
        }
    }

    pub(crate) fn statement(&self, id: StatementId) -> Result<Statement> {
        self.slots.get(id).ok_or(Error::StaleStatement)
    }

    /// Finalizes a statement. Does nothing if it is already finalized.
    pub fn finalize(&mut self, id: StatementId) {
        self.slots.finalize(id);
    }

    /// Returns how often SQLite prepared the statement again because the schema had changed
    /// (<https://sqlite.org/c3ref/c_stmtstatus_counter.html#sqlitestmtstatusreprepare>).
    #[must_use]
    pub fn reprepares(&self, id: StatementId) -> u32 {
        self.slots.get(id).map_or(0, |statement| statement.reprepares)
    }

    /// Runs a statement to its end, or until the sink returns [`Flow::Stop`](crate::Flow::Stop). Blocks for as long as
    /// SQLite does.
    ///
    /// # Errors
    /// Returns an error before anything runs if the bindings do not match the parameters; otherwise SQLite's error.
    pub fn run<B, S>(&mut self, id: StatementId, bindings: &B, sink: &mut S) -> Result<()>
    where
        B: Bindings + ?Sized,
        S: Sink,
    {
        self.patiently(|connection| connection.run_once(id, bindings, sink))
    }

    /// Like [`run`](Self::run), but fails if a snapshot cannot begin at once.
    ///
    /// # Errors
    /// Returns the errors of `run`, and an error if a snapshot cannot begin at once.
    pub fn run_once<B, S>(&mut self, id: StatementId, bindings: &B, sink: &mut S) -> Result<()>
    where
        B: Bindings + ?Sized,
        S: Sink,
    {
        self.stepping(id, |connection, statement| {
            Running::once(statement, bindings, || connection.slots.names(id), sink)
        })
    }

    /// Runs a statement to its end once for each of `runs`, in their order, and calls `ran` after each. The rows of the
    /// statement are dropped. Fails if a snapshot cannot begin at once.
    ///
    /// # Errors
    /// Returns the first error, as [`run`](Self::run) does. No later run begins.
    pub fn run_many<B: Bindings>(
        &mut self,
        id: StatementId,
        runs: impl IntoIterator<Item = B>,
        mut ran: impl FnMut(&Self),
    ) -> Result<()> {
        self.stepping(id, |connection, Statement { raw, parameters, .. }| {
            let mut running = Running::borrowing(raw);
            for bindings in runs {
                running.bind(parameters, &bindings, || connection.slots.names(id))?;
                running.rows(&mut Discard)?;
                running.reset();
                ran(connection);
            }
            Ok(())
        })
    }

    /// Runs `f`, which steps the statement. While `f` runs, the knowledge about the connection's files is set aside. It
    /// is valid again afterwards if nothing can have left WAL mode meanwhile.
    pub(crate) fn stepping<T>(
        &mut self,
        id: StatementId,
        f: impl FnOnce(&mut Self, Statement) -> Result<T>,
    ) -> Result<T> {
        let statement = self.statement(id)?;
        // `&mut self`: no other code uses the rusqlite connection.
        self.mapping.take_back();
        let known = self.mapping.set_aside();
        let result = f(self, statement);
        if !self.slots.was_prepared_again(id) && !statement.may_leave_wal {
            self.mapping.put_back(known);
        }
        result
    }
}
