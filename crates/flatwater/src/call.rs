//! The future that every operation returns.
//!
//! Owns: the steps of one call as its caller sees them (try it on this thread, send a request, wait for a place in the
//! queue, wait for the answer), and what happens if the caller drops it at any of them. Runs on the thread that polls
//! it, never blocks there, and depends on no runtime. Invariants: nothing begins before the first poll; after the
//! caller dropped the call, a waiting request never runs, a running read ends early, and a running write is finished.
//! Leaves out: what the request does.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use flatwater_sqlite::is_stranded;

use crate::engine::handle::{Handle, called_from_within, refuse_forked};
use crate::engine::inline::Stayed;
use crate::engine::{Engine, Server};
use crate::error::{Applied, Error, Kind, Result};
use crate::inline::budget;
use crate::queue::reply::{Reply, reply};
use crate::queue::ticket::{CallOptions, Ticket};
use crate::stage::{Asked, DoneAfterPanic, SHORTEST, Stage};
use crate::thread::park::{block_on, in_closure, must_not_block};
use crate::thread::scope::is_inside;
use crate::time::timer;
use crate::workers::request::{Answer, Request, Work};
use crate::workers::session::Inside;

/// The future of one operation. It begins when it is first polled, and it can be moved to any task or thread. To wait
/// for it without a runtime, use [`wait`](Call::wait).
///
/// A poll never blocks. If the statement is known to be short and a connection is free, the first poll runs it on the
/// polling thread and returns its result at once ([`Options::inline`](crate::Options::inline)); otherwise the request
/// goes to one of the database's threads, which wakes the task. When a thread has run 1 ms of statements in this way,
/// the call returns `Pending` once before yielding its result, so that other tasks run. Writes run in the order of
/// their first polls.
///
/// Dropping a call cancels it: a request that is still waiting never runs, a running read is interrupted, and a running
/// write is finished although nothing receives its result.
#[must_use = "a call begins when it is awaited"]
pub struct Call<T> {
    handle: Arc<Handle>,
    /// The transaction this call belongs to, if any.
    inside: Option<Arc<Inside>>,
    options: CallOptions,
    operation: &'static str,
    stage: Stage,
    /// Set while the request may be in a queue or with a worker.
    asked: Option<Box<Asked>>,
    read: fn(Answer) -> Result<T>,
}

impl<T> Call<T> {
    pub(crate) fn new(
        handle: &Arc<Handle>,
        inside: Option<&Arc<Inside>>,
        options: CallOptions,
        operation: &'static str,
        work: Result<Work>,
        read: fn(Answer) -> Result<T>,
    ) -> Self {
        let stage = work.map_or_else(|error| Stage::Refused(error.in_operation(operation)), Stage::New);
        Self { handle: handle.clone(), inside: inside.cloned(), options, operation, stage, asked: None, read }
    }

    /// Blocks this thread until the result is there. This must not be a thread that runs an event loop. If a connection
    /// is free, the work is done on this thread.
    ///
    /// # Errors
    /// As the operation; `Misuse` where waiting could be for this thread itself: in a closure on a connection, or on a
    /// thread of the database.
    pub fn wait(mut self) -> Result<T> {
        if must_not_block() {
            return Err(called_from_within().in_operation(self.operation));
        }
        if self.inside.is_none()
            && matches!(self.stage, Stage::New(_))
            && let Stage::New(work) = std::mem::replace(&mut self.stage, Stage::Done)
        {
            self.may_begin().map_err(|error| error.in_operation(self.operation))?;
            let stayed = if self.may_run_inline() { self.handle.stay(None, &work, self.options) } else { None };
            match stayed {
                Some(Stayed::Answered(answer)) => {
                    budget::suspend();
                    return answer.and_then(self.read);
                }
                Some(Stayed::Unsettled(reply)) => self.stage = Stage::unsettled(reply),
                None => self.run_here(work)?,
            }
        }
        block_on(self)
    }

