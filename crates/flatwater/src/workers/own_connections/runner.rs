//! What runs the requests of a connection of a caller: that connection, and the writer slot while it has it.
//!
//! Owns: both, and what comes before and after the statements of a request. Runs on the thread that has the connection, and
//! blocks it for locks of other processes. Invariants: what needs the lock of writers does not run without the slot; the
//! slot stays until no transaction is open that has written. Leaves out: the statements (`statements`), the order of requests
//! and their callers (`own_connections`), waiting for the slot (`waits`).

use std::sync::Arc;
use std::time::{Duration, Instant};

use flatwater_sqlite::{Callbacks, Handle, Interrupt, Sqlite};

use super::lent_slot::LentSlot;
use crate::connection::EngineConnection;
use crate::connection::run::statement_cache::CachedStatement;
use crate::options::{Durability, Options};
use crate::queue::ticket::Ticket;
use crate::workers::Answer;
use crate::workers::shared_errors::lost_meanwhile;
use crate::workers::work::{Ours, Unsettled, Work};
use crate::workers::writer::commit::settle_unsettled;
use crate::workers::writer::effects::Effects;
use crate::workers::writer::inline_access::unlimit;
use crate::workers::writer::interrupts::disarm;
use crate::workers::writer::known_schema::{may_write_virtual_tables, see_schema};
use crate::workers::writer::writer_connection::WriterConnection;
use flatwater_base::error::{Error, ErrorCode, Result};
use flatwater_base::time::later;
use flatwater_sql::catalogue::LeftWal;
use flatwater_sql::class::Route;
use flatwater_sql::tokens::{may_attach, may_set};

/// What runs the requests of one connection of a caller.
pub(super) struct Runner {
    /// `None` where the database has one connection: then it is the writer's, which the slot lends.
    pub(super) connection: Option<Box<WriterConnection>>,
    pub(super) slot: Option<LentSlot>,
    /// Reads and open transactions need the slot too: the file has no WAL.
    always: bool,
    /// What was done since no transaction was open and no slot taken.
    pub(super) effects: Effects,
    was_open: bool,
    /// How long it waits for the slot and for locks.
    pub(super) busy_timeout: Duration,
    /// How long the writes of the open transaction took, after its first statement.
    pub(super) worked: Duration,
    /// A commit syncs the WAL, or copies it.
    pub(super) commits_slowly: bool,
    /// It has TEMP objects, or had some.
    pub(super) made_temp: bool,
}

/// What became of a request.
pub(super) enum Step {
    Answered(Result<Answer>),
    /// It did nothing, and needs the slot.
    NeedsSlot,
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

impl Runner {
    pub(super) fn new(connection: Option<WriterConnection>, always: bool, options: &Options) -> Self {
        Self {
            connection: connection.map(Box::new),
            slot: None,
            always,
            effects: Effects::default(),
            was_open: false,
            busy_timeout: options.busy_timeout,
            worked: Duration::ZERO,
            commits_slowly: options.durability != Durability::Normal,
            made_temp: false,
        }
    }

    /// Returns the connection, which may not be open.
    pub(super) fn writer(&mut self) -> Result<&mut WriterConnection> {
        match (&mut self.connection, &mut self.slot) {
            (Some(own), _) => Ok(own),
            (None, Some(slot)) => Ok(slot.writer()),
            (None, None) => Err(Error::new(ErrorCode::Internal, "the connection has no slot; please report it")),
        }
    }

    /// Returns the connection, if it is open: it is not after a failure that gave it up.
    pub(super) fn open_connection(&mut self) -> Option<&mut EngineConnection> {
        self.writer().ok()?.connection.as_mut()
    }

    /// Takes the slot: what changes from here on is recorded.
    pub(super) fn takes(&mut self, slot: LentSlot) {
        if let Some(own) = &mut self.connection {
            slot.shared.record(own);
            if let Some(listener) = slot.shared.listener.get() {
                own.limit_pages(listener.page_limit());
            }
        }
        self.slot = Some(slot);
    }

    /// Runs the request. `ends` may interrupt it.
    pub(super) fn run(
        &mut self,
        work: &Work,
        ticket: &Arc<Ticket>,
        ends: &Arc<dyn Interrupt>,
        callbacks: Option<Callbacks>,
    ) -> Step {
        if let Work::Ours(Ours::Settle(unsettled)) = work {
            return Step::Answered(Err(self.settle(unsettled)));
        }
        if self.slot.is_none() && (self.always || needs_slot(work)) {
            return Step::NeedsSlot;
        }
        let was_autocommit = !self.is_in_transaction();
        let began = Instant::now();
        let result = self.begin(work, ticket).and_then(|()| {
            let calls = callbacks.is_some();
            self.call(callbacks)?;
            let result = self.statements(work, ticket, ends);
            self.call(calls.then(Callbacks::default))?;
            result
        });
        if let Ok(writer) = self.writer() {
            disarm(writer);
        }
        let is_open = self.is_in_transaction();
        if !was_autocommit && work.describe().writes() && work.texts().all(|text| text.bracket.is_none()) {
            self.worked += began.elapsed();
            self.note_virtual_tables();
        }
        self.look_again(work);
        match result {
            // A page of the schema could not be read.
            Ok(_) if is_open && !self.is_in_transaction() => Step::Answered(Err(work.explain(lost_meanwhile()))),
            Ok(None) => Step::NeedsSlot,
            Ok(Some(answer)) => Step::Answered(Ok(answer)),
            Err(error) => Step::Answered(Err(work.explain(ticket.timed(error)))),
        }
    }

