//! Prepared statements: prepare, bind, and the one loop that hands cells to a sink.
//!
//! Owns: one run of a statement, from bind to reset. Runs on the thread that has the connection. Invariants: a bound text
//! or blob is never copied (SQLITE_STATIC) and is unbound before `run` returns or unwinds; a statement is reset when
//! `run` is left, on every path. Leaves out: runs in several parts (`cursor`), caching by
//! text, and what the rows become.

use std::ffi::{CStr, c_char, c_int};

use rusqlite::ffi;
use rusqlite::types::{Value, ValueRef};

use crate::connection::Connection;
use crate::error::{Error, Result, SqliteError};
use crate::hooks::AuthEvent;
use crate::sink::{Flow, Sink};
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
        self.rows(&mut running, sink).map(drop)
    }

    /// Hands rows to the sink until it says stop, or the statement ends.
    pub(crate) fn rows<S: Sink>(&mut self, running: &mut Running, sink: &mut S) -> Result<Flow> {
        loop {
            // SAFETY: the statement is alive and only ours.
            match unsafe { ffi::sqlite3_step(running.raw) } {
                ffi::SQLITE_ROW => {
                    running.read_row(sink)?;
                    if sink.row_done() == Flow::Stop {
                        return Ok(Flow::Stop);
                    }
                }
                ffi::SQLITE_DONE => return Ok(Flow::Continue),
                code => return Err(self.error(code)),
            }
        }
    }
}

/// A statement between bind and reset. Dropping it resets it, and unbinds what is borrowed, so that no borrowed value is left
/// behind.
pub(crate) struct Running {
    raw: *mut ffi::sqlite3_stmt,
    /// Texts and blobs are copied as they are bound, and may stay bound.
    copies: bool,
    /// Something is to be unbound in the end.
    unbinds: bool,
    /// It goes on later.
    is_kept: bool,
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.is_kept {
            return;
        }
        self.reset();
        if self.unbinds {
            // SAFETY: the statement is alive: the connection, which owns it, is borrowed for as long as `Running` lives.
            unsafe { ffi::sqlite3_clear_bindings(self.raw) };
        }
    }
}

impl Running {
    /// Of a run that is over before its caller goes on.
    pub(crate) fn borrowing(raw: *mut ffi::sqlite3_stmt) -> Self {
        Self { raw, copies: false, unbinds: false, is_kept: false }
    }

    /// Of a run in parts.
    pub(crate) fn copying(raw: *mut ffi::sqlite3_stmt) -> Self {
        Self { raw, copies: true, unbinds: false, is_kept: false }
    }

    /// It is not reset: it goes on later.
    pub(crate) fn keep(mut self) {
        self.is_kept = true;
    }

    /// It is reset, and what is bound is unbound if there is anything.
    pub(crate) fn end(mut self, is_bound: bool) {
        self.unbinds = is_bound;
    }

    pub(crate) fn reset(&mut self) {
        // SAFETY: the statement is alive: the connection, which owns it, is borrowed for as long as `Running` lives.
        unsafe { ffi::sqlite3_reset(self.raw) };
    }

    pub(crate) fn bind(&mut self, expected: usize, bindings: Bindings<'_>) -> Result<()> {
        match bindings {
            Bindings::Positional(values) => {
                if values.len() != expected {
                    return Err(Error::ParameterCount { expected, given: values.len() });
                }
                for (index, value) in (1..).zip(values) {
                    self.bind_one(index, value.into())?;
                }
            }
            Bindings::Borrowed(values) => {
                if values.len() != expected {
                    return Err(Error::ParameterCount { expected, given: values.len() });
                }
                for (index, value) in (1..).zip(values) {
                    self.bind_one(index, *value)?;
                }
            }
            Bindings::Named(pairs) => self.bind_named(expected, pairs)?,
        }
        Ok(())
    }

    fn bind_named(&mut self, expected: usize, pairs: &[(Box<str>, Value)]) -> Result<()> {
        let names: Vec<String> = (1..=expected).map(|index| self.parameter_name(index)).collect();
        let mut bound = vec![false; expected];
        for (given, value) in pairs {
            let position = names
                .iter()
                .position(|name| !name.starts_with('?') && (**name == **given || name.get(1..) == Some(&**given)));
            let Some(position) = position else {
                let known = names.into_iter().filter(|name| !name.starts_with('?')).collect();
                return Err(Error::UnknownParameter { name: given.to_string(), known });
            };
            if std::mem::replace(&mut bound[position], true) {
                return Err(Error::RepeatedParameter { name: names[position].clone() });
            }
            self.bind_one(c_int::try_from(position + 1).unwrap_or(c_int::MAX), value.into())?;
        }
        match bound.iter().position(|bound| !bound) {
            Some(missing) => Err(Error::MissingParameter { name: names[missing].clone() }),
            None => Ok(()),
        }
    }

