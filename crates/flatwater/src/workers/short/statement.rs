//! One statement of an open transaction as an inline run.
//!
//! Owns: that run, or that of a savepoint, and which are eligible. Runs on the thread of a caller, which has taken the
//! connection out of the transaction's inbox. Invariant: an inline run that fails leaves nothing behind, and a worker
//! runs the statement again. Leaves out: the order of messages (`kept`), beginning and ending a transaction inline (`transaction`).

use std::sync::Arc;
use std::time::Duration;

use flatwater_sqlite::{PageRefusal, ReadTime};
use rusqlite::ffi;

use super::write::short_write;
use crate::connection::run::execute::Bounds;
use crate::connection::run::statement_cache::CachedStatement;
use crate::error::{Error, Result};
use crate::inline::limits::InlineLimits;
use crate::inline::outcome::{Fallback, InlineRun, NotTried};
use crate::inline::permit::Permit;
use crate::sql::statement_info::StatementInfo;
use crate::time::later;
use crate::workers::Answer;
use crate::workers::kept::transaction::Step;
use crate::workers::open_transaction::Savepoints;
use crate::workers::perform::scans::{is_short_scan, note_scan};
use crate::workers::perform::statements::run_one;
use crate::workers::work::Work;
use crate::workers::writer::effects::Effects;
use crate::workers::writer::inline_access;
use crate::workers::writer::inline_access::suspect;
use crate::workers::writer::known_schema::has_settled_schema;
use crate::workers::writer::open_state::OpenState;
use crate::workers::writer::writer_connection::WriterConnection;

/// Runs the work on this thread now, if it is known to be short and the transaction is at these savepoints.
pub(crate) fn run_inline(
    at: &mut OpenState,
    work: &Work,
    savepoints: &Savepoints,
    permit: &Permit<'_>,
) -> (InlineRun<Result<Answer>>, Step) {
    let ineligible = (InlineRun::Ineligible(NotTried::Other), Step::Stays);
    if !at.savepoints.is_at(savepoints) {
        return ineligible;
    }
    let is = work.describe();
    if is.is_control() {
        return if at.savepoints.is_short(work, permit.limits) { savepoint(at, work, permit) } else { ineligible };
    }
    let Some(ready) = eligible_inside(&mut at.writer, &at.effects, work, permit.limits) else { return ineligible };
    let Some((answer, took)) = run_short(&mut at.writer, &ready, work, permit) else { return ineligible };
    let held = permit.held(took);
    match answer {
        Err(error) if at.writer.is_autocommit() => (InlineRun::Done(Err(error.clone()), held), Step::Lost(error)),
        Ok(answer) => {
            if !is.only_reads() {
                at.worked += took;
                at.savepoints.ran(1, took);
            }
            (InlineRun::Done(Ok(answer), held), Step::Stays)
        }
        Err(error) => {
            let why = permit.reason(Fallback::after(error.sqlite_code()), took);
            (InlineRun::FellBack(why, held), Step::Stays)
        }
    }
}

/// Does a step with a savepoint. SQLite writes nothing for it: no virtual table has anything left to write, see
/// `perform::transaction::settle_tables`.
fn savepoint(at: &mut OpenState, work: &Work, permit: &Permit<'_>) -> (InlineRun<Result<Answer>>, Step) {
    let Some(answer) = at.savepoints.step(&mut *at.writer, work) else {
        return (InlineRun::Ineligible(NotTried::Other), Step::Stays);
    };
    let lost = answer.as_ref().err().filter(|_| at.writer.is_autocommit()).cloned();
    (InlineRun::Done(answer, permit.held_until_now()), lost.map_or(Step::Stays, Step::Lost))
}

/// Runs the statement, and records how long it took. Of one that fails nothing is left, or the transaction is rolled back.
/// Returns `None` if this connection is not capable of inline runs.
pub(crate) fn run_short(
    writer: &mut WriterConnection,
    ready: &CachedStatement,
    work: &Work,
    permit: &Permit<'_>,
) -> Option<(Result<Answer>, Duration)> {
    let run = |writer: &mut WriterConnection| run(writer, ready, work, permit);
    // A read changes nothing.
    let write = ready.inline_write().filter(|_| !work.describe().only_reads());
    let answer = match write {
        None => run(writer),
        Some(write) if write.fails_before_changes => without_savepoint(writer, run),
        Some(_) => in_savepoint(writer, run),
    }?;
    let took = permit.began.elapsed();
    let counted = permit.limits.counted(took);
    ready.read_took(|| counted);
    if write.is_some() && answer.is_ok() {
        ready.text.took(counted);
        note_scan(writer, ready, took);
    }
    Some((answer, took))
}

