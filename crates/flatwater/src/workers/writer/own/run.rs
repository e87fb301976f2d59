//! One request on a connection of a caller.
//!
//! Owns: the connection with its turn, and running the statements of one request. Runs on the thread that has the connection,
//! and blocks it for locks of other processes. Invariants: what needs the lock of writers does not run without a turn; the
//! turn stays until no transaction is open that has written; after a commit that may have failed, its remains are overwritten
//! while the turn is there. Leaves out: the order of requests (`mod`), waiting for a turn (`waits`).

use std::sync::Arc;
use std::time::Instant;

use flatwater_sqlite::{Handle, Interrupt};

use super::super::commit::{commit, settle};
use super::super::commits_seen::changes;
use super::super::connection::WriterConnection;
use super::super::effects::Effects;
use super::super::exclusive::whole_policy;
use super::super::failed_commit::Changes;
use super::super::interrupts::disarm;
use super::super::perform::{need_rows, refuse_rows};
use super::turn::Turn;
use crate::connection::Connection;
use crate::connection::run::blobs::use_blob;
use crate::connection::run::execute::{Bounds, Collected, Outcome, Output, StatementRun};
use crate::connection::run::prepare::refuse_nul;
use crate::connection::run::statement_cache::CachedStatement;
use crate::error::location::in_script;
use crate::error::{Error, Result};
use crate::queue::ticket::{Ticket, left_request};
use crate::sql::catalogue::StatementInfo;
use crate::sql::class::Route;
use crate::sql::policy;
use crate::sql::terminated::terminated;
use crate::values::executed::BatchResult;
use crate::values::params::{ParamRow, Params};
use crate::workers::Answer;
use crate::workers::work::Work;

/// A connection of a caller.
pub(super) struct Own {
    /// `None` where the database has one connection: then it is that of the turn.
    connection: Option<Box<WriterConnection>>,
    pub(super) turn: Option<Turn>,
    /// Reads and open transactions need the turn too: the file has no WAL.
    always: bool,
    /// What was done since no transaction was open and no turn taken.
    effects: Effects,
    was_open: bool,
}

/// What became of a request.
pub(super) enum Step {
    Answered(Result<Answer>),
    /// It did nothing, and needs the turn.
    NeedsTurn,
}

/// What a connection says of itself when nothing runs on it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct State {
    pub(super) in_transaction: bool,
    is_writing: bool,
    pub(super) total_changes: Option<u64>,
    /// It was given up, and with it what it had.
    pub(super) is_gone: bool,
}

impl Own {
    pub(super) fn new(connection: Option<WriterConnection>, always: bool) -> Self {
        Self { connection: connection.map(Box::new), turn: None, always, effects: Effects::default(), was_open: false }
    }

    /// Returns the connection, which may not be open.
    fn writer(&mut self) -> Result<&mut WriterConnection> {
        match (&mut self.connection, &mut self.turn) {
            (Some(own), _) => Ok(own),
            (None, Some(turn)) => Ok(turn.writer()),
            (None, None) => Err(Error::misuse("the connection has no turn; please report it")),
        }
    }

    /// Takes the turn: what changes from here on is recorded.
    pub(super) fn takes(&mut self, turn: Turn) {
        if let Some(own) = &mut self.connection {
            turn.shared.record(own);
            if let Some(listener) = turn.shared.listener.get() {
                own.limit_pages(listener.page_limit());
            }
        }
        self.turn = Some(turn);
    }

    /// Runs the request. `ends` may interrupt it.
    pub(super) fn run(&mut self, work: &Work, ticket: &Arc<Ticket>, ends: &Arc<dyn Interrupt>) -> Step {
        if self.turn.is_none() && (self.always || needs_turn(work)) {
            return Step::NeedsTurn;
        }
        let result = self.begin(work, ticket).and_then(|before| {
            let result = self.statements(work, ticket, ends);
            if let Ok(writer) = self.writer() {
                disarm(writer);
            }
            result.map_err(|error| self.settle(error, before.as_ref()))
        });
        match result {
            Ok(None) => Step::NeedsTurn,
            Ok(Some(answer)) => Step::Answered(Ok(answer)),
            Err(error) => Step::Answered(Err(work.explain(error.timed(ticket)))),
        }
    }

    /// Opens the connection. Returns what shows a commit, if one may come.
    fn begin(&mut self, work: &Work, ticket: &Arc<Ticket>) -> Result<Option<Changes>> {
        let has_turn = self.turn.is_some();
        let writer = self.writer()?;
        writer.wait_for_locks(Instant::now(), ticket);
        if has_turn && let Some(refusal) = writer.refusal().filter(|_| !work.describe().only_reads()) {
            return Err(refusal);
        }
        let connection = writer.connection()?;
        connection.lengths.restore(&mut connection.sqlite);
        self.was_open = true;
        let writer = self.writer()?;
        Ok(has_turn.then(|| changes(writer)))
    }

