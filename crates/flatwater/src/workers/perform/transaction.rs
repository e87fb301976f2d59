//! Serving an open transaction: the requests of its caller one by one, until there is none or it ends.
//!
//! Owns: BEGIN IMMEDIATE of an interactive transaction, its messages, and its end. Runs on the writer's thread, which sleeps
//! or ends while the transaction, which holds the slot, has no message. Invariants: however it ends (commit, rollback, handle
//! dropped, idle, lost, closed), no transaction is open afterwards and every request is answered; a failed statement leaves
//! nothing behind, unless its own conflict clause says FAIL, and a part of a row never; transaction control runs disarmed. Leaves
//! out: the inbox (`kept::transaction`).

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::frame::{Rules, may_leave_part, perform_in};
use crate::events::statement_event::ExecutedOn;
use crate::queue::ticket::{Ticket, left_request};
use crate::workers::Answer;
use crate::workers::kept::inbox::End;
use crate::workers::kept::transaction::{KeptTransaction, Message, Undo};
use crate::workers::open_transaction::{TransactionGuard, answer_after};
use crate::workers::outbox::Outbox;
use crate::workers::request::Request;
use crate::workers::savepoint_stack::{LONG, Stack};
use crate::workers::shared_errors::fault;
use crate::workers::work::{Ours, SavepointWork, Work};
use crate::workers::writer::WriterShared;
use crate::workers::writer::commit::{commit, settle_unsettled};
use crate::workers::writer::effects::Effects;
use crate::workers::writer::inline_access::unlimit;
use crate::workers::writer::interrupts::{arm, disarm};
use crate::workers::writer::known_schema::{may_write_virtual_tables, see_schema};
use crate::workers::writer::open_state::{OnWriter, OpenState, WriterTransaction};
use crate::workers::writer::slot::HeldConnection;
use crate::workers::writer::writer_connection::{WriterConnection, tell_rowid};
use flatwater_base::error::{Error, ErrorCode, Result};
use flatwater_sql::tokens::has_aborting_conflict_clause;

/// Begins the transaction that `request` asks for, and serves it.
pub(crate) fn serve(held: &mut HeldConnection, shared: &WriterShared, request: Request, outbox: &mut Outbox<'_>) {
    shared.ongoing.note_running(&request.ticket, &request.work);
    let started = request.ticket.note_start(ExecutedOn::Writer, || held.busy_timeout.waited());
    let begun = begin(held, shared, &request.ticket);
    if let (Ok(()), Work::Begin(rowid)) = (&begun, &request.work) {
        tell_rowid(held, *rowid);
    }
    request.ticket.note_end(started, || held.busy_timeout.waited());
    if let Err(error) = begun {
        let error = shared.ended(request.ticket.timed(error), &request.ticket);
        return outbox.finish(request, Err(error));
    }
    let transaction = KeptTransaction::new(&shared.context.options, OnWriter(shared.this.clone()), None);
    let at = OpenState::new(held.lend());
    shared.note_open(&transaction);
    let open = ServedTransaction { held, shared, transaction: transaction.clone(), at: Some(at), rests: false };
    // If the caller is gone, the guard is returned and dropped at once, which ends the transaction below.
    outbox.finish(request, Ok(Answer::Transaction(TransactionGuard(transaction))));
    serve_messages(open, None, outbox);
}

/// Serves the messages of the open transaction, which has the connection.
pub(crate) fn go_on(held: &mut HeldConnection, shared: &WriterShared, outbox: &mut Outbox<'_>) {
    let Some(transaction) = held.lent_to().cloned() else { return };
    let Some((at, message)) = transaction.take() else { return };
    serve_messages(ServedTransaction { held, shared, transaction, at: Some(at), rests: false }, Some(message), outbox);
}

