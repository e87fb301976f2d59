//! The dispatch of one call: it runs on the caller's thread, or goes through a queue to one of Flatwater's threads.
//!
//! Owns: the route, decided once; the inline run; and the request with its deadline. Runs on the
//! thread that begins the call, and blocks it only if the caller allows that. It does not depend on futures: awaiting a
//! call is one way to wait for the answer. Invariants: a call that is answered at once allocates nothing here; a
//! request that was given up before it began never runs. Leaves out: giving a request up (`queued`), what a request does, and the hand-over from a
//! reader to the writer (`workers::readers`), in which the caller has no part.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::cancelled::CancelOutcome;
use super::handle::{Handle, Host, called_from_within};
use super::opening::Opening;
use super::queued::{Line, Queued, alarm};
use super::served::Served;
use crate::error::cause::no_thread;
use crate::error::{Error, Result};
use crate::options::JsonOptions;
use crate::queue::reply::{Reply, reply, wake};
use crate::queue::run_metrics::RunMetrics;
use crate::queue::ticket::{CallOptions, Ticket};
use crate::sql;
use crate::thread::background;
use crate::thread::current::{in_closure, is_inside};
use crate::workers::Answer;
use crate::workers::kept::KeptConnection;
use crate::workers::open_transaction::Inside;
use crate::workers::readers::Readers;
use crate::workers::request::Request;
use crate::workers::shared_errors::{opened_to_read, too_late, waits_for_itself};
use crate::workers::work::Work;
use crate::workers::writer::Writer;

/// A call with a shorter timeout does not run inline: it must fail with a timeout.
const SHORTEST: Duration = Duration::from_millis(1);

/// The origin of a call: the handle, the transaction that the call belongs to if any, and the options.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) handle: Arc<Handle>,
    pub(crate) inside: Option<Arc<Inside>>,
    /// The connection that is kept for the caller: for a snapshot, for a cursor, or its own.
    pub(crate) kept: Option<Arc<dyn KeptConnection>>,
    pub(crate) options: CallOptions,
    /// `None`: the defaults.
    pub(crate) json: Option<Arc<JsonOptions>>,
}