    fn is_in_transaction(&self) -> bool {
        self.connection.as_ref().is_some_and(|own| !own.is_autocommit())
    }

    /// Finds out what became of a commit that failed on its caller's thread, and returns the error for its caller.
    fn settle(&mut self, unsettled: &Unsettled) -> Error {
        let Some(shared) = self.slot.as_ref().map(|slot| slot.shared.clone()) else { return unsettled.error.clone() };
        let Ok(writer) = self.writer() else { return unsettled.error.clone() };
        unlimit(writer);
        writer.wait_for_locks_for_all();
        settle_unsettled(writer, &shared, unsettled)
    }

    /// Called after a request: sees what its texts may have changed of the connection.
    fn look_again(&mut self, work: &Work) {
        let may = |f: fn(&str) -> bool| work.texts().any(|text| f(&text.sql));
        let Some(connection) = self.open_connection() else { return };
        if may(may_attach) {
            connection.attached.look_again(&connection.sqlite);
        }
        if may(may_set) {
            self.commits_slowly = !commits_shortly(&connection.sqlite).unwrap_or(false);
        }
    }

    /// Notes that the statement is about to run.
    pub(super) fn note(&mut self, ready: &CachedStatement) {
        if ready.text.bracket.is_some() {
            return;
        }
        self.made_temp |= ready.class.makes_temp;
        let mut effects = std::mem::take(&mut self.effects);
        if let Ok(writer) = self.writer() {
            effects.note(&ready.class, writer);
        }
        // A VACUUM changes the schema cookie, and tells nobody.
        effects.defined |= ready.class.locks && !ready.class.changes_rows;
        self.effects = effects;
    }

    /// Notes that a statement which may write ran here in a transaction.
    fn note_virtual_tables(&mut self) {
        let (made_temp, is_noted) = (self.made_temp, self.slot.is_none() || self.effects.go_beyond_tables());
        let Some(own) = self.connection.as_deref_mut().filter(|_| !is_noted) else { return };
        // Those of the TEMP schema are not looked for.
        self.effects.wrote_virtual.get_or_insert_with(|| made_temp || may_write_virtual_tables(own));
    }

    /// Opens the connection, and lets it wait for locks.
    fn begin(&mut self, work: &Work, ticket: &Arc<Ticket>) -> Result<()> {
        let (has_slot, busy_timeout) = (self.slot.is_some(), self.busy_timeout);
        let writer = self.writer()?;
        let end = later(Instant::now(), busy_timeout);
        writer.busy_timeout.until(ticket.deadline.map_or(end, |deadline| end.min(deadline)), ticket.clone());
        if has_slot && let Some(refusal) = writer.refusal().filter(|_| !work.describe().only_reads()) {
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

    /// Called when a request is over: gives the slot back, if no transaction needs it.
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
        if let Some(slot) = self.slot.take() {
            slot.give_back(self.connection.as_deref_mut(), &self.effects);
        }
        if !state.in_transaction {
            self.effects = Effects::default();
            self.worked = Duration::ZERO;
        }
        state
    }

    /// Reads the schema if it may differ from the one that the connection has seen, so that the next statement may be
    /// short.
    pub(super) fn see_schema(&mut self, left: &LeftWal) {
        let has_slot = self.slot.is_some();
        if let Some(own) = self.connection.as_mut().filter(|own| own.is_autocommit() || has_slot) {
            see_schema(own, left);
        }
    }

    /// They may have been prepared under a schema that was not committed.
    fn forget_statements(&mut self) {
        if let Some(connection) = self.open_connection() {
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

    /// Rolls back, closes the connection, and gives the slot back.
    pub(super) fn close(mut self) {
        self.roll_back();
        drop(self.connection.take());
    }
}

/// Returns true if the work needs the slot whatever its texts are, or if that is not known.
fn needs_slot(work: &Work) -> bool {
    match work {
        Work::Many { .. } | Work::Script(_) => true,
        Work::Batch(statements) => !statements.texts().iter().all(|(text, _)| text.route() == Some(Route::Read)),
        Work::Blob(blob) => !blob.only_reads(),
        _ => false,
    }
}

/// Returns true if a commit neither syncs the WAL nor copies it.
fn commits_shortly(sqlite: &Sqlite) -> rusqlite::Result<bool> {
    let is_at_most =
        |pragma: &str, most: i64| sqlite.rusqlite().query_row(pragma, [], |row| Ok(row.get::<_, i64>(0)? <= most));
    Ok(is_at_most("PRAGMA main.synchronous", 1)? && is_at_most("PRAGMA wal_autocheckpoint", 0)?)
}
