//! Serving the requests of a connection of a caller, one by one.
//!
//! Owns: the thread that has the connection, which it gives back when there is no message. Runs on helper threads,
//! which may block. Invariants: every request is answered; the answers are delivered when the next request of the
//! caller would find the connection at rest; a panic, which only a bug in this crate or a function of the caller can
//! cause, costs the connection. Leaves out: what is sent (`mod`), what a request does (`runner`).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use flatwater_sqlite::{Callbacks, Interrupt};

use super::lent_slot::LentSlot;
use super::runner::{Runner, State, Step};
use super::{End, Ends, Given, Inbox, Message, OwnConnection};
use crate::error::system::no_thread;
use crate::error::{Error, Result};
use crate::events::statement_event::ExecutedOn;
use crate::sql::tokens::rolls_back;
use crate::thread::background::run_waiting;
use crate::thread::block_on::mark_closure;
use crate::values::executed::{BatchResult, ExecuteResult};
use crate::workers::Answer;
use crate::workers::kept_connection::KeptConnection;
use crate::workers::open_transaction::End as TransactionEnd;
use crate::workers::outbox::Outbox;
use crate::workers::request::Request;
use crate::workers::shared_errors::fault;
use crate::workers::work::Work;
use crate::workers::writer::round::may_come_of_a_close;
use crate::workers::writer::state::OwnSettings;
use crate::workers::writer::writer_connection::WriterConnection;