/// The worker that serves a call.
#[derive(Clone, Copy)]
pub(crate) enum Route<'a> {
    Transaction(&'a Inside),
    Kept(&'a dyn KeptConnection),
    Writer(&'a Writer),
    Readers(&'a Readers),
    Server(&'a Served),
}

/// What became of a call that was tried on its caller's thread.
pub(crate) enum Begun<'a> {
    /// With the time that it ran here, if it did.
    Answered(Result<Answer>, Option<Duration>),
    /// Its write failed, and a worker determines the outcome.
    Unsettled(Reply<Result<Answer>>),
    /// It did not run, or had no effect: it is to be sent.
    ToSend(Route<'a>),
}

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
        let run = move || {
            if let Ok(waiter) = promise.fill(work()) {
                wake(waiter);
            }
        };
        background::run_waiting("fw-open", run).map_err(|error| no_thread("a thread", &error))?;
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

impl Caller {
    /// Returns the caller of a call that is made now. In Rust a transaction is not used while a nested one has a handle,
    /// so those that were begun before have none any more; the call may be polled when there are later ones.
    pub(crate) fn now(&self) -> Self {
        let mut caller = self.clone();
        if let Some(inside) = &caller.inside {
            caller.options.ended_nested = inside.transaction.savepoints_begun();
        }
        caller
    }

    /// Begins the work, whose deadline counts from here: runs it on this thread if it is known to be short. The work is only
    /// borrowed for that; it moves if it has to be sent.
    pub(crate) fn begin(&self, work: &Work) -> Begun<'_> {
        let route = self.may_begin().and_then(|()| self.route(work));
        match route {
            Err(error) => Begun::Answered(Err(error), None),
            Ok(_) if self.options.timeout == Some(Duration::ZERO) => Begun::Answered(Err(too_late()), None),
            Ok(route) if self.options.timeout.is_some_and(|timeout| timeout < SHORTEST) => Begun::ToSend(route),
            // A write in a snapshot is refused by a worker.
            Ok(route) if self.inside.is_some() && self.options.read_only && !work.describe().only_reads() => {
                Begun::ToSend(route)
            }
            Ok(route) => match self.handle.host() {
                Host::Engine(engine) => engine.run_inline(route, work, self.options),
                Host::Server(_) => Begun::ToSend(route),
            },
        }
    }

    /// Sends a request for the work, or runs it on this thread if that `may_block` and a connection is free. A worker
    /// notes its run in `metrics`. Whoever gives the `opening` up gives the request up.
    pub(crate) fn send(
        &self,
        route: Route<'_>,
        work: Work,
        may_block: bool,
        metrics: Option<Arc<RunMetrics>>,
        opening: Option<&Opening>,
    ) -> Result<Submitted> {
        let inside_body = self.options.inside_body || is_inside(self.handle.id());
        let is_in_line = match route {
            Route::Writer(_) => true,
            Route::Server(_) => !work.describe().only_reads(),
            _ => false,
        };
        if inside_body && is_in_line {
            return Err(waits_for_itself());
        }
        let (promise, reply) = reply();
        let ticket = Ticket::new(CallOptions { inside_body, ..self.options }, Instant::now());
        let ticket = Arc::new(ticket.decoding(work.decode()).measuring(metrics));
        let alarm = alarm(&ticket, &reply);
        if let Some(opening) = opening {
            opening.waits_for(&ticket, Box::new(reply.nudge()));
        }
        let is = work.describe();
        let mut request = Request::new(ticket.clone(), work, promise);
        request.had_active_writes = self.handle.engine().is_some_and(|engine| engine.has_active_writes());
        let line = match route.serve(request, may_block) {
            // The transaction has ended, and nothing of it was kept: it would have taken its handle along.
            Err(_) if is.undoes() => return Ok(Submitted::Now(Ok(Answer::Done))),
            line => line.inspect_err(|_| {
                // The request may be in the queue without a thread to serve it. It must never run.
                ticket.give_up();
            })?,
        };
        let only_reads = is.only_reads();
        let queued = Queued { handle: self.handle.clone(), ticket, line, only_reads, _alarm: alarm };
        Ok(Submitted::Waits(Awaited::Request(Box::new(queued)), reply))
    }

    /// Returns the worker that serves the work, as far as is known. If the guess is wrong, the writer runs a read, or a
    /// reader hands a write over.
    pub(super) fn route(&self, work: &Work) -> Result<Route<'_>> {
        if let Some(inside) = &self.inside {
            return Ok(Route::Transaction(inside));
        }
        if let Some(kept) = &self.kept {
            return Ok(Route::Kept(&**kept));
        }
        let (engine, is_read_only) = match self.handle.host() {
            Host::Engine(engine) => (engine, self.handle.is_read_only()),
            Host::Server(served) => return Ok(Route::Server(served)),
        };
        engine.touch();
        let only_reads = match work {
            Work::Query { text, .. } if is_read_only => text.route() != Some(sql::class::Route::Write),
            // A PRAGMA that asks for what is in force writes nothing.
            Work::Execute { text, .. } if is_read_only => text.tells_of_its_prepare,
            work => work.describe().only_reads(),
        };
        // For a read-only handle the writer of other handles may read if it has the only connection.
        let may_use = |is_only: bool| !is_read_only || is_only && work.describe().may_read();
        match (&engine.readers, &engine.writer) {
            (Some(readers), _) if only_reads => Ok(Route::Readers(readers)),
            (readers, Some(writer)) if may_use(readers.is_none()) => Ok(Route::Writer(writer)),
            _ if self.handle.is_closed() => Err(Error::closed()),
            _ => Err(opened_to_read(engine.path())),
        }
    }

    /// Returns an error where no call may begin.
    pub(super) fn may_begin(&self) -> Result<()> {
        self.handle.refuse_inherited()?;
        if in_closure() {
            return Err(called_from_within());
        }
        if self.inside.is_none() && self.kept.is_none() && self.handle.is_closed() {
            return Err(Error::closed());
        }
        Ok(())
    }

    /// Returns the error for a request that ended without an answer.
    #[cold]
    pub(crate) fn lost(&self) -> Error {
        if let Err(error) = self.handle.refuse_inherited() {
            error
        } else if self.handle.is_closed() {
            Error::closed()
        } else {
            Error::misuse("a panic inside Flatwater ended the request, and the connection was replaced")
                .with_hint("please report it; read the database to learn whether a write was applied")
        }
    }
}

impl Route<'_> {
    /// Sends the request, or runs it on this thread if `may_block` and a connection is free. If the queue is full, the
    /// request waits in line for a place.
    fn serve(self, request: Request, may_block: bool) -> Result<Line> {
        let left = match self {
            Self::Transaction(Inside { transaction, savepoints }) => {
                return transaction.send(request, savepoints).map(|()| Line::Nowhere);
            }
            Self::Kept(kept) => return kept.send(request).map(|()| Line::Nowhere),
            Self::Server(served) => {
                served.send(request);
                return Ok(Line::Nowhere);
            }
            _ if !may_block => Some(request),
            Self::Writer(writer) => writer.run_here(request),
            Self::Readers(readers) => readers.run_here(request),
        };
        match (self, left) {
            (Self::Writer(writer), Some(request)) => writer.push(request).map(Line::Writer),
            (Self::Readers(readers), Some(request)) => readers.push(request).map(Line::Readers),
            _ => Ok(Line::Nowhere),
        }
    }
}
