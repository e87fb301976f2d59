//! One request on a connection of a caller.
//!
//! Owns: the connection with its turn, and what comes before and after the statements of a request. Runs on the thread
//! that has the connection, and blocks it for locks of other processes. Invariants: what needs the lock of writers does
//! not run without a turn; the turn stays until no transaction is open that has written. Leaves out: the statements
//! (`statements`), the order of requests (`mod`), waiting for a turn (`waits`).

use std::sync::Arc;
use std::time::{Duration, Instant};

use flatwater_sqlite::{Callbacks, Handle, Interrupt};

use super::super::connection::WriterConnection;
use super::super::effects::Effects;
use super::super::interrupts::disarm;
use super::super::known_schema::see_schema;
use super::turn::Turn;
use crate::error::{Error, Result};
use crate::queue::ticket::Ticket;
use crate::sql::class::Route;
use crate::sql::schema_seen::LeftWal;
use crate::sql::tokens::may_attach;
use crate::time::later;
use crate::workers::Answer;
use crate::workers::refusals::not_ended;
use crate::workers::work::Work;

/// A connection of a caller.
pub(super) struct Own {
    /// `None` where the database has one connection: then it is that of the turn.
    pub(super) connection: Option<Box<WriterConnection>>,
    pub(super) turn: Option<Turn>,
    /// Reads and open transactions need the turn too: the file has no WAL.
    always: bool,
    /// What was done since no transaction was open and no turn taken.
    pub(super) effects: Effects,
    was_open: bool,
    /// How long it waits for the turn and for locks.
    pub(super) busy_timeout: Duration,
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
    pub(super) fn new(connection: Option<WriterConnection>, always: bool, busy_timeout: Duration) -> Self {
        Self {
            connection: connection.map(Box::new),
            turn: None,
            always,
            effects: Effects::default(),
            was_open: false,
            busy_timeout,
        }
    }

    /// Returns the connection, which may not be open.
    pub(super) fn writer(&mut self) -> Result<&mut WriterConnection> {
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
    pub(super) fn run(
        &mut self,
        work: &Work,
        ticket: &Arc<Ticket>,
        ends: &Arc<dyn Interrupt>,
        callbacks: Option<Callbacks>,
    ) -> Step {
        if self.turn.is_none() && (self.always || needs_turn(work)) {
            return Step::NeedsTurn;
        }
        let result = self.begin(work, ticket).and_then(|()| {
            let calls = callbacks.is_some();
            self.call(callbacks)?;
            let result = self.statements(work, ticket, ends);
            self.call(calls.then(Callbacks::default))?;
            result
        });
        if let Ok(writer) = self.writer() {
            disarm(writer);
            if work.texts().any(|text| may_attach(&text.sql))
                && let Some(connection) = &mut writer.connection
            {
                connection.attached.look_again(&connection.sqlite);
            }
        }
        match result {
            Ok(None) => Step::NeedsTurn,
            Ok(Some(answer)) => Step::Answered(Ok(answer)),
            Err(error) => Step::Answered(Err(work.explain(error.timed(ticket)))),
        }
    }

    /// Opens the connection, and lets it wait for locks.
    fn begin(&mut self, work: &Work, ticket: &Arc<Ticket>) -> Result<()> {
        let (has_turn, busy_timeout) = (self.turn.is_some(), self.busy_timeout);
        let writer = self.writer()?;
        if std::mem::take(&mut writer.is_suspect) {
            // Its cache may have pages that were never committed.
            writer.replace();
            return Err(not_ended());
        }
        let end = later(Instant::now(), busy_timeout);
        writer.busy_timeout.until(ticket.deadline.map_or(end, |deadline| end.min(deadline)), ticket.clone());
        if has_turn && let Some(refusal) = writer.refusal().filter(|_| !work.describe().only_reads()) {
            return Err(refusal);
        }
        let connection = writer.connection()?;
        connection.lengths.restore(&mut connection.sqlite);
        self.was_open = true;
        Ok(())
    }

    /// Has the caller's callbacks called. What was prepared before did not ask its authorizer.
    fn call(&mut self, callbacks: Option<Callbacks>) -> Result<()> {
        let Some(callbacks) = callbacks else { return Ok(()) };
        if callbacks.authorize.is_some() {
            self.forget_statements();
        }
        if let Some(connection) = &self.writer()?.connection {
            connection.sqlite.hooks().call(callbacks);
        }
        Ok(())
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

    /// Reads the schema if it may differ from the one that the connection has seen, so that the next statement may be
    /// short.
    pub(super) fn see_schema(&mut self, left: &LeftWal) {
        let has_turn = self.turn.is_some();
        if let Some(own) = self.connection.as_mut().filter(|own| own.is_autocommit() || has_turn) {
            see_schema(own, left);
        }
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