    /// The name with its prefix, or `?N`.
    fn parameter_name(&self, index: usize) -> String {
        let number = c_int::try_from(index).unwrap_or(c_int::MAX);
        // SAFETY: the statement is alive; the name is null or NUL-terminated and lives as long as it.
        unsafe {
            let name = ffi::sqlite3_bind_parameter_name(self.raw, number);
            if name.is_null() { format!("?{index}") } else { CStr::from_ptr(name).to_string_lossy().into_owned() }
        }
    }

    fn bind_one(&mut self, index: c_int, value: ValueRef<'_>) -> Result<()> {
        let lifetime = if self.copies { ffi::SQLITE_TRANSIENT() } else { ffi::SQLITE_STATIC() };
        // SAFETY: the statement is alive and not stepped. Texts and blobs are copied, or borrowed from the caller of `run`
        // until it returns, and `Drop` unbinds them before that.
        let rc = unsafe {
            match value {
                ValueRef::Null => ffi::sqlite3_bind_null(self.raw, index),
                ValueRef::Integer(value) => ffi::sqlite3_bind_int64(self.raw, index, value),
                ValueRef::Real(value) => ffi::sqlite3_bind_double(self.raw, index, value),
                ValueRef::Text(text) => {
                    self.unbinds |= !self.copies;
                    let utf8 = u8::try_from(ffi::SQLITE_UTF8).unwrap_or(1);
                    let (at, bytes) = (text.as_ptr().cast(), text.len() as u64);
                    ffi::sqlite3_bind_text64(self.raw, index, at, bytes, lifetime, utf8)
                }
                ValueRef::Blob([]) => ffi::sqlite3_bind_zeroblob(self.raw, index, 0),
                ValueRef::Blob(blob) => {
                    self.unbinds |= !self.copies;
                    let (at, bytes) = (blob.as_ptr().cast(), blob.len() as u64);
                    ffi::sqlite3_bind_blob64(self.raw, index, at, bytes, lifetime)
                }
            }
        };
        if rc == ffi::SQLITE_OK { Ok(()) } else { Err(self.error(rc)) }
    }

    /// The cells as values: each is looked up once, where the functions for columns look it up for its type, its content
    /// and its length. A value of a column may be read like this because the connection has no mutex
    /// (<https://sqlite.org/c3ref/value.html>).
    #[inline]
    fn read_row<S: Sink>(&self, sink: &mut S) -> Result<()> {
        // SAFETY: the statement stands on a row, so its columns can be read; a value and its bytes live until the next
        // step, and the sink gets them for one call only. The text comes first, then its length.
        unsafe {
            let columns = ffi::sqlite3_data_count(self.raw);
            for column in 0..columns {
                let value = ffi::sqlite3_column_value(self.raw, column);
                match ffi::sqlite3_value_type(value) {
                    ffi::SQLITE_INTEGER => sink.integer(ffi::sqlite3_value_int64(value)),
                    ffi::SQLITE_FLOAT => sink.real(ffi::sqlite3_value_double(value)),
                    ffi::SQLITE_TEXT => {
                        let at = ffi::sqlite3_value_text(value);
                        sink.text(self.bytes(at, value)?);
                    }
                    ffi::SQLITE_BLOB => {
                        let at = ffi::sqlite3_value_blob(value);
                        sink.blob(self.bytes(at.cast(), value)?);
                    }
                    _ => sink.null(),
                }
            }
        }
        Ok(())
    }

    /// # Safety
    /// `value` is a column of the current row, and `at` what SQLite just answered for it.
    unsafe fn bytes(&self, at: *const u8, value: *mut ffi::sqlite3_value) -> Result<&[u8]> {
        // SAFETY: the statement stands on a row; `at` points to as many bytes as SQLite says.
        unsafe {
            let length = ffi::sqlite3_value_bytes(value).unsigned_abs() as usize;
            if !at.is_null() {
                return Ok(std::slice::from_raw_parts(at, length));
            }
            if ffi::sqlite3_errcode(ffi::sqlite3_db_handle(self.raw)) == ffi::SQLITE_NOMEM {
                return Err(self.error(ffi::SQLITE_NOMEM));
            }
            Ok(&[])
        }
    }

    fn error(&self, code: c_int) -> Error {
        // SAFETY: the statement is alive, so its connection is open, and it is ours.
        unsafe { SqliteError::of(ffi::sqlite3_db_handle(self.raw), code) }.into()
    }
}
