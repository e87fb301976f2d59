//! Cursors: a statement that runs in parts. It is started, stepped for as many rows as the caller needs, and reset.
//!
//! Owns: the steps between bind and reset; other work on the connection may run between them. Runs on the thread that
//! uses the connection. Invariants: the values are copied (SQLITE_TRANSIENT), so that no memory of the caller stays
//! bound from one part to the next; after a failure or a panic the statement is reset. Leaves out: preventing other
//! code from running a started statement, and limiting how long its snapshot lasts. Both are up to the caller.

use rusqlite::ffi;

use super::newest_schema::current;
use super::snapshot_wait::patiently;
use super::statement::Statement;
use crate::error::Result;
use crate::statements::Compiled;
use crate::statements::bindings::Bindings;
use crate::statements::running::Running;
use crate::statements::sink::{Flow, Sink};

impl Statement<'_> {
    /// Binds copies of the values. Runs nothing, and begins no snapshot. A statement that was started before begins
    /// again.
    ///
    /// # Errors
    /// Returns an error if the bindings do not match the parameters, or
    /// [`Error::StaleStatement`](crate::Error::StaleStatement) if the statement was finalized.
    pub fn start<B: Bindings + ?Sized>(self, bindings: &B) -> Result<()> {
        let compiled = self.compiled()?;
        let mut running = Running::copying(compiled);
        running.reset();
        running.bind(compiled.parameters, bindings, || self.connection.statements.names(self.id))?;
        running.keep();
        Ok(())
    }

    /// Steps a started statement until the sink returns `Stop` or the statement ends. The first step begins its
    /// snapshot, as [`run`](Self::run) does; the snapshot lasts until the statement ends, fails, or is
    /// [`reset`](Self::reset). Returns `Stop` if there may be more rows. At its end, and after an error, the statement is
    /// reset and its values are unbound.
    ///
    /// # Errors
    /// Returns SQLite's error, or [`Error::StaleStatement`](crate::Error::StaleStatement) if the statement was
    /// finalized.
    pub fn next<S: Sink>(self, sink: &mut S) -> Result<Flow> {
        let Compiled { raw, .. } = self.compiled()?;
        let Self { connection, id } = self;
        // SAFETY: the statement is alive.
        let has_begun = unsafe { ffi::sqlite3_stmt_busy(raw) } != 0;
        // Only a statement that has returned no row yet can begin again.
        let result = if has_begun {
            connection.statement(id).next_once(sink)
        } else {
            current(connection, id, |connection| {
                patiently(connection, |connection| connection.statement(id).next_once(sink))
            })
        };
        if result != Ok(Flow::Stop) {
            connection.statement(id).reset();
        }
        result
    }

    fn next_once<S: Sink>(self, sink: &mut S) -> Result<Flow> {
        self.stepping(|_, compiled| {
            let mut running = Running::copying(compiled);
            let flow = running.rows(sink)?;
            if flow == Flow::Stop {
                running.keep();
            }
            Ok(flow)
        })
    }

    /// Ends the run of a statement, and its snapshot with it. Unbinds its values.
    pub fn reset(self) {
        if let Ok(compiled) = self.compiled() {
            Running::copying(compiled).end(compiled.parameters.count > 0);
        }
    }
}
