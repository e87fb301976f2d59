//! A statement between bind and reset.
//!
//! Owns: binding values, and the one loop that passes the cells of rows to a sink. Runs on the thread that uses the
//! connection. Invariants: a text or blob that is bound by reference (SQLITE_STATIC) is not read after the borrow ends:
//! each run binds every parameter before its first step, and the end of the last run unbinds them, also when a panic
//! unwinds; one that may stay bound is copied. Leaves out: which connection the statement belongs to (`statements`), and when
//! it runs.

use std::ffi::{CStr, c_int};
use std::sync::Arc;

use rusqlite::ffi;
use rusqlite::types::ValueRef;

use crate::error::{Error, Result, SqliteError};
use crate::statements::Compiled;
use crate::statements::bindings::Bindings;
use crate::statements::parameters::{Names, Parameters};
use crate::statements::sink::{FirstRow, Flow, Sink};

/// A statement between bind and reset. Dropping this value resets the statement, and unbinds borrowed values, so that
/// no borrowed value stays bound.
pub(crate) struct Running {
    raw: *mut ffi::sqlite3_stmt,
    is_stable: bool,
    was_prepared_again: bool,
    /// Texts and blobs are copied when they are bound, and may stay bound.
    copies: bool,
    unbinds: Unbinds,
    /// The run continues later, so dropping this value does not reset the statement.
    is_kept: bool,
}

/// What must be unbound at the end.
#[derive(Clone, Copy)]
enum Unbinds {
    /// The parameters whose bits are set, counted from 0.
    Some(u64),
    All,
}

impl Unbinds {
    fn add(&mut self, position: usize) {
        *self = match *self {
            Self::Some(bits) if position < 64 => Self::Some(bits | 1 << position),
            _ => Self::All,
        };
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.is_kept {
            return;
        }
        self.reset();
        self.unbind();
    }
}

impl Running {
    /// Returns a run that ends before its caller continues, and therefore borrows its values.
    pub(crate) fn borrowing(compiled: Compiled) -> Self {
        Self::of(compiled, false)
    }

    fn of(Compiled { raw, is_stable, reprepares, .. }: Compiled, copies: bool) -> Self {
        let unbinds = Unbinds::Some(0);
        Self { raw, is_stable, was_prepared_again: reprepares != 0, copies, unbinds, is_kept: false }
    }

    /// Runs a statement from bind to reset. The values are borrowed until then.
    pub(crate) fn once<B, S>(
        compiled: Compiled,
        bindings: &B,
        names: impl FnOnce() -> Option<Arc<Names>>,
        sink: &mut S,
    ) -> Result<()>
    where
        B: Bindings + ?Sized,
        S: Sink,
    {
        let mut running = Self::borrowing(compiled);
        running.bind(compiled.parameters, bindings, names)?;
        running.rows(sink).map(drop)
    }

    /// Returns a run in parts, which copies its values.
    pub(crate) fn copying(compiled: Compiled) -> Self {
        Self::of(compiled, true)
    }

    /// Keeps the statement without a reset: the run continues later.
    pub(crate) fn keep(mut self) {
        self.is_kept = true;
    }

    /// Resets the statement, and clears its bindings if `is_bound`.
    pub(crate) fn end(mut self, is_bound: bool) {
        if is_bound {
            self.unbinds = Unbinds::All;
        }
    }

    /// Unbinds what must not stay bound. Parameters one by one, because `sqlite3_clear_bindings` expires a statement for whose
    /// plan any value matters, also if that value stays bound.
    fn unbind(&mut self) {
        match std::mem::replace(&mut self.unbinds, Unbinds::Some(0)) {
            Unbinds::All => {
                // SAFETY: the statement is alive: the connection, which owns it, is borrowed for as long as `Running` lives.
                unsafe { ffi::sqlite3_clear_bindings(self.raw) };
            }
            Unbinds::Some(mut bits) => {
                while bits != 0 {
                    let position = bits.trailing_zeros() as usize;
                    // SAFETY: as above; it was reset, so its parameters can be bound.
                    unsafe { ffi::sqlite3_bind_null(self.raw, parameter_number(position)) };
                    bits &= bits - 1;
                }
            }
        }
    }

    pub(crate) fn reset(&mut self) {
        // SAFETY: the statement is alive: the connection, which owns it, is borrowed for as long as `Running` lives.
        unsafe { ffi::sqlite3_reset(self.raw) };
    }

    /// Binds the values. `names` is called if they have names.
    pub(crate) fn bind<B: Bindings + ?Sized>(
        &mut self,
        parameters: Parameters,
        bindings: &B,
        names: impl FnOnce() -> Option<Arc<Names>>,
    ) -> Result<()> {
        let (expected, given) = (parameters.count, bindings.count());
        if given > 0 && bindings.name(0).is_some() {
            let names = names().ok_or(Error::StaleStatement)?;
            return self.bind_named(expected, bindings, &names);
        }
        if parameters.misnumbered > 0 {
            let place = parameters.misnumbered;
            return Err(Error::MisnumberedParameter { name: self.parameter_name(place - 1), place });
        }
        if given != expected {
            return Err(Error::ParameterCount { expected, given });
        }
        (0..given).try_for_each(|index| self.bind_one(index, bindings.value(index)))
    }

    fn bind_named<B: Bindings + ?Sized>(&mut self, expected: usize, bindings: &B, names: &Names) -> Result<()> {
        let mut bound = vec![false; expected];
        for index in 0..bindings.count() {
            let given = bindings.name(index).unwrap_or_default();
            let Some(position) = names.find(given) else {
                let known = names.named().map(str::to_owned).collect();
                return Err(Error::UnknownParameter { name: given.to_string(), known });
            };
            if std::mem::replace(&mut bound[position], true) {
                return Err(Error::RepeatedParameter { name: names.name(position).to_owned() });
            }
            self.bind_one(position, bindings.value(index))?;
        }
        match bound.iter().position(|bound| !bound) {
            Some(missing) => Err(Error::MissingParameter { name: names.name(missing).to_owned() }),
            None => Ok(()),
        }
    }

