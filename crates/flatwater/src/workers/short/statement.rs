//! One statement of an open transaction as an inline run.
//!
//! Owns: that run, or that of a savepoint, and which are eligible. Runs on the thread of a caller, which has taken the
//! connection out of the transaction's inbox. Invariant: an inline run that fails leaves nothing behind, and a worker
//! runs the statement again. Leaves out: the run (`run`), the order of messages (`kept`), beginning and ending a transaction inline (`transaction`).

use std::sync::Arc;

use super::gate::{self, Place};
use super::run::run_short;
use crate::connection::run::statement_cache::CachedStatement;
use crate::workers::Answer;
use crate::workers::kept::transaction::Step;
use crate::workers::open_transaction::Savepoints;
use crate::workers::work::{SavepointWork, Work};
use crate::workers::writer::effects::Effects;
use crate::workers::writer::known_schema::has_settled_schema;
use crate::workers::writer::open_state::OpenState;
use crate::workers::writer::writer_connection::WriterConnection;
use flatwater_base::error::Result;
use flatwater_base::inline::eligibility::{InlineLimits, Permit};
use flatwater_base::inline::outcome::{Fallback, InlineRun, NotTried};

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
    if let Work::Savepoint(step) = work {
        return if at.savepoints.is_short(step, permit.limits) { savepoint(at, step, permit) } else { ineligible };
    }
    let Some(ready) = eligible_inside(&mut at.writer, &at.effects, work, permit.limits) else { return ineligible };
    let Some((answer, took)) = run_short(&mut at.writer, &ready, work, permit) else { return ineligible };
    let held = permit.held(took);
    match answer {
        Err(error) if at.writer.is_autocommit() => (InlineRun::Done(Err(error.clone()), held), Step::Lost(error)),
        Ok(answer) => {
            if !work.describe().only_reads() {
                at.worked += took;
                at.savepoints.ran(1, took);
            }
            (InlineRun::Done(Ok(answer), held), Step::Stays)
        }
        Err(error) => (InlineRun::FellBack(Fallback::after(error.sqlite_code()), held), Step::Stays),
    }
}

/// Does a step with a savepoint. SQLite writes nothing for it: no virtual table has anything left to write, see
/// `perform::transaction::settle_tables`.
fn savepoint(at: &mut OpenState, step: &SavepointWork, permit: &Permit<'_>) -> (InlineRun<Result<Answer>>, Step) {
    let answer = at.savepoints.step(&mut *at.writer, step);
    let lost = answer.as_ref().err().filter(|_| at.writer.is_autocommit()).cloned();
    (InlineRun::Done(answer, permit.held_until_now()), lost.map_or(Step::Stays, Step::Lost))
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
        return gate::read(writer, text, limits);
    }
    gate::write(writer, text, Place::InsideAgain, limits)
}
