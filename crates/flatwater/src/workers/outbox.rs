//! Finished answers that wait for delivery, until this thread holds no lock and not the slot.
//!
//! Owns: delivering them, and where the rows of a large result become values of the caller's type. Runs on the thread
//! that served the requests. Invariant: the caller's code runs neither on the writer's thread nor, for a large result, in
//! a poll. Leaves out: what is answered.

use flatwater_sqlite::Interrupt;

use crate::queue::reply::Teller;
use crate::queue::ticket::Ticket;
use crate::stats::{CallKind, Recorder};
use crate::workers::Answer;
use crate::workers::request::{ReplyTo, Request};
use flatwater_base::error::{Error, ErrorKind, Result};
use flatwater_base::thread::background::{dispose, run_with};
use flatwater_base::values::outcome::Decode;
use flatwater_base::values::row::Rows;

/// A result with at most this many rows is decoded by the caller's poll.
pub(crate) const FEW: usize = 256;

pub(crate) struct Outbox<'a> {
    recorder: &'a Recorder,
    /// The thread that delivers decodes large results. Otherwise each gets a thread.
    decodes: bool,
    answers: Vec<Finished>,
}

/// Answers requests that never ran because the database is closed. Their closures, whose drop may block or panic, are
/// dropped on a thread of their own.
pub(crate) fn refuse_closed(waiting: Vec<Request>, recorder: &Recorder) {
    let mut outbox = Outbox::passing_on(recorder);
    let mut dropped = Vec::new();
    for Request { ticket, work, reply_to, .. } in waiting {
        if ticket.start() {
            outbox.answer(work.describe().kind, &ticket, reply_to, Err(Error::closed()));
        }
        dropped.push(work);
    }
    outbox.deliver();
    if !dropped.is_empty() {
        dispose(dropped);
    }
}

struct Finished {
    reply_to: ReplyTo,
    answer: Result<Answer>,
    decode: Option<Decode>,
}

impl<'a> Outbox<'a> {
    /// Returns the outbox of a thread that may decode large results before it serves the next request.
    pub(crate) fn decoding(recorder: &'a Recorder) -> Self {
        Self { recorder, decodes: true, answers: Vec::new() }
    }

    /// Returns the outbox of a thread whose next request must not wait for that.
    pub(crate) fn passing_on(recorder: &'a Recorder) -> Self {
        Self { recorder, decodes: false, answers: Vec::new() }
    }

    pub(crate) fn answer(&mut self, kind: CallKind, ticket: &Ticket, reply_to: ReplyTo, answer: Result<Answer>) {
        self.recorder.answered(kind, ticket.began.elapsed());
        use ErrorKind::{Cancelled, Closed, Expired, Timeout};
        let is_end = |error: &Error| matches!(error.kind(), Cancelled | Timeout | Expired | Closed);
        if answer.as_ref().is_err_and(is_end) && ticket.should_stop() {
            self.recorder.counts.interrupted.count();
        }
        if let (Some(record), Ok(answer)) = (&ticket.record, &answer) {
            record.answered(answer.numbers());
        }
        self.answers.push(Finished { reply_to, answer, decode: ticket.decode });
    }

    /// Answers the request, and ends it.
    pub(crate) fn finish(&mut self, request: Request, answer: Result<Answer>) {
        self.answer(request.work.describe().kind, &request.ticket, request.reply_to, answer);
    }

    /// Returns true if a result is large enough to be decoded here.
    pub(crate) fn has_large(&self) -> bool {
        let is_large = |finished: &Finished| match (&finished.answer, finished.decode) {
            (Ok(Answer::Rows(rows)), Some(_)) => rows.len() > FEW,
            _ => false,
        };
        self.decodes && self.answers.iter().any(is_large)
    }

    /// Delivers the answers and tells their callers. Wakers may run arbitrary code.
    pub(crate) fn deliver(&mut self) {
        let mut teller = Teller::default();
        for Finished { reply_to, answer, decode } in self.answers.drain(..) {
            match (answer, decode) {
                (Ok(Answer::Rows(rows)), Some(decode)) if rows.len() > FEW => {
                    let large = Large { reply_to, rows, decode };
                    teller.flush();
                    if self.decodes { large.deliver(&mut teller) } else { large.deliver_elsewhere() }
                }
                (answer, _) => reply_to.fill(answer, &mut teller),
            }
        }
    }
}

/// A large result, to be decoded.
struct Large {
    reply_to: ReplyTo,
    rows: Rows,
    decode: Decode,
}

impl Large {
    fn deliver(self, teller: &mut Teller) {
        self.reply_to.fill(Ok(Answer::Decoded((self.decode)(&self.rows))), teller);
    }

    /// Delivers from another thread. If none can be started, the caller decodes.
    fn deliver_elsewhere(self) {
        let started = run_with("fw-decode", self, |large| large.deliver(&mut Teller::default()));
        if let Err(Self { reply_to, rows, .. }) = started {
            reply_to.fill(Ok(Answer::Rows(rows)), &mut Teller::default());
        }
    }
}
