//! A parked connection: where the connection of an open transaction is kept while its caller is not waiting for the
//! writer's thread, so that short statements of the transaction can run inline.
//!
//! Owns: the connection while a transaction is open, and one inline run in it. Guarded by its own lock, which the
//! writer's thread takes for each message, and a caller's thread only while the writer's thread has no message.
//! Invariants: an inline run that fails leaves nothing behind, and a worker runs the statement again; when the
//! transaction ends, or its thread panics, the connection is back where it was. Leaves out: the order of messages
//! (`open_transaction`).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use flatwater_sqlite::PageRefusal;

use super::connection::WriterConnection;
use super::effects::Effects;
use super::inline_access::{run_inline, suspect};
use super::inline_write::short_write;
use super::known_schema::has_settled_schema;
use super::perform::run_one;
use super::savepoint_stack::{Savepoint, Stack};
use super::slot::HeldConnection;
use crate::connection::run::execute::Bounds;
use crate::connection::run::inline_run::LastRead;
use crate::connection::run::statement_cache::CachedStatement;
use crate::error::{Error, Result};
use crate::inline::limits::InlineLimits;
use crate::inline::outcome::{Fallback, InlineRun};
use crate::time::later;
use crate::workers::Answer;
use crate::workers::open_transaction::{self, Savepoints};
use crate::workers::work::Work;

/// The state of an open transaction.
pub(super) struct At {
    pub(super) writer: Box<WriterConnection>,
    pub(super) effects: Effects,
    pub(super) savepoints: Stack,
    /// An inline run panicked: the transaction is lost.
    pub(super) lost: bool,
}

/// `None` when the transaction is over.
pub(super) struct ParkedConnection(Mutex<Option<At>>);

impl ParkedConnection {
    pub(super) fn lock(&self) -> MutexGuard<'_, Option<At>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An open transaction, as the writer's thread sees it. Dropping it takes the connection back.
pub(super) struct ServedTransaction<'a> {
    held: &'a mut HeldConnection,
    pub(super) parked: Arc<ParkedConnection>,
}

impl<'a> ServedTransaction<'a> {
    pub(super) fn new(held: &'a mut HeldConnection) -> Self {
        let writer = held.lend();
        let at = At { writer, effects: Effects::default(), savepoints: Stack::default(), lost: false };
        Self { held, parked: Arc::new(ParkedConnection(Mutex::new(Some(at)))) }
    }

    /// Takes the connection back, and returns what the statements did.
    pub(super) fn end(mut self) -> Effects {
        self.take_back().unwrap_or_default()
    }

    fn take_back(&mut self) -> Option<Effects> {
        let At { writer, effects, .. } = self.parked.lock().take()?;
        self.held.put_back(writer);
        Some(effects)
    }
}

impl Drop for ServedTransaction<'_> {
    fn drop(&mut self) {
        self.take_back();
    }
}

impl open_transaction::RunsInline for ParkedConnection {
    fn run_inline(
        &self,
        work: &Work,
        savepoints: &Savepoints,
        limits: &InlineLimits,
        began: Instant,
    ) -> (InlineRun<Result<Answer>>, Option<Error>) {
        let mut place = self.lock();
        let Some(at) = place.as_mut().filter(|at| !at.lost && at.savepoints.is_at(savepoints)) else {
            return (InlineRun::Ineligible, None);
        };
        if work.describe().nests() {
            let is_short = matches!(work, Work::Savepoint(_)) || at.savepoints.is_shortly_released();
            return if is_short { savepoint(at, work, began) } else { (InlineRun::Ineligible, None) };
        }
        let Some(ready) = eligible_inside(&mut at.writer, &at.effects, work, limits) else {
            return (InlineRun::Ineligible, None);
        };
        let mut given_up = GivenUp { at, is_over: false };
        let answer = statement(&mut given_up.at.writer, &ready, work, limits, later(began, limits.time));
        given_up.is_over = true;
        drop(given_up);
        let took = began.elapsed();
        let Some(answer) = answer else { return (InlineRun::Ineligible, None) };
        match answer {
            Err(error) if at.writer.is_autocommit() => (InlineRun::Done(Err(error.clone()), took), Some(error)),
            Ok(answer) => {
                at.savepoints.ran(1);
                (InlineRun::Done(Ok(answer), took), None)
            }
            Err(error) => (InlineRun::FellBack(Fallback::after(error.sqlite_code()), took), None),
        }
    }
}

/// Opens a nested transaction, or keeps the innermost one. SQLite writes nothing for it: no virtual table has anything
/// left to write, see `serve_transaction::settle`.
fn savepoint(at: &mut At, work: &Work, began: Instant) -> (InlineRun<Result<Answer>>, Option<Error>) {
    let mut given_up = GivenUp { at, is_over: false };
    let At { writer, savepoints, .. } = &mut *given_up.at;
    let answer = match work {
        Work::Savepoint(number) => {
            savepoints.open(writer, Savepoint::Nested(*number)).map(|()| Answer::Savepoint(*number))
        }
        _ => savepoints.release_nested(writer).map(|()| Answer::Done),
    };
    given_up.is_over = true;
    let lost = answer.as_ref().err().filter(|_| given_up.at.writer.is_autocommit()).cloned();
    (InlineRun::Done(answer, began.elapsed()), lost)
}

/// The guard of an inline run. After a panic, which only a bug in this crate can cause, the connection is not trusted,
/// and the transaction is lost.
struct GivenUp<'a> {
    at: &'a mut At,
    is_over: bool,
}

impl Drop for GivenUp<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.at.writer.replace();
            self.at.lost = true;
        }
    }
}

/// Runs the statement inside a savepoint, since SQLite by itself does not undo every failed statement. Only the
/// statement runs under the rules of an inline run: the statements of the savepoint may have to be prepared again. If
/// the savepoint cannot be ended, the transaction is rolled back, so that nothing of a failed inline run is left for
/// the worker that runs the statement again. Returns `None` if this connection is not capable of inline runs.
fn statement(
    writer: &mut WriterConnection,
    ready: &CachedStatement,
    work: &Work,
    limits: &InlineLimits,
    end: Instant,
) -> Option<Result<Answer>> {
    let connection = match writer.connection() {
        Ok(connection) => connection,
        Err(error) => return Some(Err(error)),
    };
    if let Err(error) = connection.control.savepoint(&mut connection.sqlite) {
        return Some(Err(error.into()));
    }
    // After an interrupt SQLite rolls the whole transaction back, unless the statement only reads.
    let last_read = work.describe().only_reads().then_some(LastRead(end, PageRefusal::Interrupt));
    let rows = if work.describe().only_reads() { limits.rows } else { usize::MAX };
    let bounds = Bounds::Inline { end, rows, bytes: limits.bytes };
    let ran = run_inline(writer, limits.bytes, last_read, |writer| run_one(writer, ready, work, bounds));
    let result = ran.map(|(result, reads)| {
        let is_late = |error: &Error| Fallback::after(error.sqlite_code()) == Fallback::LateRead;
        if reads.refused && !result.as_ref().is_err_and(is_late) && writer.is_autocommit() {
            suspect(writer);
        }
        result
    });
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
    if !work.describe().only_reads() {
        return short_write(writer, text, limits);
    }
    writer.known(text).filter(|ready| ready.reads_shortly(limits))
}