    /// The error of a statement that may be one of its commit.
    fn settle(&mut self, error: Error, before: Option<&Changes>) -> Error {
        let (Some(before), Some(turn)) = (before, &self.turn) else { return error };
        let shared = turn.shared.clone();
        match self.writer() {
            Ok(writer) if writer.is_autocommit() => settle(writer, &shared, error, before),
            _ => error,
        }
    }

    /// Returns `None` if it needs the turn.
    fn statements(&mut self, work: &Work, ticket: &Arc<Ticket>, ends: &Arc<dyn Interrupt>) -> Result<Option<Answer>> {
        match work {
            Work::Execute { text, params } => self.single(text, params, Some(Output::Nothing), ends, work),
            Work::Query { text, params, .. } => self.single(text, params, Some(work.output()), ends, work),
            Work::Batch(statements) if let [(text, params)] = &**statements => {
                self.single(text, params, None, ends, work)
            }
            Work::Prepare(text) if text.tells_of_its_prepare => Ok(Some(Answer::Prepared(text.clone()))),
            Work::Prepare(text) => {
                let ready = self.ready(text)?;
                self.done_with(&ready);
                Ok(Some(Answer::Prepared(text.clone())))
            }
            Work::Script(text) => self.script(text, ends).map(|()| Some(Answer::Done)),
            Work::Many { text, rows } => self
                .whole(ticket, ends, |own| {
                    let ready = own.ready_in_whole(text)?;
                    let ran = refuse_rows(&ready).and_then(|()| {
                        own.note(&ready);
                        own.writer()?.connection()?.execute_many(&ready, rows)
                    });
                    own.done_with(&ready);
                    ran.map(Answer::Changes)
                })
                .map(Some),
            Work::Batch(statements) => self
                .whole(ticket, ends, |own| {
                    let results = statements.iter().map(|(text, params)| {
                        let ready = own.ready_in_whole(text)?;
                        let ran = own.execute(&ready, params.row(), output_of(&ready));
                        own.done_with(&ready);
                        ran.map(result_of)
                    });
                    results.collect::<Result<_>>().map(Answer::Batch)
                })
                .map(Some),
            Work::Blob(blob) => {
                self.arm(ends)?;
                let used = use_blob(self.writer()?.connection()?, blob)?;
                Ok(Some(Answer::Blob(Box::new(used))))
            }
            _ => Err(Error::misuse("this is not possible on a connection")),
        }
    }

    fn ready(&mut self, text: &Arc<StatementInfo>) -> Result<Arc<CachedStatement>> {
        let (connection, facts) = self.writer()?.parts()?;
        let policy = whole_policy(connection);
        connection.ready(text, policy, facts)
    }

    /// The same for one of several statements, which are kept as a whole: it does not end their transaction.
    fn ready_in_whole(&mut self, text: &Arc<StatementInfo>) -> Result<Arc<CachedStatement>> {
        let (connection, facts) = self.writer()?.parts()?;
        let ready = connection.ready(text, policy::migration, facts)?;
        if ready.class.locks && self.turn.is_none() {
            self.done_with(&ready);
            return Err(Error::misuse("a statement that reads has become one that writes").with_hint("try again"));
        }
        Ok(ready)
    }

    fn done_with(&mut self, ready: &CachedStatement) {
        if let Ok(connection) = self.writer().and_then(WriterConnection::connection) {
            connection.done_with(ready);
        }
    }

    /// Notes that the statement is about to run.
    fn note(&mut self, ready: &CachedStatement) {
        let mut effects = std::mem::take(&mut self.effects);
        if let Ok(writer) = self.writer() {
            effects.note(&ready.class, writer);
        }
        self.effects = effects;
    }

    fn arm(&mut self, ends: &Arc<dyn Interrupt>) -> Result<()> {
        self.writer()?.connection()?.sqlite.hooks().interrupts.arm(ends.clone());
        Ok(())
    }

    fn execute(&mut self, ready: &CachedStatement, params: ParamRow<'_>, output: Output<'_>) -> Result<Outcome> {
        self.note(ready);
        let run = StatementRun { statement: ready, params, output, bounds: Bounds::Armed };
        self.writer()?.connection()?.execute(&run)
    }

