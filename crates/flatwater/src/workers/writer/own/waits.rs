//! A connection of a caller that waits for its turn.
//!
//! Owns: asking the writer for the turn, and the end of the wait: the turn, the time, or the caller who leaves. No
//! thread waits meanwhile. Runs on helper threads, and on those of the writer and the timer, for a moment. Invariants:
//! what a wait ends with is taken once: it has a number, and what comes later finds another one; a turn that comes too
//! late is given back. Leaves out: what is done with the turn (`turn`).
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

use std::sync::Arc;
use std::time::Instant;

use rusqlite::ffi;

use super::OwnConnection;
use super::run::Own;
use super::turn::Turn;
use crate::error::hint::hint;
use crate::error::{Error, Result};
use crate::queue::ticket::{CallOptions, Ticket};
use crate::time::timer::{self, Alarm};
use crate::workers::Answer;
use crate::workers::outbox::Outbox;
use crate::workers::refusals::opened_to_read;
use crate::workers::reply_to::ReplyTo;
use crate::workers::request::Request;
use crate::workers::work::Work;

/// A request that waits for the turn of its connection.
pub(super) struct Waiting {
    number: u64,
    pub(super) own: Box<Own>,
    pub(super) request: Box<Request>,
    _alarm: Alarm,
}

impl OwnConnection {
    /// Returns the connection if nothing has to be waited for: with its turn, which the request did not have before.
    pub(super) fn wait_for_turn(
        &self,
        own: Box<Own>,
        request: Box<Request>,
        outbox: &mut Outbox<'_>,
    ) -> Option<Box<Own>> {
        let (Some(writer), Some(this)) = (&self.given.writer, self.this.upgrade()) else {
            let error = opened_to_read(&self.given.options.path);
            outbox.answer(request.work.describe().kind, &request.ticket, request.reply_to, Err(error));
            return Some(own);
        };
        // While it waits, its caller may withdraw it.
        if !request.ticket.put_back() {
            return Some(own);
        }
        if let Some(turn) = Turn::take_idle(writer) {
            return self.request(own, request, Some(Ok(turn)), outbox);
        }
        let now = Instant::now();
        let timeout = Some(own.busy_timeout);
        let ticket = Arc::new(Ticket::new(CallOptions { timeout, ..CallOptions::default() }, now));
        let mut inbox = self.lock();
        inbox.waits += 1;
        let number = inbox.waits;
        let end = ticket.deadline.unwrap_or(now);
        let (asks, waits) = (ticket.clone(), this.clone());
        let alarm = timer::at(end, move || {
            asks.give_up();
            waits.resume(number, || Err(locked()));
        });
        inbox.waiting = Some(Waiting { number, own, request, _alarm: alarm });
        drop(inbox);
        let waits = this.clone();
        let then = ReplyTo::then(move |answer: Option<Result<Answer>>| {
            let turn = answer.unwrap_or_else(|| Err(Error::closed())).and_then(Turn::of);
            waits.resume(number, || turn);
        });
        if let Err(error) = writer.push(Request::new(ticket, Work::Turn, then)) {
            this.resume(number, || Err(error));
        }
        None
    }

    /// Goes on with the request that waits, if it is the one of this number.
    fn resume(&self, number: u64, turn: impl FnOnce() -> Result<Turn>) {
        let mut inbox = self.lock();
        let Some(Waiting { own, request, .. }) = inbox.waiting.take_if(|waiting| waiting.number == number) else {
            return;
        };
        drop(inbox);
        self.serve_on_a_thread(own, Some((request, turn())));
    }
}

/// The error of SQLite for a lock that another connection holds.
fn locked() -> Error {
    Error::from(flatwater_sqlite::SqliteError::from_code(ffi::SQLITE_BUSY))
        .with_hint(hint!["another transaction holds the writer: end it, or raise " BusyTimeout])
}
