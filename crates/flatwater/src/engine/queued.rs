//! A request that is queued or runs, as its caller holds it.
//!
//! Owns: its deadline, and giving it up. Runs on the caller's thread and the timer's. Invariant: who gives it up learns what becomes of
//! it, and whoever waits for something on its behalf is told. Leaves out: sending it (`dispatch`).

use std::sync::Arc;

use super::cancelled::CancelOutcome;
use super::handle::{Handle, Host};
use crate::error::Result;
use crate::queue::bounded::LinePlace;
use crate::queue::reply::Reply;
use crate::queue::ticket::{Leaves, Ticket};
use crate::time::timer::{self, Alarm};
use crate::turnstile::Turnstile;
use crate::workers::Answer;
use crate::workers::readers::InLine;

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
        match self.handle.host() {
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
