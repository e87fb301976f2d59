//! The statements of one request on a connection of a caller: what stands around them.
//!
//! Owns: what of them is allowed there, what undoes them, and the transaction of several. Runs on the thread that has the
//! connection. Invariants: a single statement and a script are what SQLite makes of them; `batch` and `execute_many` are all or
//! nothing; a commit that failed is settled before anything else runs. Leaves out: what each kind of work does
//! (`perform::statements`), the connection between two requests (`runner`).

use std::sync::Arc;
use std::time::Duration;

use flatwater_sqlite::{Interrupt, Policy};

use super::runner::Runner;
use crate::connection::EngineConnection;
use crate::connection::repair::exclusive_policy;
use crate::connection::run::execute::{Outcome, StatementRun};
use crate::connection::run::statement_cache::CachedStatement;
use crate::queue::ticket::{Ticket, left_request};
use crate::workers::Answer;
use crate::workers::perform::autocommit::Execution;
use crate::workers::perform::frame::may_leave_part;
use crate::workers::perform::statements::{Frame, perform};
use crate::workers::work::Work;
use crate::workers::writer::commit::{commit, settle};
use crate::workers::writer::commits_seen::changes;
use crate::workers::writer::interrupts::disarm;
use crate::workers::writer::writer_connection::WriterConnection;
use flatwater_base::error::{Error, ErrorCode, ErrorKind, Result};
use flatwater_sql::policy;
use flatwater_sql::statement_info::StatementInfo;
use flatwater_sql::tokens::busy_timeout_set;

/// The run of one request.
struct RequestRun<'a> {
    runner: &'a mut Runner,
    ticket: &'a Arc<Ticket>,
    /// What ends it early.
    ends: &'a Arc<dyn Interrupt>,
    /// Its statements are kept together: none ends their transaction.
    are_together: bool,
    /// A statement writes, and did not run without the slot. Those before it have only read.
    needs_slot: bool,
    /// That of the last statement.
    execution: Option<Execution>,
}

impl Runner {
    /// Runs the statements of the work. Returns `None` if it needs the slot.
    pub(super) fn statements(
        &mut self,
        work: &Work,
        ticket: &Arc<Ticket>,
        ends: &Arc<dyn Interrupt>,
    ) -> Result<Option<Answer>> {
        let mut run =
            RequestRun { runner: self, ticket, ends, are_together: false, needs_slot: false, execution: None };
        let ran = run.run(work);
        if run.needs_slot { Ok(None) } else { ran.map(Some) }
    }
}

