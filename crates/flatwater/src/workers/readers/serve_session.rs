//! An open read session: what its caller does with a snapshot or a cursor, and serving its messages on its reader.
//!
//! Owns: the requests of a session, and giving the reader back at the end. Its caller's side runs on callers' threads, the rest on
//! the pool's. Invariants: however a session ends, its reader is in the pool again or closed, and every request is answered; a
//! fetch ends early if its caller leaves, or if the session is ended. Leaves out: the order of messages (`read_session`), what is
//! done at once on the caller's thread (`inline_snapshot`).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use flatwater_sqlite::Interrupt;

use super::ReadersShared;
use super::inline_read::InlineQuery;
use super::read_session::{EndCursor, Message, Purpose, ReadSession, ended, ended_by_statement};
use super::reader::{Performed, Reader};
use super::run_query::query;
use crate::connection::run::batches::Batch;
use crate::events::statement_event::ExecutedOn;
use crate::queue::ticket::{CallOptions, Ticket};
use crate::workers::Answer;
use crate::workers::kept::inbox::End;
use crate::workers::kept::{CursorGuard, KeptConnection};
use crate::workers::outbox::Outbox;
use crate::workers::request::{Request, Tried};
use crate::workers::shared_errors::{fault, snapshot_writes};
use crate::workers::work::Work;
use flatwater_base::error::{ErrorKind, Result};
use flatwater_base::inline::eligibility::Permit;
use flatwater_base::inline::outcome::{InlineRun, NotTried};
use flatwater_base::thread::current::mark_closure;

/// What interrupts a request of a session: its caller, or what ends the session.
struct Either(Arc<Ticket>, Arc<Ticket>);

impl Interrupt for Either {
    fn should_stop(&self) -> bool {
        self.0.should_stop() || self.1.should_stop()
    }
}

impl ReadersShared {
    /// Serves one message of the session.
    pub(super) fn serve_session(self: &Arc<Self>, session: &Arc<ReadSession>, outbox: &mut Outbox<'_>) {
        let Some((mut reader, message)) = session.take() else { return };
        let step = catch_unwind(AssertUnwindSafe(|| self.step(session, &mut reader, message, outbox)));
        match step {
            Ok(None) => {
                if session.rest(reader) {
                    // This thread takes the next job itself.
                    self.lock().ready.push_back(session.clone());
                }
            }
            Ok(Some(end)) => self.end_session(session, Some(reader), end, outbox),
            Err(_) => {
                drop(reader);
                self.end_session(session, None, End::Lost(fault()), outbox);
            }
        }
    }

    /// Returns the end, if the message ended the session.
    fn step(
        self: &Arc<Self>,
        session: &Arc<ReadSession>,
        reader: &mut Reader,
        message: Message,
        outbox: &mut Outbox<'_>,
    ) -> Option<End> {
        match message {
            Message::End => return Some(End::Finished),
            Message::Aside(EndCursor(number)) => reader.end_cursor(number),
            Message::Request(request, ()) => {
                if !request.ticket.start() {
                    self.context.recorder.counts.abandoned.count();
                    return None;
                }
                let Request { ticket, work, reply_to, .. } = *request;
                let kind = work.describe().kind;
                reader.connection.lengths.restore(&mut reader.connection.sqlite);
                reader.wait_for_locks(&self.context.options, &ticket);
                reader.continue_snapshot(&self.context.catalogue);
                let interrupt: Arc<dyn Interrupt> = Arc::new(Either(ticket.clone(), session.ticket.clone()));
                let started = ticket.note_start(ExecutedOn::Reader, || reader.busy_timeout.waited());
                // SQL functions of the user run here.
                let answer = mark_closure(|| reader.in_session(session, work, &interrupt));
                ticket.note_end(started, || reader.busy_timeout.waited());
                let answer = answer.map_err(|error| match session.noted_end() {
                    Some(end)
                        if error.kind() == ErrorKind::Cancelled && !end.is_finished() && !ticket.is_past_deadline() =>
                    {
                        ended(&end)
                    }
                    _ => ticket.timed(error),
                });
                let error = answer.as_ref().err().cloned();
                outbox.answer(kind, &ticket, reply_to, answer);
                if session.purpose == Purpose::Snapshot && !reader.is_in_snapshot() {
                    return Some(End::Lost(error.unwrap_or_else(ended_by_statement)));
                }
            }
        }
        (session.purpose == Purpose::Cursor && !reader.cursors.are_open()).then_some(End::Finished)
    }

    fn end_session(&self, session: &Arc<ReadSession>, reader: Option<Box<Reader>>, end: End, outbox: &mut Outbox<'_>) {
        let usable = reader.and_then(|mut reader| (reader.end_held() && !self.is_drained(&reader)).then_some(reader));
        if usable.is_none() {
            self.context.recorder.replaced_connection();
        }
        let (end, requests) = session.close(end);
        for request in requests {
            outbox.finish(request, Err(ended(&end)));
        }
        self.lock().is_over(&session.ticket);
        self.release(usable);
    }
}

impl Reader {
    fn end_cursor(&mut self, number: u64) {
        self.cursors.end(&mut self.connection, number);
    }

    /// Performs a request of a session.
    fn in_session(&mut self, session: &Arc<ReadSession>, work: Work, interrupt: &Arc<dyn Interrupt>) -> Result<Answer> {
        if let Work::Fetch(number) = work {
            self.connection.sqlite.hooks().interrupts.arm(interrupt.clone());
            let batch = self.cursors.fetch(&mut self.connection, number);
            self.connection.sqlite.hooks().interrupts.disarm();
            return batch.map(|Batch { rows, cursor }| Answer::Fetched(Box::new((rows, cursor.is_some()))));
        }
        match query(self, work, interrupt) {
            Performed::Answered(answer) => answer,
            Performed::Opened(Some((rows, number))) => {
                Ok(Answer::Begun(Box::new((rows, CursorGuard::new(Arc::new(OpenSession(session.clone())), number)))))
            }
            Performed::Write(_, Some(error)) => Err(error),
            Performed::Write(work, None) => Err(work.explain(snapshot_writes())),
            Performed::Opened(None) => Err(snapshot_writes()),
        }
    }
}

pub(super) struct OpenSession(pub(super) Arc<ReadSession>);

impl KeptConnection for OpenSession {
    fn send(&self, request: Request) -> Result<()> {
        self.0.post(Message::Request(Box::new(request), ()))
    }

    fn end_cursor(&self, number: u64) {
        // A session that has ended has no cursors.
        let _ = self.0.post(Message::Aside(EndCursor(number)));
    }

    fn end(&self) {
        if self.0.purpose == Purpose::Cursor || !self.0.end_inline() {
            self.0.finish(End::Finished);
        }
    }

    fn runs_inline(&self) -> bool {
        self.0.purpose == Purpose::Snapshot
    }

    fn run_inline(&self, work: &Work, permit: &Permit<'_>, _: CallOptions) -> Tried {
        let Work::Query { text, params, .. } = work else { return Tried::Ran(InlineRun::Ineligible(NotTried::Other)) };
        let (output, cookie) = (work.output(), None);
        let query = InlineQuery { text, params, output, permit, cookie, calls_timed: false };
        Tried::Ran(self.0.run_inline(query))
    }

    fn touch(&self) {
        self.0.touch();
    }
}
