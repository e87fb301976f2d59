//! A transaction on its caller's thread: beginning it, and ending it.
//!
//! Owns: BEGIN, COMMIT and ROLLBACK as inline runs, and the writer's side of an open transaction: its short steps, its end, and
//! handing it over to the writer's thread when there is a message for it. Runs on the thread that polls a call, and on the one that sends the message. Invariants: nothing here waits
//! for a lock, syncs a file, or copies pages out of the WAL; a COMMIT that failed is not tried again unless its transaction is
//! still open; nobody else gets the slot until the transaction is over. Leaves out: the statements between
//! (`statement`, `perform::transaction`).

use std::sync::Arc;
use std::time::Instant;

use super::{gate, statement};
use crate::connection::EngineConnection;
use crate::connection::learn::schema::Known;
use crate::options::Durability;
use crate::queue::metrics::PendingWrite;
use crate::queue::ticket::{CallOptions, Ticket};
use crate::workers::Answer;
use crate::workers::kept::inbox::End;
use crate::workers::kept::transaction::{KeptTransaction, Side, Step};
use crate::workers::open_transaction::{Savepoints, TransactionGuard};
use crate::workers::perform::transaction::refuse_after;
use crate::workers::request::{ReplyTo, Request};
use crate::workers::work::{Ours, Unsettled, Work};
use crate::workers::writer::inline_access::run_inline;
use crate::workers::writer::open_state::{OnWriter, OpenState, WriterTransaction};
use crate::workers::writer::slot::Slot;
use crate::workers::writer::writer_connection::{WriterConnection, tell_rowid};
use crate::workers::writer::{Writer, WriterShared};
use flatwater_base::error::Result;
use flatwater_base::inline::eligibility::Permit;
use flatwater_base::inline::outcome::{Fallback, InlineRun, NotTried};

impl Side for OnWriter {
    type Connection = OpenState;

    fn run_inline(
        &self,
        at: &mut OpenState,
        work: &Work,
        savepoints: &Savepoints,
        permit: &Permit<'_>,
    ) -> (InlineRun<Result<Answer>>, Step) {
        if work.describe().ends() {
            return end(at, savepoints, work, permit);
        }
        statement::run_inline(at, work, savepoints, permit)
    }

    fn give_up(&self, at: &mut OpenState) {
        at.writer.replace();
    }

    fn leave(&self, at: OpenState, refused: Vec<Request>, end: &End) {
        if let Some(shared) = self.0.upgrade() {
            leave(shared, at, refused, end);
        }
    }

    fn call(&self, transaction: Arc<WriterTransaction>) {
        if let Some(shared) = self.0.upgrade() {
            hand_over(shared, transaction);
        }
    }
}

/// Begins a transaction on this thread, if the token is free and no lock has to be waited for.
pub(crate) fn begin_inline(writer: &Writer, rowid: Option<i64>, permit: &Permit<'_>) -> InlineRun<Result<Answer>> {
    let shared = &*writer.0;
    // A turn is kept for short writes.
    let is_kept = shared.context.turnstile.as_ref().is_some_and(|turnstile| turnstile.is_kept());
    if is_kept || shared.pauses_writes(permit.began) {
        return InlineRun::Ineligible(NotTried::Other);
    }
    let _pending = PendingWrite::new(&*shared.pending_writes);
    let Some(mut slot) = Slot::acquire_idle(writer) else { return InlineRun::Ineligible(NotTried::Other) };
    let begun = slot.run(|connection, _| {
        let begun = begin(shared, connection, permit);
        if matches!(begun, Some(Ok(()))) {
            tell_rowid(connection, rowid);
        }
        begun
    });
    match begun {
        None => return InlineRun::Ineligible(NotTried::Other),
        Some(Err(why)) => return InlineRun::FellBack(why, permit.held_until_now()),
        Some(Ok(())) => {}
    }
    let side = OnWriter(shared.this.clone());
    let transaction = KeptTransaction::new(&shared.context.options, side, Some(OpenState::new(slot.lend())));
    shared.note_open(&transaction);
    InlineRun::Done(Ok(Answer::Transaction(TransactionGuard(transaction))), permit.held_until_now())
}