impl RequestRun<'_> {
    fn run(&mut self, work: &Work) -> Result<Answer> {
        if let Some((text, _)) = work.statement() {
            self.note_busy_timeout(text)?;
        }
        if matches!(work, Work::Many { .. } | Work::Batch(_)) { self.together(work) } else { perform(self, work) }
    }

    /// The busy handler is the engine's, so what a text says of it is noted.
    fn note_busy_timeout(&mut self, text: &StatementInfo) -> Result<()> {
        let Some(milliseconds) = busy_timeout_set(&text.sql) else { return Ok(()) };
        self.runner.busy_timeout = Duration::from_millis(milliseconds);
        self.runner.writer()?.connection()?.stated.set_busy_timeout(milliseconds);
        Ok(())
    }

    fn arm(&mut self) -> Result<()> {
        self.runner.writer()?.connection()?.sqlite.hooks().interrupts.arm(self.ends.clone());
        Ok(())
    }

    /// Runs a statement. In a transaction a write that may call code of the program has a savepoint around it.
    fn execute_guarded(&mut self, run: &StatementRun<'_>) -> Result<Outcome> {
        let writer = self.runner.writer()?;
        let is_inside = !writer.is_autocommit();
        let connection = writer.connection()?;
        let writes = run.statement.class.changes_rows || run.statement.class.defines;
        if !(is_inside && writes && connection.functions.may_call_foreign_code()) {
            return connection.execute(run);
        }
        connection.control.savepoint(&mut connection.sqlite)?;
        self.arm()?;
        let ran = self.runner.writer()?.connection()?.execute(run);
        self.end_savepoint(ran)
    }

    /// Ends the savepoint around a statement that has run, unless SQLite has ended the transaction. If that is not possible,
    /// the transaction is rolled back.
    fn end_savepoint(&mut self, ran: Result<Outcome>) -> Result<Outcome> {
        let writer = self.runner.writer()?;
        disarm(writer);
        if writer.is_autocommit() {
            return ran;
        }
        let EngineConnection { control, sqlite, .. } = writer.connection()?;
        let ended = match &ran {
            Err(error) if error.kind() != ErrorKind::Constraint => control.undo(sqlite),
            _ => control.release(sqlite),
        };
        ended.map_err(Error::from).inspect_err(|_| writer.rollback()).and(ran)
    }

    /// Runs several statements, all or nothing: in a transaction, or in a savepoint of the one that is open. If the call wants
    /// to keep rows, what ran before a failure stays, unless a part of a row may be left.
    fn together(&mut self, work: &Work) -> Result<Answer> {
        self.are_together = true;
        let ticket = self.ticket;
        let shared = self.runner.slot.as_ref().map(|slot| slot.shared.clone());
        let writer = self.runner.writer()?;
        let is_outermost = writer.is_autocommit();
        let EngineConnection { control, sqlite, .. } = writer.connection()?;
        match &shared {
            _ if !is_outermost => control.savepoint(sqlite)?,
            Some(_) => control.begin(sqlite)?,
            None => control.begin_read(sqlite)?,
        }
        self.arm()?;
        let result = perform(self, work);
        let writer = self.runner.writer()?;
        disarm(writer);
        let keeps_rows = ticket.options.keeps_rows && !self.needs_slot;
        let keeps = |error: &Error| keeps_rows && !may_leave_part(writer, error);
        let is_kept = result.as_ref().err().is_none_or(keeps) && !writer.is_autocommit();
        match shared {
            Some(shared) if is_outermost && is_kept => commit(writer, &shared, Some(ticket)).and(result),
            None if is_outermost => {
                // It only read.
                writer.rollback();
                result
            }
            _ if !is_outermost && is_kept && ticket.finishes() => {
                let EngineConnection { control, sqlite, .. } = writer.connection()?;
                control.release(sqlite)?;
                result
            }
            _ => {
                if is_outermost {
                    writer.rollback();
                } else if !writer.is_autocommit() {
                    writer.undo().inspect_err(|_| self.needs_slot = false)?;
                }
                Err(result.err().unwrap_or_else(left_request))
            }
        }
    }
}

impl Frame for RequestRun<'_> {
    const PLACE: &'static str = "on a connection";
    /// The trace of the program would see it, and the time has waits for locks in it.
    const LEARNS_FROM_ROWS: bool = false;

    fn writer(&mut self) -> Result<&mut WriterConnection> {
        self.runner.writer()
    }

    fn before(&mut self) -> Result<Policy> {
        self.arm()?;
        let connection = self.runner.writer()?.connection()?;
        Ok(if self.are_together { policy::migration } else { exclusive_policy(connection) })
    }

    fn may_run(&mut self, ready: &CachedStatement, _: bool) -> Result<()> {
        if ready.class.locks && self.runner.slot.is_none() {
            self.needs_slot = true;
            // Never seen by a caller: the work runs again.
            return Err(Error::new(ErrorCode::Internal, "a statement that reads has become one that writes"));
        }
        Ok(())
    }

    fn note(&mut self, ready: &CachedStatement) {
        self.runner.note(ready);
    }

    /// A statement may commit by itself.
    fn execute(&mut self, run: &StatementRun<'_>) -> Result<Outcome> {
        self.execution = Some(Execution::begin(self.runner.writer()?)?);
        let Some(shared) = self.runner.slot.as_ref().map(|slot| slot.shared.clone()) else {
            return self.execute_guarded(run);
        };
        let before = changes(self.runner.writer()?);
        let ran = self.execute_guarded(run);
        ran.map_err(|error| match self.runner.writer() {
            Ok(writer) if writer.is_autocommit() => {
                disarm(writer);
                settle(writer, &shared, error, &before)
            }
            _ => error,
        })
    }

    fn ran(&mut self, text: &StatementInfo, ready: &CachedStatement, _: Duration) -> Result<()> {
        let execution = self.execution.take().filter(|_| ready.class.changes_rows);
        if let Some(execution) = execution {
            text.took(execution.end(self.runner.writer()?)?);
        }
        Ok(())
    }
}