/// A request that has waited for the slot, and what came of that.
pub(super) type Resumed = (Box<Request>, Result<LentSlot>);

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
    /// Has a thread serve the messages, first the one that was resumed.
    pub(super) fn serve_on_a_thread(&self, runner: Box<Runner>, resumed: Option<Resumed>) {
        let Some(this) = self.this.upgrade() else { return };
        let place = Arc::new(Mutex::new(Some((runner, resumed))));
        let take = |place: &Mutex<Option<(Box<Runner>, Option<Resumed>)>>| {
            place.lock().unwrap_or_else(PoisonError::into_inner).take()
        };
        let taken = place.clone();
        let served = this.clone();
        let started = run_waiting("fw-own", move || {
            if let Some((runner, resumed)) = take(&taken)
                && catch_unwind(AssertUnwindSafe(|| served.serve(runner, resumed))).is_err()
            {
                lose(&served);
            }
        });
        if let Err(error) = started
            && let Some((runner, resumed)) = take(&place)
        {
            this.refuse(runner, resumed, &no_thread("a thread of a connection", &error));
        }
    }

    /// Serves messages until there is none, or the first waits.
    fn serve(&self, mut runner: Box<Runner>, resumed: Option<Resumed>) {
        let mut outbox = Outbox::decoding(&self.given.context.recorder);
        let mut next = resumed.map(|(request, slot)| (Message::Request(request), Some(slot)));
        loop {
            let (message, slot) = match next.take() {
                Some(next) => next,
                None => match self.next(runner) {
                    Ok((at, message)) => {
                        runner = at;
                        outbox.deliver();
                        (message, None)
                    }
                    Err(()) => return outbox.deliver(),
                },
            };
            match message {
                Message::End(end) => return self.close(runner, end, None, &mut outbox),
                Message::Idle => {
                    let state = runner.roll_back();
                    self.note(state);
                }
                Message::Request(request) => {
                    if matches!(request.work, Work::Leave) {
                        return self.close(runner, End::Finished, Some(request), &mut outbox);
                    }
                    runner = match self.request(runner, request, slot, &mut outbox) {
                        Some(runner) => runner,
                        None => return outbox.deliver(),
                    };
                }
            }
        }
    }

    /// Returns the next message, or puts the connection to rest.
    fn next(&self, runner: Box<Runner>) -> Result<(Box<Runner>, Message), ()> {
        let mut inbox = self.lock();
        let in_transaction = self.in_transaction.load(Ordering::Relaxed);
        match inbox.messages.pop_front() {
            Some(message) => Ok((runner, message)),
            None if inbox.closes && !in_transaction => {
                inbox.end.get_or_insert(End::Closed);
                Ok((runner, Message::End(End::Closed)))
            }
            None => {
                come_to_rest(self, inbox, runner, true);
                Err(())
            }
        }
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
        if let Some(told) = self.tell_of_end(&request.work) {
            answer(*request, told, outbox);
            return Some(runner);
        }
        match slot {
            Some(Ok(slot)) => runner.takes(slot),
            Some(Err(error)) => {
                answer(*request, Err(error), outbox);
                return Some(runner);
            }
            None => {}
        }
        let ran = catch_unwind(AssertUnwindSafe(|| mark_closure(|| self.run(&mut runner, &request))));
        match ran {
            Ok(Step::NeedsSlot) => self.wait_for_slot(runner, request, outbox),
            Ok(Step::Answered(result)) => {
                let was_in_transaction = self.in_transaction.load(Ordering::Relaxed);
                let state = runner.rest();
                self.note(state);
                if let Some(writer) = &self.given.writer {
                    runner.see_schema(&writer.0.context.catalogue.left);
                }
                let error = result.as_ref().err().cloned();
                let has_left = request.ticket.is_interrupted();
                answer(*request, result, outbox);
                if let Some(error) = error {
                    if state.is_gone {
                        self.close(runner, End::Lost(error), None, outbox);
                        return None;
                    }
                    // The statement took the transaction along, and its caller does not learn of it.
                    if was_in_transaction && !state.in_transaction && has_left {
                        self.lock().ended = Some(TransactionEnd::Lost(error).error());
                    }
                }
                Some(runner)
            }
            Err(_) => {
                let error = fault();
                answer(*request, Err(error.clone()), outbox);
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
            Work::Execute { text, .. } if rolls_back(&text.sql) => Ok(Answer::Executed(ExecuteResult::default())),
            Work::Batch(statements)
                if let Some((text, _)) = statements.only()
                    && rolls_back(&text.sql) =>
            {
                Ok(Answer::Batch(vec![BatchResult { executed: ExecuteResult::default(), rows: None }]))
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
        let mut inbox = self.lock();
        let end = inbox.end.get_or_insert(end).clone();
        let messages = std::mem::take(&mut inbox.messages);
        drop(inbox);
        if let Some(request) = asked {
            request.ticket.start();
            answer(*request, Ok(Answer::Done), outbox);
        }
        for message in messages {
            let Message::Request(request) = message else { continue };
            if request.ticket.start() {
                let told = if request.work.describe().undoes() { Ok(Answer::Done) } else { Err(end.error()) };
                answer(*request, told, outbox);
            }
        }
        outbox.deliver();
    }

    /// No thread can be started: what was to be served is answered with the error. A close is served on this thread, and so
    /// is a commit that failed, which nobody may write before.
    fn refuse(&self, runner: Box<Runner>, resumed: Option<Resumed>, error: &Error) {
        let mut outbox = Outbox::passing_on(&self.given.context.recorder);
        let mut inbox = self.lock();
        let is_left = |message: &Message| match message {
            Message::Request(request) => !matches!(request.work, Work::Leave | Work::Settle(_)),
            _ => false,
        };
        let (left, kept): (Vec<_>, Vec<_>) = std::mem::take(&mut inbox.messages).into_iter().partition(is_left);
        let runner = if kept.is_empty() {
            come_to_rest(self, inbox, runner, true);
            None
        } else {
            inbox.messages.extend(kept);
            drop(inbox);
            Some(runner)
        };
        let resumed = resumed.map(|(request, slot)| {
            drop(slot);
            Message::Request(request)
        });
        for message in resumed.into_iter().chain(left) {
            let Message::Request(request) = message else { continue };
            if request.ticket.start() {
                answer(*request, Err(error.clone()), &mut outbox);
            }
        }
        outbox.deliver();
        if let Some(runner) = runner {
            self.serve(runner, None);
        }
    }
}

/// Puts the connection to rest. `looks`: its transaction may be one whose idle limit nobody looks at.
pub(super) fn come_to_rest(own: &OwnConnection, mut inbox: MutexGuard<'_, Inbox>, runner: Box<Runner>, looks: bool) {
    inbox.idle_since = Instant::now();
    inbox.resting = Some(runner);
    drop(inbox);
    if looks && own.in_transaction.load(Ordering::Relaxed) {
        own.look_later();
    }
}

/// Ends a connection that was closed by a panic outside of its statements, which only a bug in this crate can cause, and answers
/// what waits. Returns the reason.
pub(super) fn lose(own: &OwnConnection) -> Error {
    let (error, mut outbox) = (fault(), Outbox::passing_on(&own.given.context.recorder));
    own.close(Box::new(Runner::of(&own.given)), End::Lost(error.clone()), None, &mut outbox);
    error
}

pub(super) fn answer(request: Request, result: Result<Answer>, outbox: &mut Outbox<'_>) {
    outbox.answer(request.work.describe().kind, &request.ticket, request.reply_to, result);
}
