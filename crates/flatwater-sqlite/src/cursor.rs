//! A statement that is run in parts: started, stepped for as many rows as are wanted, and reset.
//!
//! Owns: the steps between bind and reset, which other work on the connection may lie between. Runs on the thread that has the
//! connection. Invariants: the values are copied (SQLITE_TRANSIENT), so that nothing of the caller's is bound from one
//! part to the next; after a failure or a panic the statement is reset. Leaves out: keeping a statement that is started
//! from being run by others, which is the caller's; and how long its snapshot may last.

use rusqlite::ffi;

use crate::connection::Connection;
use crate::error::Result;
use crate::running::Running;
use crate::sink::{Flow, Sink};
use crate::slots::{Statement, StatementId};
use crate::statement::Bindings;

impl Connection {
    /// Binds copies of the values. Nothing runs, and no snapshot begins. A statement that was started before begins anew.
    ///
    /// # Errors
    /// Bindings that do not fit; [`Error::StaleStatement`](crate::Error::StaleStatement).
    pub fn start(&mut self, id: StatementId, bindings: Bindings<'_>) -> Result<()> {
        let Statement { raw, parameters, .. } = self.statement(id)?;
        let mut running = Running::copying(raw);
        running.reset();
        running.bind(parameters, bindings)?;
        running.keep();
        Ok(())
    }

    /// Steps a statement that was started, until the sink says stop or the statement ends. The first step begins its snapshot,
    /// as [`run`](Self::run) does; the snapshot lasts until the statement ends, fails, or is [`reset`](Self::reset). Returns
    /// `Stop` if there may be more rows. At its end the statement is reset, and another step begins it anew.
    ///
    /// # Errors
    /// What SQLite answers; [`Error::StaleStatement`](crate::Error::StaleStatement).
    pub fn next<S: Sink>(&mut self, id: StatementId, sink: &mut S) -> Result<Flow> {
        let Statement { raw, .. } = self.statement(id)?;
        // SAFETY: the statement is alive.
        let has_begun = unsafe { ffi::sqlite3_stmt_busy(raw) } != 0;
        // Only what has given no row yet can be begun again.
        if has_begun { self.next_once(id, sink) } else { self.patiently(|connection| connection.next_once(id, sink)) }
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

    /// Ends the run of a statement, and its snapshot with it. Its values are unbound.
    pub fn reset(&mut self, id: StatementId) {
        if let Ok(Statement { raw, parameters, .. }) = self.statement(id) {
            Running::copying(raw).end(parameters > 0);
        }
    }
}
