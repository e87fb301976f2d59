//! Giving a call up.
//!
//! Owns: what becomes of a call that its caller leaves, by its stage, and what the caller may wait for. Runs on the caller's
//! thread, and waits for nothing. Invariant: a caller that wants the outcome of a write gets it, however the write ends. Leaves
//! out: interrupting what runs (`engine::dispatch`).

use std::task::Poll;

use super::{Call, Stage};
use crate::engine::cancelled::CancelOutcome;
use crate::inline::budget;
use crate::workers::Answer;

/// What a caller that gives a call up waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leaving {
    /// Nothing.
    AtOnce,
    /// Until a write that runs has ended.
    AfterWrite,
    /// The same, and it takes the outcome of a write: also of one that has ended.
    WithOutcome,
}

impl<T, E> Call<T, E> {
    /// Gives the call up, as dropping it does, but for what `leaving` waits for.
    pub(crate) fn give_up(&mut self, leaving: Leaving) -> CancelOutcome {
        let cancelled = match std::mem::replace(self.stage(), Stage::Done) {
            Stage::New(_) | Stage::Start(_) => CancelOutcome::Withdrawn,
            Stage::Waiting(_, reply) if reply.is_inherited() => CancelOutcome::Answered,
            // Asked before giving up: an interrupted request is answered too. One that is too late never ran.
            Stage::Waiting(awaited, reply) if reply.is_answered() && !awaited.is_too_late() => {
                if leaving == Leaving::WithOutcome && awaited.may_write() {
                    *self.stage() = Stage::Waiting(awaited, reply);
                    return CancelOutcome::Answered;
                }
                CancelOutcome::Answered
            }
            Stage::Held(answer, suspended)
                if leaving == Leaving::WithOutcome && answer.as_ref().is_ok_and(Answer::may_be_of_write) =>
            {
                *self.stage() = Stage::Held(answer, suspended);
                return CancelOutcome::Answered;
            }
            Stage::Waiting(awaited, reply) => match awaited.give_up() {
                cancelled if leaving != Leaving::AtOnce && awaited.has_outcome(cancelled) => {
                    *self.stage() = Stage::Waiting(awaited, reply);
                    return cancelled;
                }
                // It was done before it could learn that its caller had left.
                _ if matches!(reply.look(), Poll::Ready(Some(Ok(_)))) => CancelOutcome::Answered,
                cancelled => cancelled,
            },
            Stage::Held(..) => {
                budget::renew();
                CancelOutcome::Answered
            }
            Stage::Refused(_) | Stage::Done => CancelOutcome::Answered,
        };
        if let Some(report) = self.report.take() {
            report.dropped(cancelled, self.collection.as_deref());
        }
        cancelled
    }
}
