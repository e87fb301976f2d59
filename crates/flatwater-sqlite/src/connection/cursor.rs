//! Cursors: a statement that runs in parts. It is started, stepped for as many rows as the caller needs, and reset.
//!
//! Owns: the steps between bind and reset; other work on the connection may run between them. Runs on the thread that
//! uses the connection. Invariants: the values are copied (SQLITE_TRANSIENT), so that no memory of the caller stays
//! bound from one part to the next; after a failure or a panic the statement is reset. Leaves out: preventing other
//! code from running a started statement, and limiting how long its snapshot lasts. Both are up to the caller.

use rusqlite::ffi;

use crate::connection::Connection;
use crate::error::Result;
use crate::statements::bindings::Bindings;
use crate::statements::running::Running;
use crate::statements::sink::{Flow, Sink};
use crate::statements::{Statement, StatementId};

impl Connection {
    /// Binds copies of the values. Runs nothing, and begins no snapshot. A statement that was started before begins
    /// again.
    ///
    /// # Errors
    /// Returns an error if the bindings do not match the parameters, or
    /// [`Error::StaleStatement`](crate::Error::StaleStatement) if the statement was finalized.
    pub fn start<B: Bindings + ?Sized>(&mut self, id: StatementId, bindings: &B) -> Result<()> {
        let Statement { raw, parameters, .. } = self.statement(id)?;
        let mut running = Running::copying(raw);
        running.reset();
        running.bind(parameters, bindings, || self.slots.names(id))?;
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
    pub fn next<S: Sink>(&mut self, id: StatementId, sink: &mut S) -> Result<Flow> {
        let Statement { raw, .. } = self.statement(id)?;
        // SAFETY: the statement is alive.
        let has_begun = unsafe { ffi::sqlite3_stmt_busy(raw) } != 0;
        // Only a statement that has returned no row yet can begin again.
        let result = if has_begun {
            self.next_once(id, sink)
        } else {
            self.patiently(|connection| connection.next_once(id, sink))
        };
        if result != Ok(Flow::Stop) {
            self.reset(id);
        }
        result
    }

    fn next_once<S: Sink>(&mut self, id: StatementId, sink: &mut S) -> Result<Flow> {
        self.stepping(id, |_, Statement { raw, .. }| {
            let mut running = Running::copying(raw);
            let flow = running.rows(sink)?;
            if flow == Flow::Stop {
                running.keep();
            }
            Ok(flow)
        })
    }

    /// Ends the run of a statement, and its snapshot with it. Unbinds its values.
    pub fn reset(&mut self, id: StatementId) {
        if let Ok(Statement { raw, parameters, .. }) = self.statement(id) {
            Running::copying(raw).end(parameters.count > 0);
        }
    }
}
