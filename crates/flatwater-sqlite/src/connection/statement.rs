//! A prepared statement of a connection: running it in one go.
//!
//! Owns: one run of a statement, from bind to reset. Runs on the thread that uses the connection, and has it alone.
//! Invariants: a statement is reset when `run` returns, on every path; one in which a callback failed returns that, and
//! commits nothing; while it is stepped, nothing is remembered of the
//! files. Leaves out: preparing (`prepare`), binding and reading (`running`), the columns of the result (`columns`), runs in
//! several parts (`cursor`), and what the caller does with the rows.

use std::ops::ControlFlow;
use std::time::Instant;

use rusqlite::ffi;

use super::Sqlite;
use super::newest_schema::current;
use super::snapshot_wait::patiently;
use crate::error::{Error, Result};
use crate::statements::bindings::Bindings;
use crate::statements::running::Running;
use crate::statements::sink::{Discard, Sink};
use crate::statements::{Compiled, StatementId};

/// A prepared statement, with its connection. One that was finalised, or belongs to another connection, is
/// [`Error::StaleStatement`] when it is to run.
pub struct Statement<'c> {
    pub(super) connection: &'c mut Sqlite,
    pub(super) id: StatementId,
}

impl Sqlite {
    /// A prepared statement of this connection.
    #[inline]
    pub fn statement(&mut self, id: StatementId) -> Statement<'_> {
        Statement { connection: self, id }
    }
}

impl Statement<'_> {
    /// Runs the statement to its end, or until the sink returns [`Flow::Stop`](crate::Flow::Stop). Blocks for as long as
    /// SQLite does.
    ///
    /// # Errors
    /// Returns an error before anything runs if the bindings do not match the parameters; otherwise SQLite's error.
    pub fn run<B, S>(self, bindings: &B, sink: &mut S) -> Result<()>
    where
        B: Bindings + ?Sized,
        S: Sink,
    {
        let id = self.id;
        current(self.connection, id, |connection| {
            patiently(connection, |connection| connection.statement(id).run_once(bindings, sink))
        })
    }

    /// Like [`run`](Self::run), but fails if a snapshot cannot begin at once, and prepares no stable statement again.
    ///
    /// # Errors
    /// Returns the errors of `run`, an error if a snapshot cannot begin at once, and SQLITE_SCHEMA for a stable statement
    /// if the schema has changed.
    pub fn run_once<B, S>(self, bindings: &B, sink: &mut S) -> Result<()>
    where
        B: Bindings + ?Sized,
        S: Sink,
    {
        let id = self.id;
        self.stepping(|connection, compiled| {
            Running::once(compiled, bindings, || connection.statements.names(id), sink)
        })
    }

    /// Runs the statement to its end once for each of `runs`, in their order, and calls `ran` after each, until that breaks. The
    /// rows of the statement are dropped. Fails if a snapshot cannot begin at once, and as `run_once` for a stable statement.
    ///
    /// # Errors
    /// Returns the first error, as [`run`](Self::run) does. No later run begins.
    pub fn run_many<B: Bindings>(
        self,
        runs: impl IntoIterator<Item = B>,
        mut ran: impl FnMut(&Sqlite) -> ControlFlow<()>,
    ) -> Result<()> {
        let id = self.id;
        self.stepping(|connection, compiled| {
            let mut running = Running::borrowing(compiled);
            for bindings in runs {
                running.bind(compiled.parameters, &bindings, || connection.statements.names(id))?;
                running.rows(&mut Discard)?;
                running.reset();
                // Of a callback's failure that SQLite does not know: it is returned when this ends.
                if connection.hooks().failure.is_noted() || ran(connection).is_break() {
                    break;
                }
            }
            Ok(())
        })
    }

    /// Runs `f`, which steps the statement. While `f` runs, the knowledge about the connection's files is set aside. It
    /// is valid again afterwards if nothing can have left WAL mode meanwhile.
    pub(super) fn stepping<T>(self, f: impl FnOnce(&mut Sqlite, Compiled) -> Result<T>) -> Result<T> {
        let compiled = self.compiled()?;
        let Self { connection, id } = self;
        // `&mut`: no other code uses the rusqlite connection.
        connection.wal.files.mapping.take_back();
        let known = connection.wal.files.mapping.set_aside();
        let result = f(connection, compiled);
        let result = connection.hooks().failure.instead_of(connection.hooks().interrupts.explain(result));
        if !connection.statements.was_prepared_again(id) && !compiled.may_leave_wal {
            connection.wal.files.mapping.put_back(known);
        }
        result
    }

    pub(super) fn compiled(&self) -> Result<Compiled> {
        self.connection.statements.get(self.id).ok_or(Error::StaleStatement)
    }

    /// Returns true if a run with these values would reach its first step.
    #[must_use]
    pub fn fits<B: Bindings + ?Sized>(self, bindings: &B) -> bool {
        let Ok(compiled) = self.compiled() else { return false };
        let statements = &mut self.connection.statements;
        Running::borrowing(compiled).bind(compiled.parameters, bindings, || statements.names(self.id)).is_ok()
    }

    /// Like [`Interrupts::arm`](crate::Interrupts::arm): the statement, which runs next, ends at `end`. A check comes after
    /// each 1,000 of its steps, and none before.
    pub fn arm_until(self, end: Instant) {
        let Self { connection, id } = self;
        // The checks come where this counter is a multiple of 1,000.
        let _ = connection.statement(id).take_steps();
        connection.hooks().interrupts.arm_until(end);
    }

    /// Returns the steps of SQLite's virtual machine that the statement has made since it was last asked, or was last armed
    /// (<https://sqlite.org/c3ref/c_stmtstatus_counter.html>).
    #[must_use]
    pub fn take_steps(self) -> u32 {
        let Ok(Compiled { raw, .. }) = self.compiled() else { return 0 };
        // SAFETY: the statement is alive.
        unsafe { ffi::sqlite3_stmt_status(raw, ffi::SQLITE_STMTSTATUS_VM_STEP, 1) }.unsigned_abs()
    }

    /// Finalizes the statement. Does nothing if it is already finalized.
    pub fn finalize(self) {
        self.connection.statements.finalize(self.id);
    }
}