    /// Returns the name of a parameter with its prefix, or `?N` if it has no name.
    fn parameter_name(&self, position: usize) -> String {
        let number = parameter_number(position);
        // SAFETY: the statement is alive; the name is null or NUL-terminated and lives as long as it.
        unsafe {
            let name = ffi::sqlite3_bind_parameter_name(self.raw, number);
            if name.is_null() { format!("?{number}") } else { CStr::from_ptr(name).to_string_lossy().into_owned() }
        }
    }

    fn bind_one(&mut self, position: usize, value: ValueRef<'_>) -> Result<()> {
        let index = parameter_number(position);
        let lifetime = if self.copies { ffi::SQLITE_TRANSIENT() } else { ffi::SQLITE_STATIC() };
        // SAFETY: the statement is alive and not stepped. Texts and blobs are copied, or borrowed for this run: SQLite
        // reads them in its steps only. The next run binds all parameters anew before it steps, and `Drop` unbinds them.
        let rc = unsafe {
            match value {
                ValueRef::Null => ffi::sqlite3_bind_null(self.raw, index),
                ValueRef::Integer(value) => ffi::sqlite3_bind_int64(self.raw, index, value),
                ValueRef::Real(value) => ffi::sqlite3_bind_double(self.raw, index, value),
                ValueRef::Text(text) => {
                    self.unbind_later(position);
                    let utf8 = u8::try_from(ffi::SQLITE_UTF8).unwrap_or(1);
                    let (at, bytes) = (text.as_ptr().cast(), text.len() as u64);
                    ffi::sqlite3_bind_text64(self.raw, index, at, bytes, lifetime, utf8)
                }
                ValueRef::Blob([]) => ffi::sqlite3_bind_zeroblob(self.raw, index, 0),
                ValueRef::Blob(blob) => {
                    self.unbind_later(position);
                    let (at, bytes) = (blob.as_ptr().cast(), blob.len() as u64);
                    ffi::sqlite3_bind_blob64(self.raw, index, at, bytes, lifetime)
                }
            }
        };
        if rc == ffi::SQLITE_OK { Ok(()) } else { Err(self.refused_value(position, rc)) }
    }

    #[inline]
    fn unbind_later(&mut self, position: usize) {
        if !self.copies {
            self.unbinds.add(position);
        }
    }

    /// The error of a value that is too long, or that there is no memory for.
    #[cold]
    fn refused_value(&self, position: usize, rc: c_int) -> Error {
        let name = self.parameter_name(position);
        let place = name.strip_prefix('?').map_or_else(|| format!("{name:?}"), str::to_owned);
        match self.error(rc) {
            Error::Sqlite(error) => {
                SqliteError { message: format!("parameter {place}: {}", error.message), ..error }.into()
            }
            other => other,
        }
    }

    /// Passes rows to the sink until the sink returns `Stop` or the statement ends.
    pub(crate) fn rows<S: Sink>(&mut self, sink: &mut S) -> Result<Flow> {
        let mut is_first = true;
        loop {
            // SAFETY: the statement is alive, and only this value uses it.
            match unsafe { ffi::sqlite3_step(self.raw) } {
                ffi::SQLITE_ROW => {
                    if std::mem::take(&mut is_first) {
                        sink.first_row(FirstRow::of(self.raw, self.was_prepared_again));
                    }
                    self.read_row(sink)?;
                    if sink.row_done() == Flow::Stop {
                        return Ok(Flow::Stop);
                    }
                }
                ffi::SQLITE_DONE => return Ok(Flow::Continue),
                code => return Err(self.failed(code)),
            }
        }
    }

    /// The error of a step. Of a statement that was not prepared by `sqlite3_prepare_v2` or `_v3` the reset tells what failed
    /// (<https://sqlite.org/c3ref/step.html>, "goofy interface").
    #[cold]
    fn failed(&mut self, code: c_int) -> Error {
        // SAFETY: the statement is alive: the connection, which owns it, is borrowed for as long as `Running` lives.
        let code = if self.is_stable { unsafe { ffi::sqlite3_reset(self.raw) } } else { code };
        self.error(code)
    }

    /// Reads the cells as values. Each cell is looked up once, while SQLite's functions for columns would look it up
    /// for its type, its content and its length. A value of a column may be read like this because the connection has
    /// no mutex (<https://sqlite.org/c3ref/value.html>).
    #[inline]
    fn read_row<S: Sink>(&self, sink: &mut S) -> Result<()> {
        // SAFETY: the statement is at a row, so its columns can be read. A value and its bytes live until the next
        // step, and the sink uses them only during one call. The text is read before its length.
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
    /// `value` is a column of the current row, and `at` is the pointer that SQLite just returned for it.
    unsafe fn bytes(&self, at: *const u8, value: *mut ffi::sqlite3_value) -> Result<&[u8]> {
        // SAFETY: the statement is at a row; `at` points to as many bytes as SQLite reports.
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
        // SAFETY: the statement is alive, so its connection is open, and only this value uses it.
        unsafe { SqliteError::of(ffi::sqlite3_db_handle(self.raw), code) }.into()
    }
}

/// Returns the number that SQLite gives to the parameter at this position.
fn parameter_number(position: usize) -> c_int {
    c_int::try_from(position + 1).unwrap_or(c_int::MAX)
}
