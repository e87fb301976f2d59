//! The only way in which a row leaves SQLite.
//!
//! Owns: the `Sink` trait, and what a sink may ask at the first row. Runs on the thread that steps the statement.
//! Invariant: a sink does not wait. Leaves out: the sinks themselves (row block, JSON, digest), which belong to the
//! engine.

use std::marker::PhantomData;

use rusqlite::ffi;

use crate::statements::columns;

/// Whether the step loop continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// Step to the next row.
    Continue,
    /// Stop here; the statement is reset.
    Stop,
}

/// A statement at the first row of its run.
pub struct FirstRow<'a> {
    raw: *mut ffi::sqlite3_stmt,
    /// It was prepared again before this run.
    was_prepared_again: bool,
    run: PhantomData<&'a ()>,
}

impl FirstRow<'_> {
    pub(crate) fn of(raw: *mut ffi::sqlite3_stmt, was_prepared_again: bool) -> Self {
        Self { raw, was_prepared_again, run: PhantomData }
    }

    /// Returns the names of the result columns if the statement was ever prepared again, as it does at the first
    /// step if the schema has changed. The statement may then have other columns than it was prepared with.
    #[must_use]
    pub fn new_names(&self) -> Option<Vec<Box<str>>> {
        // SAFETY: the statement is alive, and only its run uses it.
        unsafe {
            let reprepares = ffi::sqlite3_stmt_status(self.raw, ffi::SQLITE_STMTSTATUS_REPREPARE, 0);
            (self.was_prepared_again || reprepares != 0).then(|| columns::names(self.raw))
        }
    }
}

/// Receives the cells of a result, row by row and left to right.
///
/// For every row the loop calls one cell method per column and then [`row_done`](Sink::row_done). Borrowed bytes live
/// for that call only. If a sink panics, the statement is reset and the panic continues in the caller of `run`.
pub trait Sink {
    /// Called before the cells of the first row of a run, or of each of its parts.
    fn first_row(&mut self, _: FirstRow<'_>) {}
    /// Receives a NULL.
    fn null(&mut self);
    /// Receives an INTEGER.
    fn integer(&mut self, value: i64);
    /// Receives a REAL.
    fn real(&mut self, value: f64);
    /// Receives a TEXT as SQLite stores it: UTF-8, which may be invalid.
    fn text(&mut self, value: &[u8]);
    /// Receives a BLOB.
    fn blob(&mut self, value: &[u8]);
    /// Called when the row is complete. Returns whether to continue.
    fn row_done(&mut self) -> Flow;
}

/// A sink that discards all cells.
#[derive(Debug, Default, Clone, Copy)]
pub struct Discard;

impl Sink for Discard {
    fn null(&mut self) {}
    fn integer(&mut self, _: i64) {}
    fn real(&mut self, _: f64) {}
    fn text(&mut self, _: &[u8]) {}
    fn blob(&mut self, _: &[u8]) {}
    fn row_done(&mut self) -> Flow {
        Flow::Continue
    }
}