    /// Has the work done, on this thread if possible.
    fn run_here(&mut self, work: Work) -> Result<()> {
        let (request, reply) = self.request(work)?;
        let server = self.handle.server(&request.work);
        self.refuse_to_wait_for_itself(server)?;
        match self.handle.run_here(server, request) {
            None => self.stage = Stage::Waiting { server, place: None, reply },
            Some(request) => self.push(server, request, reply)?,
        }
        Ok(())
    }

    fn engine(&self) -> &Engine {
        self.handle.engine()
    }

    /// Makes the request for `work`. The deadline counts from here.
    fn request(&mut self, work: Work) -> Result<(Request, Reply<Result<Answer>>)> {
        self.may_begin().map_err(|error| error.in_operation(self.operation))?;
        let (promise, reply) = reply();
        let (options, had_active_writes) = (self.options, self.handle.engine().has_active_writes());
        let asked = self.asked.get_or_insert_with(|| {
            let ticket = Arc::new(Ticket::new(options, Instant::now()));
            Box::new(Asked { ticket, alarm: None, had_active_writes })
        });
        let ticket = asked.ticket.clone();
        if let Some(deadline) = ticket.deadline {
            let (waiting, nudge) = (ticket.clone(), reply.nudge());
            let alarm = timer::at(deadline, move || {
                if waiting.give_up() {
                    nudge();
                }
            });
            asked.alarm = Some(
                alarm
                    .map_err(|error| Error::new(Kind::Io, format!("the timer's thread cannot be started: {error}")))?,
            );
        }
        Ok((Request::new(ticket, work, promise), reply))
    }

    fn may_begin(&self) -> Result<()> {
        refuse_forked()?;
        if in_closure() {
            return Err(called_from_within());
        }
        if self.inside.is_none() && self.asked.is_none() && self.handle.is_closed() {
            return Err(Error::closed());
        }
        Ok(())
    }

    /// Whether the call may be tried on this thread. A call with hardly any time left is not: it is to fail with a
    /// timeout.
    fn may_run_inline(&self) -> bool {
        self.options.timeout.is_none_or(|timeout| timeout >= SHORTEST)
    }

    /// Refuses a write that the body of a transaction makes outside of it: the write would wait for that transaction's
    /// end.
    fn refuse_to_wait_for_itself(&self, server: Server) -> Result<()> {
        if server == Server::Writer && is_inside(self.handle.id()) {
            return Err(Error::misuse("the body of a transaction used the database, which waits for that transaction")
                .with_hint("use the transaction the body was given")
                .in_operation(self.operation));
        }
        Ok(())
    }

    /// Whether the deadline passed before the request was begun.
    fn is_too_late(&self) -> bool {
        self.asked.as_ref().is_some_and(|asked| asked.ticket.is_given_up())
    }

    fn too_late(&self) -> Error {
        Error::timeout("the deadline of the call passed while it waited", Applied::No).in_operation(self.operation)
    }

    /// Runs the work on this thread, if it is known to be short.
    fn stay(&mut self) -> Option<Poll<Result<T>>> {
        if !matches!(self.stage, Stage::New(_)) {
            return None;
        }
        if let Err(error) = self.may_begin() {
            self.stage = Stage::Done;
            return Some(Poll::Ready(Err(error.in_operation(self.operation))));
        }
        if !self.may_run_inline() {
            return None;
        }
        let panics = DoneAfterPanic(&mut self.stage);
        let Stage::New(work) = &*panics.0 else { return None };
        let stayed = self.handle.stay(self.inside.as_deref(), work, self.options);
        drop(panics);
        let answer = match stayed? {
            Stayed::Answered(answer) => answer,
            Stayed::Unsettled(reply) => {
                self.stage = Stage::unsettled(reply);
                return None;
            }
        };
        if !budget::is_spent() {
            self.stage = Stage::Done;
            return Some(Poll::Ready(answer.and_then(self.read)));
        }
        self.engine().yielded();
        self.stage = Stage::Held(answer);
        Some(Poll::Pending)
    }

