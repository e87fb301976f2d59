//! A connection of a caller that waits: for its slot, or, idle in a transaction, for its caller.
//!
//! Owns: asking the writer for the slot, and the end of the wait: the slot, the time, or the caller who leaves; and looking at the
//! idle limit, so that a transaction which is used for nothing holds the slot, and keeps the WAL from starting over, for no longer. No
//! thread waits meanwhile. Runs on helper threads, and on those of the writer and the timer, for a moment. Invariants:
//! what a wait ends with is taken once: it has a number, and what comes later finds another one; a slot that comes too
//! late is given back. Leaves out: what is done with the slot (`lent_slot`), rolling back (`serve_inbox`).
//!
//! ```text
//! the connection                           fw-writer, or who has the slot       timer's thread
//! asks; notes that it waits, as number 1
//!                                          (a long transaction)
//!                                                                               the time is over: takes
//!                                                                               the connection, number 1
//! answers "database is locked", goes on
//!                                          comes to the request of number 1:
//!                                          it was given up, and is dropped
//! ```

use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};
use std::time::Instant;

use rusqlite::ffi;

use super::lent_slot::LentSlot;
use super::runner::Runner;
use super::{Aside, At, Message, OwnConnection};
use crate::queue::reply::Teller;
use crate::queue::ticket::{CallOptions, Ticket, left_request};
use crate::workers::kept::inbox::{End, Posted};
use crate::workers::outbox::Outbox;
use crate::workers::request::{ReplyTo, Request};
use crate::workers::shared_errors::{opened_to_read, waits_for_itself};
use crate::workers::work;
use crate::workers::{Answer, open_transaction};
use flatwater_base::error::hint::hint;
use flatwater_base::error::{Error, Result};
use flatwater_base::time::later;
use flatwater_base::time::timer::{self, Alarm};

/// A request that waits for the slot of its connection.
pub(super) struct Waiting {
    number: u64,
    runner: Box<Runner>,
    pub(super) request: Box<Request>,
    _alarm: Alarm,
}

impl OwnConnection {
    /// Returns the connection if nothing has to be waited for: with its slot, which the request did not have before.
    pub(super) fn wait_for_slot(
        &self,
        runner: Box<Runner>,
        request: Box<Request>,
        outbox: &mut Outbox<'_>,
    ) -> Option<Box<Runner>> {
        let (Some(writer), Some(this)) = (&self.given.writer, self.this.upgrade()) else {
            let error = opened_to_read(&self.given.options.path);
            outbox.finish(*request, Err(error));
            return Some(runner);
        };
        // While it waits, its caller may withdraw it. Its time may be over by now, and the alarm for that finds no request that runs.
        if !request.ticket.hand_over() {
            if request.ticket.is_interrupted() {
                // Its caller may wait until it is known that nothing of it is kept.
                outbox.finish(*request, Err(left_request()));
            }
            return Some(runner);
        }
        if let Some(slot) = LentSlot::take_idle(writer) {
            return self.request(runner, request, Some(Ok(slot)), outbox);
        }
        if request.ticket.options.inside_body && request.ticket.start() {
            // The transaction that its caller is inside of has the slot.
            outbox.finish(*request, Err(waits_for_itself()));
            return Some(runner);
        }
        let now = Instant::now();
        let timeout = Some(runner.busy_timeout);
        let ticket = Arc::new(Ticket::new(CallOptions::within(timeout), now));
        let mut at = self.lock();
        at.waits += 1;
        let number = at.waits;
        let end = ticket.deadline.unwrap_or(now);
        let (asks, waits) = (ticket.clone(), this.clone());
        let alarm = timer::at(end, move || {
            asks.give_up();
            waits.resume(number, Err(locked()));
        });
        at.waiting = Some(Waiting { number, runner, request, _alarm: alarm });
        drop(at);
        let waits = this.clone();
        let then = ReplyTo::then(move |answer: Option<Result<Answer>>| {
            let slot = answer.unwrap_or_else(|| Err(Error::closed())).and_then(LentSlot::of);
            waits.resume(number, slot);
        });
        if let Err((error, request)) = writer.push(Request::new(ticket, work::slot(), then)) {
            request.reply_to.fill(Err(error), &mut Teller::default());
        }
        None
    }

    /// Goes on with the request that waits, if it is the one of this number.
    fn resume(&self, number: u64, slot: Result<LentSlot>) {
        let mut at = self.lock();
        match at.waiting.take_if(|waiting| waiting.number == number) {
            Some(waiting) => resume(self, at, waiting, slot),
            // The slot is given back without the lock.
            None => drop(at),
        }
    }
}

/// Goes on with the request that has waited, before anything else.
pub(super) fn resume(own: &OwnConnection, mut at: MutexGuard<'_, At>, waiting: Waiting, slot: Result<LentSlot>) {
    let Waiting { runner, request, .. } = waiting;
    at.inbox.post_first(Message::Aside(Aside::Resumed(request, slot)));
    let calls = at.inbox.put_back(runner, Instant::now());
    own.call(at, calls);
}

/// The error of SQLite for a lock that another connection holds.
fn locked() -> Error {
    Error::from(flatwater_sqlite::SqliteError::from_code(ffi::SQLITE_BUSY))
        .with_hint(hint!["another transaction holds the writer: end it, or raise " BusyTimeout])
}

impl OwnConnection {
    /// Called when the connection rests in a transaction.
    pub(super) fn look_later(&self) {
        let this = self.this.clone();
        self.looks.by(later(Instant::now(), self.given.options.transaction_idle), move || this.upgrade()?.look());
    }

    /// Ends the transaction if it is at its limit, or returns when to look again.
    fn look(&self) -> Option<Instant> {
        let limit = self.given.options.transaction_idle;
        let mut at = self.lock();
        if !self.in_transaction.load(Ordering::Relaxed) {
            // Who begins one asks for a look.
            return None;
        }
        let now = Instant::now();
        // It is used now, maybe on its caller's thread, which asks for no look when it rests again.
        let since = at.inbox.rests_since().unwrap_or(now);
        let until = later(since, limit);
        if now < until {
            return Some(until);
        }
        at.ended = Some(open_transaction::ended(&End::Idle(limit)));
        // From here on there is none, for who asks.
        self.in_transaction.store(false, Ordering::Relaxed);
        let calls = matches!(at.inbox.post(Message::Aside(Aside::Idle)), Posted::Call);
        self.call(at, calls);
        None
    }
}
