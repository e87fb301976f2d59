//! Serving the requests of a connection of a caller, one by one.
//!
//! Owns: the thread that has the connection, which it gives back when there is no message. Runs on helper threads,
//! which may block. Invariants: every request is answered; the answers are delivered when the next request of the
//! caller would find the connection at rest; a panic, which only a bug in this crate or a function of the caller can
//! cause, costs the connection. Leaves out: what is sent (`mod`), what a request does (`runner`).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use flatwater_sqlite::{Callbacks, Interrupt};

use super::lent_slot::LentSlot;
use super::runner::{Runner, State, Step};
use super::{Aside, Ends, Given, Message, OwnConnection, ended, ends_now};
use crate::events::statement_event::ExecutedOn;
use crate::workers::kept::KeptConnection;
use crate::workers::kept::inbox::End;
use crate::workers::outbox::Outbox;
use crate::workers::request::Request;
use crate::workers::shared_errors::{fault, may_come_of_a_close};
use crate::workers::work::{Ours, Wanted, Work};
use crate::workers::writer::state::OwnSettings;
use crate::workers::writer::writer_connection::WriterConnection;
use crate::workers::{Answer, open_transaction};
use flatwater_base::error::cause::no_thread;
use flatwater_base::error::{Error, Result};
use flatwater_base::thread::background::run_waiting;
use flatwater_base::thread::current::mark_closure;
use flatwater_base::values::outcome::ExecuteResult;
use flatwater_sql::tokens::rolls_back;

impl Runner {
    pub(super) fn of(given: &Given) -> Self {
        let is_in_memory = given.options.is_memory();
        let own = || {
            let is_left = given.writer.as_ref().map(|writer| writer.0.is_left.clone()).unwrap_or_default();
            let own = OwnSettings { options: given.options.clone(), functions: given.functions.clone() };
            WriterConnection::of_caller(&given.context, own, is_left)
        };
        Self::new((!is_in_memory).then(own), given.writer.is_some() && given.journal != "wal", &given.options)
    }
}

impl OwnConnection {
    /// Has a thread serve the messages.
    pub(super) fn serve_on_a_thread(&self) {
        let Some(this) = self.this.upgrade() else { return };
        let started = run_waiting("fw-own", move || {
            if catch_unwind(AssertUnwindSafe(|| this.serve())).is_err() {
                lose(&this);
            }
        });
        if let Err(error) = started {
            self.refuse(&no_thread("a thread of a connection", &error));
        }
    }

    /// Serves messages until there is none, or the first waits.
    fn serve(&self) {
        let mut outbox = Outbox::decoding(&self.given.context.recorder);
        let taken = self.lock().inbox.take();
        let mut next = taken;
        while let Some((mut runner, message)) = next {
            let served = match message {
                Message::Request(request, ()) if matches!(request.work, Work::Leave) => {
                    return self.close(runner, End::Finished, Some(request), &mut outbox);
                }
                Message::Request(request, ()) => self.request(runner, request, None, &mut outbox),
                Message::Aside(Aside::Resumed(request, slot)) => self.request(runner, request, Some(slot), &mut outbox),
                Message::Aside(Aside::Idle) => {
                    self.note(runner.roll_back());
                    Some(runner)
                }
                Message::End => return self.close(runner, End::Finished, None, &mut outbox),
            };
            next = served.and_then(|runner| self.next(runner));
            outbox.deliver();
        }
    }

    /// Returns the next message, or puts the connection to rest.
    fn next(&self, runner: Box<Runner>) -> Option<(Box<Runner>, Message)> {
        let mut at = self.lock();
        if !at.inbox.has_message() {
            let _ = ends_now(self, &mut at);
        }
        let next = at.inbox.next(runner);
        drop(at);
        if next.is_none() && self.in_transaction.load(Ordering::Relaxed) {
            self.look_later();
        }
        next
    }

    /// Serves one request. Returns `None` if the connection waits for its slot, or is gone.
    pub(super) fn request(
        &self,
        mut runner: Box<Runner>,
        request: Box<Request>,
        slot: Option<Result<LentSlot>>,
        outbox: &mut Outbox<'_>,
    ) -> Option<Box<Runner>> {
        if !request.ticket.start() {
            self.given.context.recorder.counts.abandoned.count();
            // A slot that came too late is given back.
            if let Some(Ok(slot)) = slot {
                runner.takes(slot);
                runner.rest();
            }
            return Some(runner);
        }
        if let Some(answered) = self.tell_of_end(&request.work) {
            outbox.finish(*request, answered);
            return Some(runner);
        }
        match slot {
            Some(Ok(slot)) => runner.takes(slot),
            Some(Err(error)) => {
                outbox.finish(*request, Err(error));
                return Some(runner);
            }
            None => {}
        }
        let ran = catch_unwind(AssertUnwindSafe(|| mark_closure(|| self.run(&mut runner, &request))));
        match ran {
            Ok(Step::NeedsSlot) => self.wait_for_slot(runner, request, outbox),
            Ok(Step::Answered(result)) => answered(self, runner, *request, result, outbox),
            Err(_) => {
                let error = fault();
                outbox.finish(*request, Err(error.clone()));
                self.close(runner, End::Lost(error), None, outbox);
                None
            }
        }
    }