    fn step(&mut self, context: &mut Context<'_>) -> Poll<Result<T>> {
        if let Some(answer) = self.stay() {
            if answer.is_pending() {
                context.waker().wake_by_ref();
            }
            return answer;
        }
        loop {
            match std::mem::replace(&mut self.stage, Stage::Done) {
                Stage::Refused(error) => return Poll::Ready(Err(error)),
                Stage::Done => {
                    return Poll::Ready(Err(Error::misuse("the call was polled again after it had answered")));
                }
                Stage::New(work) => {
                    let (request, reply) = self.request(work)?;
                    if let Some(inside) = &self.inside {
                        inside
                            .session
                            .send(request, &inside.savepoints)
                            .map_err(|error| error.in_operation(self.operation))?;
                        self.stage = Stage::Waiting { server: Server::Writer, place: None, reply };
                    } else {
                        let server = self.handle.server(&request.work);
                        self.refuse_to_wait_for_itself(server)?;
                        self.push(server, request, reply)?;
                    }
                }
                Stage::Held(answer) => return Poll::Ready(answer.and_then(self.read)),
                Stage::Waiting { server, place, mut reply } => match Pin::new(&mut reply).poll(context) {
                    // Asked for after the reply knows whom to wake, or a deadline in between would wake nobody.
                    Poll::Pending if self.is_too_late() => {
                        self.engine().leave(server, place);
                        return Poll::Ready(Err(self.too_late()));
                    }
                    Poll::Pending => {
                        self.stage = Stage::Waiting { server, place, reply };
                        return Poll::Pending;
                    }
                    Poll::Ready(Some(Ok(Answer::ForWriter(work, error)))) => self.ask_the_writer(work, error)?,
                    Poll::Ready(Some(answer)) => return Poll::Ready(answer.and_then(self.read)),
                    Poll::Ready(None) if self.is_too_late() => return Poll::Ready(Err(self.too_late())),
                    Poll::Ready(None) => return Poll::Ready(Err(self.nobody_answers())),
                },
            }
        }
    }

    fn push(&mut self, server: Server, request: Request, reply: Reply<Result<Answer>>) -> Result<()> {
        match self.handle.push(server, request) {
            Ok(place) => self.stage = Stage::Waiting { server, place, reply },
            Err(error) => {
                // It may be in the queue, without a thread to serve it: it must never run.
                if let Some(asked) = &self.asked {
                    asked.ticket.give_up();
                }
                return Err(error.in_operation(self.operation));
            }
        }
        Ok(())
    }

    /// Sends the work to the writer, because a reader found that it cannot serve it. The reader's own error is final if
    /// no write can change it any more.
    fn ask_the_writer(&mut self, work: Work, error: Option<Error>) -> Result<()> {
        let had_active_writes = self.asked.as_ref().is_some_and(|asked| asked.had_active_writes);
        let is_settled = || !had_active_writes && !self.engine().has_active_writes();
        if let Some(error) = error
            && (self.handle.is_read_only() || is_settled())
        {
            return Err(error.in_operation(self.operation));
        }
        self.refuse_to_wait_for_itself(Server::Writer)?;
        if let Some(asked) = &self.asked {
            asked.ticket.put_back();
        }
        let (request, reply) = self.request(work)?;
        self.push(Server::Writer, request, reply)
    }

    #[cold]
    fn nobody_answers(&self) -> Error {
        let error = if let Err(error) = refuse_forked() {
            error
        } else if self.handle.is_closed() {
            Error::closed()
        } else {
            Error::misuse("the request was lost to a panic inside Flatwater, and the connection was replaced")
                .with_hint("please report it; whether a write was applied can be read from the database")
        };
        error.in_operation(self.operation)
    }
}

impl<T> Future for Call<T> {
    type Output = Result<T>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let answer = this.step(context);
        if answer.is_ready() {
            this.asked = None;
        } else {
            budget::suspend();
        }
        answer
    }
}

impl<T> Drop for Call<T> {
    fn drop(&mut self) {
        if is_stranded() {
            return;
        }
        if let Stage::Waiting { server, place, .. } = self.stage {
            self.engine().leave(server, place);
        }
        if let Some(Asked { ticket, .. }) = self.asked.as_deref()
            && !ticket.give_up()
        {
            ticket.cancel();
        }
    }
}

impl<T> std::fmt::Debug for Call<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Call").field("operation", &self.operation).finish_non_exhaustive()
    }
}