/// Runs BEGIN IMMEDIATE, if the schema is the known one. Returns `None` if nothing was tried. With attached files SQLite
/// begins in each of them, which may recover one.
pub(crate) fn begin(
    shared: &WriterShared,
    writer: &mut WriterConnection,
    permit: &Permit<'_>,
) -> Option<Result<(), Fallback>> {
    let is_refused = writer.refusal().is_some() || shared.is_left();
    if is_refused || writer.wal_now().is_none() || !gate::is_one(writer) || writer.connection.as_ref()?.is_behind() {
        return None;
    }
    writer.end_lease();
    shared.record(writer);
    let begun = run_inline(writer, permit, |writer| {
        let connection = writer.connection.as_mut().ok_or(Fallback::Failed)?;
        let EngineConnection { sqlite, control, schema, .. } = connection;
        control.begin(sqlite).map_err(|error| Fallback::after(error.code()))?;
        if schema.knows(sqlite, control, &shared.context.catalogue.left)? == Known::Held {
            control.let_go(sqlite);
        }
        Ok(())
    })?;
    if begun.is_err() {
        writer.rollback();
    }
    Some(begun)
}

/// Commits the transaction or rolls it back, if that is short.
fn end(
    at: &mut OpenState,
    savepoints: &Savepoints,
    work: &Work,
    permit: &Permit<'_>,
) -> (InlineRun<Result<Answer>>, Step) {
    let commits = matches!(work, Work::Commit);
    let ineligible = (InlineRun::Ineligible(NotTried::Other), Step::Stays);
    let is_slow = at.writer.context.options.durability != Durability::Normal;
    let short = gate::end(&at.writer, (at.worked, &at.effects), (commits, is_slow), permit.limits);
    let Some(state) = short.filter(|_| at.savepoints.is_at(savepoints)) else { return ineligible };
    let error = match run_end(&mut at.writer, commits, permit) {
        Some(Ok(())) => return (InlineRun::Done(Ok(Answer::Done), permit.held_until_now()), Step::Ends),
        Some(Err(error)) => error,
        None => return ineligible,
    };
    let fell_back = InlineRun::FellBack(Fallback::after(error.sqlite_code()), permit.held_until_now());
    if commits && at.writer.is_autocommit() {
        let unsettled = Unsettled { error, change: state.change(), kind: work.describe().kind };
        return (fell_back, Step::Unsettled(unsettled));
    }
    (fell_back, Step::Stays)
}

/// Runs COMMIT or ROLLBACK. Returns `None` if nothing was tried.
pub(crate) fn run_end(writer: &mut WriterConnection, commits: bool, permit: &Permit<'_>) -> Option<Result<()>> {
    run_inline(writer, permit, |writer| {
        let EngineConnection { sqlite, control, .. } = writer.connection()?;
        if commits {
            control.commit(sqlite)?
        } else {
            control.rollback(sqlite)?
        }
        Ok(())
    })
}

/// Releases the slot of a transaction that is over, and answers what it will not serve.
fn leave(shared: Arc<WriterShared>, at: OpenState, refused: Vec<Request>, end: &End) {
    let writer = Writer(shared);
    let mut slot = Slot::lent_back(&writer, at.writer);
    slot.run(|connection, outbox| {
        at.effects.clean_up(connection, &writer.0.context.catalogue);
        let left = connection.wal_now();
        writer.0.leave(connection, left.as_ref(), Instant::now());
        refuse_after(refused, end, outbox);
    });
}

/// Has the writer's thread serve the messages of the transaction.
fn hand_over(shared: Arc<WriterShared>, transaction: Arc<WriterTransaction>) {
    let ticket = Arc::new(Ticket::new(CallOptions::default(), Instant::now()));
    Slot::hand_over_lent(&Writer(shared), transaction, Request::new(ticket, Ours::GoOn.into(), ReplyTo::Nobody));
}
