//! The statements of one request on a connection of a caller.
//!
//! Owns: what each kind of work does, statement by statement. Runs on the thread that has the connection. Invariants: a
//! single statement and a script are what SQLite makes of them; `batch` and `execute_many` are all or nothing; a commit
//! that failed is settled before anything else runs. Leaves out: the connection between two requests (`runner`).

use std::sync::Arc;
use std::time::Duration;

use flatwater_sqlite::Interrupt;

use super::runner::Runner;
use crate::connection::EngineConnection;
use crate::connection::learn::analyse::{learn, learn_before};
use crate::connection::run::blobs::use_blob;
use crate::connection::run::execute::{Bounds, Collected, Outcome, Output, StatementRun, output_of, result_of};
use crate::connection::run::prepare::refuse_nul;
use crate::connection::run::statement_cache::CachedStatement;
use crate::error::{Error, ErrorKind, Result};
use crate::queue::ticket::{Ticket, left_request};
use crate::sql::policy;
use crate::sql::script::terminated;
use crate::sql::statement_info::StatementInfo;
use crate::sql::tokens::busy_timeout_set;
use crate::thread::run_time::RunTime;
use crate::values::executed::BatchResult;
use crate::values::param_rows::ParamRows;
use crate::values::params::{ParamRow, Params};
use crate::workers::Answer;
use crate::workers::exclusive::connection::exclusive_policy;
use crate::workers::perform::autocommit::Execution;
use crate::workers::perform::statements::{failed_in_script, may_leave_part, need_rows, refuse_rows};
use crate::workers::work::Work;
use crate::workers::writer::commit::{commit, settle};
use crate::workers::writer::commits_seen::changes;
use crate::workers::writer::interrupts::disarm;

/// The run of one request.
struct RequestRun<'a> {
    runner: &'a mut Runner,
    ticket: &'a Arc<Ticket>,
    /// What ends it early.
    ends: &'a Arc<dyn Interrupt>,
}

impl Runner {
    /// Runs the statements of the work. Returns `None` if it needs the slot.
    pub(super) fn statements(
        &mut self,
        work: &Work,
        ticket: &Arc<Ticket>,
        ends: &Arc<dyn Interrupt>,
    ) -> Result<Option<Answer>> {
        RequestRun { runner: self, ticket, ends }.run(work)
    }
}

