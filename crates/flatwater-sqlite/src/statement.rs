//! Prepared statements: prepare them, and run them in one go.
//!
//! Owns: preparing, and one run of a statement, from bind to reset. Runs on the thread that has the connection. Invariant: a
//! statement is reset when `run` is left, on every path. Leaves out: binding and reading (`running`), runs in several parts
//! (`cursor`), caching by text, and what the rows become.

use std::ffi::{CStr, c_char, c_int};

use rusqlite::ffi;
use rusqlite::types::{Value, ValueRef};

use crate::connection::Connection;
use crate::error::{Error, Result};
use crate::hooks::AuthEvent;
use crate::running::Running;
use crate::sink::Sink;
use crate::slots::{Statement, StatementId};

/// What one `prepare` found out.
#[derive(Debug)]
pub struct Prepared {
    /// The statement.
    pub id: StatementId,
    /// Bytes of the text that the statement took; what follows is the rest of the text.
    pub length: usize,
    /// What the statement does, as the authorizer was told.
    pub events: Vec<AuthEvent>,
    /// Number of result columns; 0 for a statement that answers no rows.
    pub columns: usize,
    /// SQLite's own claim that the statement writes nothing. COMMIT, SAVEPOINT and ATTACH count as such: not for
    /// routing (<https://sqlite.org/c3ref/stmt_readonly.html>).
    pub readonly: bool,
    /// EXPLAIN or EXPLAIN QUERY PLAN.
    pub explain: bool,
}

/// The values for one run of a statement.
#[derive(Debug, Clone, Copy)]
pub enum Bindings<'a> {
    /// In the order of the parameters, exactly as many as there are.
    Positional(&'a [Value]),
    /// The same, each of them borrowed. Texts are valid UTF-8.
    Borrowed(&'a [ValueRef<'a>]),
    /// By name, with or without the leading `:`, `@` or `$`; exactly the names of the statement.
    Named(&'a [(Box<str>, Value)]),
}

impl Connection {
    /// Prepares the first statement of `sql`, for keeping (SQLITE_PREPARE_PERSISTENT). `None` if there is only white
    /// space and comments.
    ///
    /// # Errors
    /// What SQLite answers, with the offset of the token it did not like.
    pub fn prepare(&mut self, sql: &str) -> Result<Option<Prepared>> {
        // It may have to read the schema.
        self.patiently(|connection| connection.prepare_once(sql))
    }

    fn prepare_once(&mut self, sql: &str) -> Result<Option<Prepared>> {
        let bytes = c_int::try_from(sql.len()).map_err(|_| Error::TextTooLong)?;
        let mut raw: *mut ffi::sqlite3_stmt = std::ptr::null_mut();
        let mut tail: *const c_char = std::ptr::null();
        self.hooks().start_recording();
        self.mapping.forget();
        // SAFETY: the connection is open and ours; `sql` has `bytes` bytes; both out-pointers live for the call.
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
        // SAFETY: just prepared on this connection, and nobody else has the pointer.
        let id = unsafe { self.slots.keep(raw) };
        Ok(Some(Prepared { id, length, events, columns: columns.unsigned_abs() as usize, readonly, explain }))
    }

    /// Whether anything but white space and comments stands in `sql`. Nothing runs.
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

    /// Ends a statement. One that is already ended is left alone.
    pub fn finalize(&mut self, id: StatementId) {
        self.slots.finalize(id);
    }

    /// The names of the result columns, in order.
    ///
    /// # Errors
    /// [`Error::StaleStatement`].
    pub fn column_names(&self, id: StatementId) -> Result<Vec<Box<str>>> {
        let raw = self.statement(id)?.raw;
        // SAFETY: the statement is alive; a name is NUL-terminated UTF-8 that lives until the next call on it.
        let name = |column| unsafe {
            let name = ffi::sqlite3_column_name(raw, column);
            if name.is_null() { Box::from("") } else { CStr::from_ptr(name).to_string_lossy().into() }
        };
        // SAFETY: the statement is alive.
        let columns = unsafe { ffi::sqlite3_column_count(raw) };
        Ok((0..columns).map(name).collect())
    }

    /// How often SQLite prepared the statement again because the schema had changed
    /// (<https://sqlite.org/c3ref/c_stmtstatus_counter.html#sqlitestmtstatusreprepare>).
    #[must_use]
    pub fn reprepares(&self, id: StatementId) -> u32 {
        self.slots.get(id).map_or(0, |statement| statement.reprepares)
    }

    /// Runs a statement to its end, or until the sink says stop. Blocks for as long as SQLite does.
    ///
    /// # Errors
    /// Bindings that do not fit, before anything runs; then what SQLite answers.
    pub fn run<S: Sink>(&mut self, id: StatementId, bindings: Bindings<'_>, sink: &mut S) -> Result<()> {
        self.patiently(|connection| connection.run_once(id, bindings, sink))
    }

    /// As [`run`](Self::run), where a snapshot that does not begin at once is an error.
    ///
    /// # Errors
    /// As of `run`.
    pub fn run_once<S: Sink>(&mut self, id: StatementId, bindings: Bindings<'_>, sink: &mut S) -> Result<()> {
        self.stepping(id, |connection, statement| connection.run_raw(statement, bindings, sink))
    }

    /// Runs `f`, which steps the statement, with nothing known of the connection's files. What was known holds again if
    /// nothing can have left WAL mode meanwhile.
    pub(crate) fn stepping<T>(
        &mut self,
        id: StatementId,
        f: impl FnOnce(&mut Self, Statement) -> Result<T>,
    ) -> Result<T> {
        let statement = self.statement(id)?;
        // `&mut self`: nobody has the rusqlite connection.
        self.mapping.take_back();
        let known = self.mapping.set_aside();
        let result = f(self, statement);
        if !self.slots.was_prepared_again(id) && !statement.may_leave_wal {
            self.mapping.put_back(known);
        }
        result
    }

    fn run_raw<S: Sink>(&mut self, statement: Statement, bindings: Bindings<'_>, sink: &mut S) -> Result<()> {
        let Statement { raw, parameters, .. } = statement;
        let mut running = Running::borrowing(raw);
        running.bind(parameters, bindings)?;
        running.rows(sink).map(drop)
    }
}
