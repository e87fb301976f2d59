//! What goes on beside the polls of calls: calls that were made and are held back, because one that was made before is
//! not complete yet; the next part of a result; and the turn of other tasks, which a front end gives them then.
//!
//! Owns: which calls have an order, and the deadline of one that is held; counting what is there at once. Runs on the
//! thread of the host's event loop, and never blocks there. Invariants: a call that is held has not begun; its deadline
//! counts from when it was made. Leaves out: the order, and suspending a task, which the front end does; calls, which
//! count themselves (`front_call`).

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use super::{FrontCall, Mailbox, Target};
use crate::api::batches::Batches;
use crate::api::live::Live;
use crate::error::Result;
use crate::inline::budget;
use crate::time::later;
use crate::time::timer::{self, Alarm};
use crate::values::row::Rows;

/// A call that was made at this time, and is held.
pub struct Held {
    since: Instant,
    deadline: Option<Instant>,
    /// Notes the token at the deadline.
    _alarm: Option<Alarm>,
}

impl Held {
    /// Returns true if the call is to begin, because it then fails with a timeout.
    #[must_use]
    pub fn is_late(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }
}

impl FrontCall {
    /// Returns a number of the queue in which the call takes its place behind the writes before it: that of its transaction, or
    /// of the writer. `None` for a read that has a reader of its own, and for a call that has begun.
    pub fn line(&mut self) -> Option<usize> {
        self.call.line()
    }

    /// Holds a call that was not begun. At its deadline the mailbox is told, with the token.
    #[must_use]
    pub fn hold(&self, mailbox: &Arc<dyn Mailbox>, token: u64) -> Held {
        let since = Instant::now();
        let deadline = self.call.time().map(|time| later(since, time));
        let alarm = deadline.map(|deadline| {
            let mailbox = mailbox.clone();
            timer::at(deadline, move || {
                mailbox.ready(token);
                mailbox.flush();
            })
        });
        Held { since, deadline, _alarm: alarm }
    }

    /// The call is held no more: its next poll begins it.
    pub fn release(&mut self, held: &Held) {
        self.call.waited(held.since.elapsed());
    }
}

impl Target {
    /// As [`FrontCall::line`], for a write.
    #[must_use]
    pub fn line(&self) -> Option<usize> {
        self.0.0.line()
    }
}

/// As [`FrontCall::line`].
pub fn line_of(batches: &mut Batches) -> Option<usize> {
    batches.line()
}

/// Polls for the next batch of rows, as [`Batches::next`] does. The front end gives other tasks their turn.
pub fn poll_batch(batches: &mut Batches, context: &mut Context<'_>) -> Poll<Result<Option<Rows>>> {
    batches.poll_batch(context)
}

/// Polls for the next item of a live query, as [`Live::next`] does. The front end gives other tasks their turn.
pub fn poll_live<T>(live: &mut Live<T>, context: &mut Context<'_>) -> Poll<Option<Result<T>>> {
    live.poll_item(Instant::now(), context)
}

/// Counts something that was there at once and that no call returns. Returns true if this thread has used up its share:
/// other tasks are to have their turn, and then [`turn_was_given`](super::turn_was_given) is called.
#[must_use]
pub fn turn_is_due() -> bool {
    budget::count(Instant::now());
    budget::is_spent()
}