/// Serves messages until there is none, or the transaction is over. The last answer is delivered afterwards, when the
/// transaction or the slot is free for what its caller does next. Otherwise one message would lead to the next:
///
/// ```text
/// writer's thread                         caller
/// answers, and wakes the caller
///                                         finds the transaction still served: its next short step is a message
/// takes it, answers, wakes the caller, ...
/// ```
fn serve_messages(mut open: ServedTransaction<'_>, first: Option<Message>, outbox: &mut Outbox<'_>) {
    let shared = open.shared;
    let mut next = first;
    let end = loop {
        let Some(message) = next.take().or_else(|| open.next()) else { return };
        outbox.deliver();
        let Some(at) = &mut open.at else { return };
        unlimit(&mut at.writer);
        if let Some(end) = serve_message(at, shared, message, outbox) {
            break end;
        }
    };
    let effects = open.take_back();
    let held = &mut *open.held;
    disarm(held);
    held.rollback();
    effects.clean_up(held, &shared.context.catalogue);
    let (end, refused) = open.transaction.close(end);
    if let End::Lost(error) = &end {
        held.room.note(error);
    }
    shared.make_noted_room(held);
    refuse_after(refused, &end, outbox);
}

/// Answers the requests that a transaction will not serve any more.
pub(crate) fn refuse_after(refused: Vec<Request>, end: &End, outbox: &mut Outbox<'_>) {
    for request in refused {
        let answer = answer_after(end, &request.work);
        outbox.finish(request, answer);
    }
}

/// An open transaction that the writer's thread serves. If that panics, the connection is taken back, and the transaction
/// closed, so that no caller waits for its answers.
struct ServedTransaction<'a> {
    held: &'a mut HeldConnection,
    shared: &'a WriterShared,
    transaction: Arc<WriterTransaction>,
    /// `None` when the transaction has it, or the token again.
    at: Option<OpenState>,
    /// The transaction goes on without this thread.
    rests: bool,
}

impl ServedTransaction<'_> {
    /// Returns the next message, or lets the transaction rest. From then on its caller's thread may end it.
    fn next(&mut self) -> Option<Message> {
        let next = self.transaction.next(self.at.take()?);
        self.rests = next.is_none();
        next.map(|(at, message)| {
            self.at = Some(at);
            message
        })
    }

    /// Takes the connection back, and returns what the statements did.
    fn take_back(&mut self) -> Effects {
        let Some(OpenState { writer, effects, .. }) = self.at.take() else { return Effects::default() };
        self.held.put_back(writer);
        effects
    }
}

impl Drop for ServedTransaction<'_> {
    fn drop(&mut self) {
        if !self.rests {
            self.take_back();
            // It has its end already, unless this thread panics.
            self.transaction.close(End::Lost(fault()));
        }
    }
}

fn begin(writer: &mut WriterConnection, shared: &WriterShared, ticket: &Arc<Ticket>) -> Result<()> {
    writer.wait_for_locks(Instant::now(), ticket);
    shared.twice(writer, WriterConnection::begin)?;
    // From here on no other connection can change the schema.
    see_schema(writer, &shared.context.catalogue.left);
    Ok(())
}

/// Serves one message. Returns how the transaction ended, if it did.
fn serve_message(at: &mut OpenState, shared: &WriterShared, message: Message, outbox: &mut Outbox<'_>) -> Option<End> {
    let OpenState { writer, effects, savepoints, worked } = at;
    let (request, place) = match message {
        Message::End => return Some(End::Finished),
        Message::Aside(Undo(mut place)) => {
            let innermost = place.pop();
            let is_undone = !innermost.is_some_and(|number| savepoints.has(number))
                || savepoints.unwind(&mut **writer, &place, u64::MAX).is_ok();
            let failed = || Error::new(ErrorCode::Internal, "a savepoint could not be undone");
            return (!is_undone).then(|| End::Lost(failed()));
        }
        Message::Request(request, place) => (*request, place),
    };
    if !request.ticket.start() {
        shared.context.recorder.counts.abandoned.count();
        return None;
    }
    if let Work::Ours(Ours::Settle(unsettled)) = &request.work {
        shared.context.recorder.commit_failed(&unsettled.error);
        writer.wait_for_locks_for_all();
        let error = settle_unsettled(writer, shared, unsettled);
        let answer = shared.ended(error.clone(), &request.ticket);
        outbox.finish(request, Err(answer));
        return Some(End::Lost(error));
    }
    let is_end = request.work.describe().ends();
    shared.ongoing.note_running(&request.ticket, &request.work);
    let started = request.ticket.note_start(ExecutedOn::Writer, || writer.busy_timeout.waited());
    let began = Instant::now();
    let result = if matches!(request.work, Work::Savepoint(SavepointWork::Undo)) && !savepoints.has_place(&place) {
        // It was undone with one around it.
        Ok(Answer::Done)
    } else {
        savepoints
            .unwind(&mut **writer, &place, request.ticket.options.ended_nested)
            .and_then(|()| step(writer, effects, shared, &request, savepoints))
            .map_err(|error| shared.ended(error, &request.ticket))
            .inspect_err(|error| writer.room.note(error))
    };
    request.ticket.note_end(started, || writer.busy_timeout.waited());
    if request.work.describe().writes() {
        *worked += began.elapsed();
        if !effects.go_beyond_tables() {
            // Only the transaction itself can make one.
            effects.wrote_virtual.get_or_insert_with(|| may_write_virtual_tables(writer));
        }
    }
    let by_statement = || Error::new(ErrorCode::EndedTransaction, "a statement ended the transaction");
    let lost = writer.is_autocommit().then(|| result.as_ref().err().cloned().unwrap_or_else(by_statement));
    // Its COMMIT failed, and may be tried again.
    let stays = request.ticket.options.keeps_open && lost.is_none();
    outbox.finish(request, result);
    match lost {
        _ if is_end && !stays => Some(End::Finished),
        Some(error) => Some(End::Lost(error)),
        None => None,
    }
}