    /// Runs one statement. Without an `output` it may have rows or not.
    fn single(
        &mut self,
        text: &Arc<StatementInfo>,
        params: &Params,
        output: Option<Output<'_>>,
        ends: &Arc<dyn Interrupt>,
        work: &Work,
    ) -> Result<Option<Answer>> {
        self.arm(ends)?;
        let ready = self.ready(text)?;
        if ready.class.locks && self.turn.is_none() {
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
            self.execute(&ready, params.row(), output)
        });
        self.done_with(&ready);
        let outcome = ran?;
        Ok(Some(match work {
            Work::Batch(_) => Answer::Batch(vec![result_of(outcome)]),
            _ => outcome.into(),
        }))
    }

    /// Runs one statement after the other. Each is prepared after the earlier ones ran, and what they did stays. Rows are
    /// dropped.
    fn script(&mut self, text: &Arc<StatementInfo>, ends: &Arc<dyn Interrupt>) -> Result<()> {
        refuse_nul(text)?;
        let sql = terminated(&text.sql);
        let mut begin = 0;
        loop {
            self.arm(ends)?;
            let (connection, facts) = self.writer()?.parts()?;
            let policy = whole_policy(connection);
            let first = connection.prepare_first(text, &sql[begin..], begin, policy, facts)?;
            let Some((ready, length)) = first else { return Ok(()) };
            let ran = self.execute(&ready, Params::default().row(), Output::Nothing);
            if let Ok(connection) = self.writer().and_then(WriterConnection::connection) {
                connection.sqlite.statement(ready.id).finalize();
            }
            ran.map_err(|error| {
                let error = in_script(error, &text.sql, begin);
                if error.sqlite_code().is_none() { error.with_hint("a script has no parameters") } else { error }
            })?;
            begin += length;
        }
    }

    /// Runs several statements, all or nothing: in a transaction, or in a savepoint of the one that is open.
    fn whole<T>(
        &mut self,
        ticket: &Arc<Ticket>,
        ends: &Arc<dyn Interrupt>,
        body: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let shared = self.turn.as_ref().map(|turn| turn.shared.clone());
        let writer = self.writer()?;
        let is_outermost = writer.is_autocommit();
        let Connection { control, sqlite, .. } = writer.connection()?;
        match &shared {
            _ if !is_outermost => control.savepoint(sqlite)?,
            Some(_) => control.begin(sqlite)?,
            None => control.begin_read(sqlite)?,
        }
        self.arm(ends)?;
        let result = body(self);
        let writer = self.writer()?;
        disarm(writer);
        let is_kept = result.is_ok() && !writer.is_autocommit();
        match shared {
            Some(shared) if is_outermost && is_kept => commit(writer, &shared, Some(ticket)).and(result),
            None if is_outermost => {
                // It only read.
                writer.rollback();
                result
            }
            _ if !is_outermost && is_kept && ticket.finishes() => {
                let Connection { control, sqlite, .. } = writer.connection()?;
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

    /// Called when a request is over: gives the turn back, if no transaction needs it.
    pub(super) fn rest(&mut self) -> State {
        let (always, was_open) = (self.always, self.was_open);
        let state = self.writer().map_or_else(
            |_| State::default(),
            |writer| {
                let handle = writer.connection.as_ref().map(|connection| connection.sqlite.handle());
                State {
                    in_transaction: handle.is_some_and(|handle| !handle.is_autocommit()),
                    is_writing: handle.is_some_and(Handle::is_writing),
                    total_changes: handle.map(Handle::total_changes),
                    is_gone: was_open && handle.is_none(),
                }
            },
        );
        if !state.in_transaction && self.effects.go_beyond_tables() {
            self.forget_statements();
        }
        if state.in_transaction && (always || state.is_writing) {
            return state;
        }
        if let Some(turn) = self.turn.take() {
            turn.give_back(self.connection.as_deref_mut(), &self.effects);
        }
        if !state.in_transaction {
            self.effects = Effects::default();
        }
        state
    }

    /// They may have been prepared under a schema that was not committed.
    fn forget_statements(&mut self) {
        if let Ok(writer) = self.writer()
            && let Some(connection) = &mut writer.connection
        {
            connection.statements.clear(&mut connection.sqlite);
        }
    }

    /// Rolls back the open transaction.
    pub(super) fn roll_back(&mut self) -> State {
        if let Ok(writer) = self.writer() {
            disarm(writer);
            writer.rollback();
        }
        self.rest()
    }

    /// Rolls back, closes the connection, and gives the turn back.
    pub(super) fn close(mut self) {
        self.roll_back();
        drop(self.connection.take());
    }
}

/// Returns true if the work needs the turn whatever its texts are, or if that is not known.
fn needs_turn(work: &Work) -> bool {
    match work {
        Work::Many { .. } | Work::Script(_) => true,
        Work::Batch(statements) if statements.len() == 1 => false,
        Work::Batch(statements) => !statements.iter().all(|(text, _)| text.route() == Some(Route::Read)),
        Work::Blob(blob) => !blob.only_reads(),
        _ => false,
    }
}

fn output_of(ready: &CachedStatement) -> Output<'static> {
    if ready.class.columns == 0 { Output::Nothing } else { Output::Rows(usize::MAX) }
}

fn result_of(outcome: Outcome) -> BatchResult {
    let rows = if let Collected::Rows(rows) = outcome.result { Some(rows) } else { None };
    BatchResult { executed: outcome.executed, rows }
}