    fn run(&self, runner: &mut Runner, request: &Request) -> Step {
        if let Err(error) = self.given.list.enter(self) {
            return Step::Answered(Err(error));
        }
        self.flags.interrupted.store(false, Ordering::Relaxed);
        let ends: Arc<dyn Interrupt> = Arc::new(Ends(request.ticket.clone(), self.flags.clone()));
        let started = request.ticket.note_start(ExecutedOn::Writer, std::time::Duration::default);
        let step = runner.run(&request.work, &request.ticket, &ends, self.callbacks());
        request.ticket.note_end(started, std::time::Duration::default);
        match step {
            Step::Answered(Err(error)) if self.flags.ended.load(Ordering::Relaxed) && may_come_of_a_close(&error) => {
                Step::Answered(Err(Error::closed()))
            }
            step => step,
        }
    }

    /// Returns the answer to the first request after the transaction was ended without its caller: why that was.
    fn tell_of_end(&self, work: &Work) -> Option<Result<Answer>> {
        let error = self.lock().ended.take()?;
        Some(match work {
            Work::Execute { text, .. } | Work::Query { text, wanted: Wanted::Ran, .. } if rolls_back(&text.sql) => {
                Ok(Answer::Executed(ExecuteResult::default()))
            }
            work => Err(work.explain(error)),
        })
    }

    /// Notes what the connection says of itself.
    pub(super) fn note(&self, state: State) {
        self.in_transaction.store(state.in_transaction, Ordering::Relaxed);
        if let Some(total_changes) = state.total_changes {
            self.total_changes.store(total_changes, Ordering::Relaxed);
        }
    }

    /// Closes the connection, and answers who has asked for that, and what waits.
    fn close(&self, runner: Box<Runner>, end: End, asked: Option<Box<Request>>, outbox: &mut Outbox<'_>) {
        let closed = catch_unwind(AssertUnwindSafe(|| mark_closure(|| runner.close())));
        // A panic in it has closed the connection too.
        drop(closed);
        self.looks.end();
        self.note(State::default());
        self.given.list.leave(self);
        if let Some(functions) = self.functions() {
            // What one owns may own a handle of the connection.
            functions.let_go();
        }
        self.set_callbacks(|callbacks| *callbacks = Callbacks::default());
        let (end, messages) = self.lock().inbox.over(end);
        if let Some(request) = asked {
            request.ticket.start();
            outbox.finish(*request, Ok(Answer::Done));
        }
        for request in messages.into_iter().filter_map(request_of) {
            if request.ticket.start() {
                let answered = if request.work.describe().undoes() { Ok(Answer::Done) } else { Err(ended(&end)) };
                outbox.finish(*request, answered);
            }
        }
        outbox.deliver();
    }

    /// No thread can be started: what was to be served is answered with the error. A close is served on this thread, and so
    /// is a commit that failed, which nobody may write before.
    fn refuse(&self, error: &Error) {
        let mut outbox = Outbox::passing_on(&self.given.context.recorder);
        let is_refused = |message: &Message| match message {
            Message::Request(request, ()) => !matches!(request.work, Work::Leave | Work::Ours(Ours::Settle(_))),
            Message::Aside(aside) => matches!(aside, Aside::Resumed(..)),
            Message::End => false,
        };
        let mut at = self.lock();
        let refused = at.inbox.take_messages(is_refused);
        let has_more = at.inbox.has_message() || ends_now(self, &mut at);
        drop(at);
        for request in refused.into_iter().filter_map(request_of) {
            if request.ticket.start() {
                outbox.finish(*request, Err(error.clone()));
            }
        }
        outbox.deliver();
        if has_more {
            self.serve();
        } else if self.in_transaction.load(Ordering::Relaxed) {
            self.look_later();
        }
    }
}

/// Answers a request that has run, and lets the connection be as it left it. Returns `None` if it is gone.
fn answered(
    own: &OwnConnection,
    mut runner: Box<Runner>,
    request: Request,
    result: Result<Answer>,
    outbox: &mut Outbox<'_>,
) -> Option<Box<Runner>> {
    let was_in_transaction = own.in_transaction.load(Ordering::Relaxed);
    let state = runner.rest();
    own.note(state);
    if let Some(writer) = &own.given.writer {
        runner.see_schema(&writer.0.context.catalogue.left);
    }
    let error = result.as_ref().err().cloned();
    let has_left = request.ticket.is_interrupted();
    outbox.finish(request, result);
    if let Some(error) = error {
        if state.is_gone {
            own.close(runner, End::Lost(error), None, outbox);
            return None;
        }
        // The statement took the transaction along, and its caller does not learn of it.
        if was_in_transaction && !state.in_transaction && has_left {
            own.lock().ended = Some(open_transaction::ended(&End::Lost(error)));
        }
    }
    Some(runner)
}

/// A slot that came for it is given back.
fn request_of(message: Message) -> Option<Box<Request>> {
    match message {
        Message::Request(request, ()) | Message::Aside(Aside::Resumed(request, _)) => Some(request),
        Message::Aside(Aside::Idle) | Message::End => None,
    }
}

/// Ends a connection that was closed by a panic outside of its statements, which only a bug in this crate can cause, and answers
/// what waits. Returns the reason.
pub(super) fn lose(own: &OwnConnection) -> Error {
    let (error, mut outbox) = (fault(), Outbox::passing_on(&own.given.context.recorder));
    own.close(Box::new(Runner::of(&own.given)), End::Lost(error.clone()), None, &mut outbox);
    error
}