fn step(
    writer: &mut WriterConnection,
    effects: &mut Effects,
    shared: &WriterShared,
    request: &Request,
    open: &mut Stack,
) -> Result<Answer> {
    let ticket = &request.ticket;
    match &request.work {
        Work::Commit => {
            writer.wait_for_locks(Instant::now(), ticket);
            commit(writer, shared, Some(ticket)).map(|()| Answer::Done).map_err(|error| ticket.timed(error))
        }
        work if work.describe().is_control() && !ticket.finishes() => Err(left_request()),
        Work::Rollback => {
            writer.rollback();
            Ok(Answer::Done)
        }
        Work::Savepoint(step) => open.step(writer, step),
        work => {
            open.ran(LONG, Duration::ZERO);
            statement(writer, effects, work, ticket)
        }
    }
}

/// Runs the statements of one request inside a savepoint, since SQLite by itself does not undo every failed statement.
fn statement(
    writer: &mut WriterConnection,
    effects: &mut Effects,
    work: &Work,
    ticket: &Arc<Ticket>,
) -> Result<Answer> {
    // Another connection may hold the lock of an attached file.
    writer.wait_for_locks(Instant::now(), ticket);
    let connection = writer.connection()?;
    connection.control.savepoint(&mut connection.sqlite)?;
    arm(writer, ticket);
    let rules = if ticket.options.read_only { Rules::Snapshot } else { Rules::Transaction };
    let mut result = perform_in(writer, effects, rules, work);
    disarm(writer);
    let may_keep = |error: &Error| (ticket.options.keeps_rows || keeps_part(work)) && !may_leave_part(writer, error);
    let mut keeps = result.as_ref().err().is_none_or(may_keep);
    if keeps
        && !writer.is_autocommit()
        && let Err(error) = settle_tables(writer)
    {
        // A virtual table may have written a part of it.
        (keeps, result) = (false, Err(error));
    }
    if keeps && !ticket.finishes() {
        // Its caller was told that nothing of it is kept.
        (keeps, result) = (false, Err(left_request()));
    }
    if writer.is_autocommit() {
        return result.map_err(|error| ticket.timed(error));
    }
    if keeps {
        let connection = writer.connection()?;
        connection.control.release(&mut connection.sqlite)?;
    } else {
        writer.undo()?;
    }
    result.map_err(|error| ticket.timed(error))
}

/// Lets virtual tables write what they have collected, as a part of the statement. Full-text search keeps the terms of new
/// rows in memory, and writes them when the next savepoint is opened (`xSavepoint`,
/// <https://sqlite.org/vtab.html#the_xsavepoint_xrelease_and_xrollbackto_methods>): that may be for a short statement on its
/// caller's thread.
fn settle_tables(writer: &mut WriterConnection) -> Result<()> {
    let connection = writer.connection()?;
    connection.control.savepoint(&mut connection.sqlite)?;
    Ok(connection.control.release(&mut connection.sqlite)?)
}

/// Returns true for a single statement that asks SQLite to keep what was done before it failed.
fn keeps_part(work: &Work) -> bool {
    work.statement().is_some_and(|(text, _)| has_aborting_conflict_clause(&text.sql))
}