impl RequestRun<'_> {
    fn run(&mut self, work: &Work) -> Result<Option<Answer>> {
        match work {
            Work::Execute { text, params } => self.single(text, params.row(), Some(Output::Nothing), work),
            Work::Query { text, params, .. } => self.single(text, params.row(), Some(work.output()), work),
            Work::Batch(statements) if let Some((text, params)) = statements.only() => {
                self.single(text, params, None, work)
            }
            Work::Prepare(text) if text.tells_of_its_prepare => Ok(Some(Answer::Prepared(text.clone(), None))),
            Work::Prepare(text) => {
                let ready = self.ready(text)?;
                self.done_with(&ready);
                Ok(Some(Answer::Prepared(text.clone(), Some(ready.names.clone()))))
            }
            Work::Script(text) => self.script(text).map(|()| Some(Answer::Done)),
            Work::Many { text, rows } => self
                .with_all_rights(|run| {
                    let ready = run.ready_with_all_rights(text)?;
                    let ran = refuse_rows(&ready).and_then(|()| {
                        run.note(&ready);
                        run.runner.writer()?.connection()?.execute_many(&ready, rows)
                    });
                    run.done_with(&ready);
                    ran.map(Answer::Changes)
                })
                .map(Some),
            Work::Batch(statements) => self
                .with_all_rights(|run| {
                    let mut results = Vec::with_capacity(statements.len());
                    for (text, rows) in statements.texts() {
                        run.batch(text, rows, &mut results)?;
                    }
                    Ok(Answer::Batch(results))
                })
                .map(Some),
            Work::Blob(blob) => {
                self.arm()?;
                let used = use_blob(self.runner.writer()?.connection()?, blob)?;
                Ok(Some(Answer::Blob(Box::new(used))))
            }
            _ => Err(Error::misuse("this is not possible on a connection")),
        }
    }

    /// Runs the statements of a batch that follow each other and have one text.
    fn batch(&mut self, text: &Arc<StatementInfo>, rows: &ParamRows, results: &mut Vec<BatchResult>) -> Result<()> {
        let mut rows = rows.rows().peekable();
        while rows.peek().is_some() {
            let ready = self.ready_with_all_rights(text)?;
            self.note(&ready);
            let connection = self.runner.writer()?.connection()?;
            let ran = connection.execute_each(&ready, &mut rows, &mut |result| results.push(result));
            self.done_with(&ready);
            ran?;
        }
        Ok(())
    }

    fn ready(&mut self, text: &Arc<StatementInfo>) -> Result<Arc<CachedStatement>> {
        let (connection, facts) = self.runner.writer()?.parts()?;
        let policy = exclusive_policy(connection);
        connection.ready(text, policy, facts)
    }

    /// The same for one of several statements, which are kept as a whole: it does not end their transaction.
    fn ready_with_all_rights(&mut self, text: &Arc<StatementInfo>) -> Result<Arc<CachedStatement>> {
        let (connection, facts) = self.runner.writer()?.parts()?;
        let ready = connection.ready(text, policy::migration, facts)?;
        if ready.class.locks && self.runner.slot.is_none() {
            self.done_with(&ready);
            return Err(Error::misuse("a statement that reads has become one that writes").with_hint("try again"));
        }
        Ok(ready)
    }

    fn done_with(&mut self, ready: &CachedStatement) {
        if let Some(connection) = self.runner.open_connection() {
            connection.done_with(ready);
        }
    }

    /// Notes that the statement is about to run.
    fn note(&mut self, ready: &CachedStatement) {
        if ready.text.bracket.is_some() {
            return;
        }
        self.runner.made_temp |= ready.class.makes_temp;
        let mut effects = std::mem::take(&mut self.runner.effects);
        if let Ok(writer) = self.runner.writer() {
            effects.note(&ready.class, writer);
        }
        // A VACUUM changes the schema cookie, and tells nobody.
        effects.defined |= ready.class.locks && !ready.class.changes_rows;
        self.runner.effects = effects;
    }

    fn arm(&mut self) -> Result<()> {
        self.runner.writer()?.connection()?.sqlite.hooks().interrupts.arm(self.ends.clone());
        Ok(())
    }

    /// Runs one statement. In a transaction a write that may call code of the program has a savepoint around it.
    fn execute(&mut self, ready: &CachedStatement, params: ParamRow<'_>, output: Output<'_>) -> Result<Outcome> {
        self.note(ready);
        let run = StatementRun { statement: ready, params, output, bounds: Bounds::Armed };
        let writer = self.runner.writer()?;
        let is_inside = !writer.is_autocommit();
        let connection = writer.connection()?;
        let writes = ready.class.changes_rows || ready.class.defines;
        if !(is_inside && writes && connection.functions.may_call_foreign_code()) {
            return connection.execute(&run);
        }
        connection.control.savepoint(&mut connection.sqlite)?;
        self.arm()?;
        let ran = self.runner.writer()?.connection()?.execute(&run);
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

    /// The same for a statement that may commit by itself.
    fn execute_alone(&mut self, ready: &CachedStatement, params: ParamRow<'_>, output: Output<'_>) -> Result<Outcome> {
        let Some(shared) = self.runner.slot.as_ref().map(|slot| slot.shared.clone()) else {
            return self.execute(ready, params, output);
        };
        let before = changes(self.runner.writer()?);
        let ran = self.execute(ready, params, output);
        ran.map_err(|error| match self.runner.writer() {
            Ok(writer) if writer.is_autocommit() => {
                disarm(writer);
                settle(writer, &shared, error, &before)
            }
            _ => error,
        })
    }

    /// Runs one statement. Without an `output` it may have rows or not.
    fn single(
        &mut self,
        text: &Arc<StatementInfo>,
        params: ParamRow<'_>,
        output: Option<Output<'_>>,
        work: &Work,
    ) -> Result<Option<Answer>> {
        self.arm()?;
        if let Some(milliseconds) = busy_timeout_set(&text.sql) {
            // The busy handler is the engine's.
            self.runner.busy_timeout = Duration::from_millis(milliseconds);
            self.runner.writer()?.connection()?.stated.set_busy_timeout(milliseconds);
        }
        let ready = self.ready(text)?;
        if ready.class.locks && self.runner.slot.is_none() {
            self.done_with(&ready);
            return Ok(None);
        }
        let may = match work {
            Work::Execute { .. } => refuse_rows(&ready),
            Work::Query { .. } => need_rows(&ready),
            _ => Ok(()),
        };
        let ran = may.and_then(|()| {
            let output = output.unwrap_or_else(|| output_of(&ready));
            learn_before(self.runner.writer()?.connection()?, &ready, params)?;
            let time = RunTime::begin();
            let execution = Execution::begin(self.runner.writer()?)?;
            let ran = self.execute_alone(&ready, params, output)?;
            let writer = self.runner.writer()?;
            if ready.class.changes_rows {
                text.took(execution.end(writer)?);
            }
            learn(writer.connection()?, &ready, params, Some(time))?;
            Ok(ran)
        });
        self.done_with(&ready);
        let outcome = ran?;
        Ok(Some(match work {
            Work::Batch(_) if !matches!(outcome.result, Collected::Unmade(..)) => {
                Answer::Batch(vec![result_of(outcome)?])
            }
            _ => outcome.into(),
        }))
    }

    /// Runs one statement after the other. Each is prepared after the earlier ones ran, and what they did stays. Rows
    /// are dropped.
    fn script(&mut self, text: &Arc<StatementInfo>) -> Result<()> {
        refuse_nul(text)?;
        let sql = terminated(&text.sql);
        let mut begin = 0;
        loop {
            self.arm()?;
            let (connection, facts) = self.runner.writer()?.parts()?;
            let policy = exclusive_policy(connection);
            let first = connection.prepare_first(text, &sql[begin..], begin, policy, facts)?;
            let Some((ready, length)) = first else { return Ok(()) };
            let ran = self.execute_alone(&ready, Params::default().row(), Output::Nothing);
            if let Some(connection) = self.runner.open_connection() {
                connection.sqlite.statement(ready.id).finalize();
            }
            ran.map_err(|error| failed_in_script(error, &text.sql, begin))?;
            begin += length;
        }
    }

    /// Runs several statements, all or nothing: in a transaction, or in a savepoint of the one that is open. If the call wants
    /// to keep rows, what ran before a failure stays, unless a part of a row may be left.
    fn with_all_rights<T>(&mut self, body: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
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
        let result = body(self);
        let writer = self.runner.writer()?;
        disarm(writer);
        let keeps = |error: &Error| ticket.options.keeps_rows && !may_leave_part(writer, error);
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
                    writer.undo()?;
                }
                Err(result.err().unwrap_or_else(left_request))
            }
        }
    }
}