/// Runs `f`, a write that leaves nothing behind unless it fails because of the file system, the memory or a damaged file.
/// Then the transaction is rolled back, if SQLite has not done so.
fn without_savepoint(
    writer: &mut WriterConnection,
    f: impl FnOnce(&mut WriterConnection) -> Option<Result<Answer>>,
) -> Option<Result<Answer>> {
    let result = f(writer);
    if let Some(Err(error)) = &result
        && !writer.is_autocommit()
        && !error.sqlite_code().is_none_or(comes_before_changes)
    {
        writer.rollback();
    }
    result
}

/// Returns true for the codes of failures that SQLite reports before such a write has changed anything.
fn comes_before_changes(code: i32) -> bool {
    use ffi::{
        SQLITE_AUTH, SQLITE_BUSY, SQLITE_CONSTRAINT, SQLITE_ERROR, SQLITE_LOCKED, SQLITE_MISMATCH, SQLITE_RANGE,
        SQLITE_SCHEMA, SQLITE_TOOBIG,
    };
    matches!(
        code & 0xff,
        SQLITE_AUTH
            | SQLITE_BUSY
            | SQLITE_CONSTRAINT
            | SQLITE_ERROR
            | SQLITE_LOCKED
            | SQLITE_MISMATCH
            | SQLITE_RANGE
            | SQLITE_SCHEMA
            | SQLITE_TOOBIG
    )
}

/// Runs `f` inside a savepoint, since SQLite by itself does not undo every failed statement. If the savepoint cannot be
/// ended, the transaction is rolled back, so that nothing of a failed inline run is left for the worker that runs the
/// statement again.
fn in_savepoint(
    writer: &mut WriterConnection,
    f: impl FnOnce(&mut WriterConnection) -> Option<Result<Answer>>,
) -> Option<Result<Answer>> {
    let connection = match writer.connection() {
        Ok(connection) => connection,
        Err(error) => return Some(Err(error)),
    };
    if let Err(error) = connection.control.savepoint(&mut connection.sqlite) {
        return Some(Err(error.into()));
    }
    let result = f(writer);
    if writer.is_autocommit() {
        return result;
    }
    let ended = match (&result, writer.connection()) {
        (_, Err(error)) => Err(error),
        (Some(Err(_)), _) => writer.undo(),
        (_, Ok(connection)) => connection.control.release(&mut connection.sqlite).map_err(Error::from),
    };
    if let Err(error) = ended {
        writer.rollback();
        return Some(Err(error));
    }
    result
}

/// Runs the statement under the rules of an inline run, which those of the savepoint around it are not: they may have to be
/// prepared again.
fn run(
    writer: &mut WriterConnection,
    ready: &CachedStatement,
    work: &Work,
    permit: &Permit<'_>,
) -> Option<Result<Answer>> {
    let (limits, began) = (permit.limits, permit.began);
    let only_reads = work.describe().only_reads();
    // After an interrupt SQLite rolls the whole transaction back, unless the statement only reads.
    let read_time = only_reads.then_some(ReadTime { began, time: limits.time, refusal: PageRefusal::Interrupt });
    let end = only_reads.then(|| later(began, limits.time));
    let rows = if only_reads { limits.rows } else { usize::MAX };
    let bounds = Bounds::Inline { end, rows, bytes: limits.bytes };
    let (result, is_refused) =
        inline_access::run_inline(writer, permit, read_time, |writer| run_one(writer, ready, work, bounds))?;
    permit.note_steps(writer.connection.as_ref().map_or(0, |connection| connection.steps_of(ready)));
    let is_late = |error: &Error| Fallback::after(error.sqlite_code()) == Fallback::LateRead;
    if is_refused && !result.as_ref().is_err_and(is_late) && writer.is_autocommit() {
        suspect(writer);
    }
    Some(result)
}

/// Returns the statement of the work, if it is one short statement whose class is known, under the schema outside
/// of the transaction.
fn eligible_inside(
    writer: &mut WriterConnection,
    effects: &Effects,
    work: &Work,
    limits: &InlineLimits,
) -> Option<Arc<CachedStatement>> {
    let (text, _) = work.statement()?;
    if effects.defined || !has_settled_schema(writer) {
        return None;
    }
    if work.describe().only_reads() {
        return short_statement(writer, text, true, limits);
    }
    let ready = short_write(writer, text, limits)?;
    (!ready.is_bounded() || is_short_scan(writer, &ready)).then_some(ready)
}

/// Returns the statement of `text`, if it is prepared here and short in a transaction.
pub(crate) fn short_statement(
    writer: &mut WriterConnection,
    text: &StatementInfo,
    only_reads: bool,
    limits: &InlineLimits,
) -> Option<Arc<CachedStatement>> {
    if only_reads {
        // A timed function may need a lock whose holder waits for this transaction.
        return writer.known(text).filter(|ready| ready.reads_shortly(limits) && !ready.calls_timed());
    }
    // SQLite would end the transaction with a write that is interrupted.
    short_write(writer, text, limits).filter(|ready| !ready.is_bounded())
}
