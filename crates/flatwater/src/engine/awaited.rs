//! What a caller waits for that does not have its answer yet: a request that is queued or runs, an opening, the outcome of a write that
//! failed, or a close.
//!
//! Owns: the deadline of a request, and giving up what is waited for. Runs on the caller's thread and the timer's. Invariant: who gives
//! it up learns what becomes of it, and whoever waits for something on its behalf is told. Leaves out: sending it (`dispatch`).

use std::sync::Arc;

use super::handle::{Handle, Host};
use super::opening::{CancelOutcome, Opening};
use crate::queue::bounded::LinePlace;
use crate::queue::reply::{Reply, reply};
use crate::queue::ticket::{Leaves, Ticket};
use crate::turnstile::Turnstile;
use crate::workers::Answer;
use crate::workers::readers::InLine;
use flatwater_base::error::Result;
use flatwater_base::error::cause::no_thread;
use flatwater_base::thread::background;
use flatwater_base::time::timer::{self, Alarm};

/// The outcome of beginning a call.
pub(crate) enum Submitted {
    /// This thread produced the answer.
    Now(Result<Answer>),
    /// The answer arrives through the reply.
    Waits(Awaited, Reply<Result<Answer>>),
}

/// What a caller waits for that does not have its answer yet.
pub(crate) enum Awaited {
    Request(Box<Queued>),
    Opening(Arc<Opening>),
    /// A write that failed, whose outcome is being determined.
    Outcome,
    /// A close, which goes on without its caller.
    Close,
}

impl Submitted {
    /// Runs work that blocks: on a thread of its own, or on this one if that `may_block`. If the caller has left meanwhile, the
    /// answer is dropped there.
    pub(crate) fn blocking(
        may_block: bool,
        awaited: Awaited,
        work: impl FnOnce() -> Result<Answer> + Send + 'static,
    ) -> Result<Self> {
        if may_block {
            return Ok(Self::Now(work()));
        }
        let (promise, reply) = reply();
        background::run_waiting("fw-open", move || promise.answer(work()))
            .map_err(|error| no_thread("a thread", &error))?;
        Ok(Self::Waits(awaited, reply))
    }
}

impl Awaited {
    /// Returns true if the deadline passed before it began.
    pub(crate) fn is_too_late(&self) -> bool {
        matches!(self, Self::Request(queued) if queued.ticket.is_given_up())
    }

    /// Its caller does not wait any more.
    pub(crate) fn leave_line(&self) {
        if let Self::Request(queued) = self {
            queued.leave_line();
        }
    }

    /// Gives it up, because the caller needs no answer any more. Returns the effect.
    pub(crate) fn give_up(&self) -> CancelOutcome {
        match self {
            Self::Request(queued) => queued.give_up(),
            Self::Opening(opening) => opening.give_up(),
            Self::Outcome | Self::Close => CancelOutcome::WriteRunning,
        }
    }

    /// Returns false for what only reads.
    pub(crate) fn may_write(&self) -> bool {
        match self {
            Self::Request(queued) => !queued.only_reads,
            Self::Outcome => true,
            Self::Opening(_) | Self::Close => false,
        }
    }

    /// Returns true if whoever gave it up with this effect may want to know what became of it.
    pub(crate) fn has_outcome(&self, given_up: CancelOutcome) -> bool {
        matches!(self, Self::Request(_) | Self::Outcome)
            && matches!(given_up, CancelOutcome::WriteRunning | CancelOutcome::WriteInterrupted)
    }
}

/// The caller's side of a request that is queued or runs.
pub(crate) struct Queued {
    pub(super) handle: Arc<Handle>,
    pub(super) ticket: Arc<Ticket>,
    pub(super) line: Line,
    /// True if the request was known to only read.
    pub(super) only_reads: bool,
    /// Goes off at the deadline.
    pub(super) _alarm: Option<Alarm>,
}

/// The place of a request in the line of a full queue.
#[derive(Clone, Copy)]
pub(super) enum Line {
    Writer(LinePlace),
    Readers(InLine),
    Nowhere,
}

/// Sets the alarm for the deadline, at which a request that still waits is given up and its caller is woken.
pub(super) fn alarm(ticket: &Arc<Ticket>, reply: &Reply<Result<Answer>>) -> Option<Alarm> {
    let deadline = ticket.deadline?;
    let (waiting, nudge) = (ticket.clone(), reply.nudge());
    let alarm = timer::at(deadline, move || {
        if waiting.give_up() {
            nudge();
        }
    });
    Some(alarm)
}

impl Queued {
    pub(super) fn give_up(&self) -> CancelOutcome {
        match self.ticket.leave() {
            Leaves::Withdrawn => {
                self.leave_line();
                CancelOutcome::Withdrawn
            }
            Leaves::Finishing if !self.only_reads => CancelOutcome::WriteRunning,
            _ => {
                self.look_again();
                if self.only_reads { CancelOutcome::ReadInterrupted } else { CancelOutcome::WriteInterrupted }
            }
        }
    }

    /// Tells whoever waits for something on behalf of the request that its caller has left.
    fn look_again(&self) {
        match &self.handle.host {
            Host::Engine(_) if self.only_reads => {}
            Host::Engine(engine) => engine.context.turnstile.iter().for_each(Turnstile::look_again),
            Host::Server(served) => served.look_again(),
        }
    }

    /// Removes a request that was given up from the line of a full queue, which frees its memory.
    pub(super) fn leave_line(&self) {
        let Some(engine) = self.handle.engine() else { return };
        match self.line {
            Line::Writer(place) => engine.writer.iter().for_each(|writer| writer.leave(place)),
            Line::Readers(place) => engine.readers.iter().for_each(|readers| readers.leave(place)),
            Line::Nowhere => {}
        }
    }
}
