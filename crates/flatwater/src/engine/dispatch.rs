//! The dispatch of one call: it runs on the caller's thread, or goes through a queue to one of Flatwater's threads.
//!
//! Owns: the route, decided once; the inline run, and recording its outcome; and the request with its deadline. Runs on the
//! thread that begins the call, and blocks it only if the caller allows that. It does not depend on futures: awaiting a
//! call is one way to wait for the answer. Invariants: a call that is answered at once allocates nothing here; a
//! request that was given up before it began never runs. Leaves out: giving a request up (`awaited`), which calls are short enough,
//! which the workers decide, what a request does, and the hand-over from a reader to the writer (`workers::readers`), in which the
//! caller has no part.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Engine;
use super::awaited::{Awaited, Line, Queued, Submitted, alarm};
use super::caller::Caller;
use super::handle::Host;
use super::opening::Opening;
use super::server::Served;
use crate::queue::metrics::CallRecord;
use crate::queue::reply::{Reply, reply};
use crate::queue::ticket::{CallOptions, Ticket};
use crate::workers::Answer;
use crate::workers::context::Context;
use crate::workers::interfaces::TakesOver;
use crate::workers::kept::KeptConnection;
use crate::workers::open_transaction::Inside;
use crate::workers::readers::{InlineQuery, Readers};
use crate::workers::request::{Request, Tried};
use crate::workers::shared_errors::{opened_to_read, too_late, waits_for_itself};
use crate::workers::short::rows::run_rows_inline;
use crate::workers::short::transaction::begin_inline;
use crate::workers::work::{Wanted, Work};
use crate::workers::writer::Writer;
use flatwater_base::error::{Error, Result};
use flatwater_base::inline::budget;
use flatwater_base::inline::eligibility::Permit;
use flatwater_base::inline::outcome::{Fallback, InlineRun, NotTried};
use flatwater_base::thread::current::{is_inside, mark_closure};

/// A call with a shorter timeout does not run inline: it must fail with a timeout.
const SHORTEST: Duration = Duration::from_millis(1);

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

impl Caller {
    /// Begins the work, whose deadline counts from here: runs it on this thread if it is known to be short. The work is only
    /// borrowed for that; it moves if it has to be sent.
    pub(crate) fn begin(&self, work: &Work) -> Begun<'_> {
        let route = self.may_begin().and_then(|()| self.route(work));
        let time = self.options.time.left();
        match route {
            Err(error) => Begun::Answered(Err(error), None),
            // What undoes takes no time to wait for.
            Ok(_) if time == Some(Duration::ZERO) && !work.describe().undoes() => {
                Begun::Answered(Err(too_late()), None)
            }
            Ok(route) if time.is_some_and(|time| time < SHORTEST) => Begun::ToSend(route),
            // A write in a snapshot is refused by a worker.
            Ok(route) if self.inside.is_some() && self.options.read_only && !work.describe().only_reads() => {
                Begun::ToSend(route)
            }
            Ok(route) => match &self.handle.host {
                Host::Engine(engine) => engine.run_inline(route, work, self.options),
                Host::Server(_) => Begun::ToSend(route),
            },
        }
    }

    /// Sends a request for the work, or runs it on this thread if that `may_block` and a connection is free. A worker
    /// notes its run in the `record`. Whoever gives the `opening` up gives the request up.
    pub(crate) fn send(
        &self,
        route: Route<'_>,
        work: Work,
        may_block: bool,
        record: Option<Arc<CallRecord>>,
        opening: Option<&Opening>,
    ) -> Result<Submitted> {
        let inside_body = self.options.inside_body || is_inside(self.handle.id());
        let is = work.describe();
        let is_in_line = match route {
            Route::Writer(_) => true,
            Route::Server(_) => !is.only_reads(),
            _ => false,
        };
        if inside_body && is_in_line {
            return Err(waits_for_itself());
        }
        let (promise, reply) = reply();
        let mut options = CallOptions { inside_body, ..self.options };
        if is.undoes() {
            options.time = options.time.without_deadline();
        }
        let mut ticket = Ticket::new(options, Instant::now());
        (ticket.decode, ticket.record) = (work.decode(), record);
        let ticket = Arc::new(ticket);
        let alarm = alarm(&ticket, &reply);
        if let Some(opening) = opening {
            opening.waits_for(&ticket, Box::new(reply.nudge()));
        }
        let mut request = Request::new(ticket.clone(), work, promise);
        request.had_active_writes =
            self.handle.engine().and_then(|engine| engine.writer.as_ref()).is_some_and(TakesOver::is_active);
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

    /// Returns a number of the queue in which work takes its place behind the writes before it: that of the transaction, or of
    /// the writer. `None` for what has no place among them.
    pub(crate) fn line_of(&self, work: &Work) -> Option<usize> {
        match self.route(work) {
            Ok(Route::Transaction(_) | Route::Writer(_)) => self.line(),
            Ok(Route::Server(_)) if !work.describe().only_reads() => self.line(),
            _ => None,
        }
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
        let (engine, is_read_only) = match &self.handle.host {
            Host::Engine(engine) => (engine, self.handle.read_only),
            Host::Server(served) => return Ok(Route::Server(served)),
        };
        engine.touch();
        let only_reads = match work {
            Work::Query { text, .. } if is_read_only => text.route() != Some(flatwater_sql::class::Route::Write),
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
}

impl Route<'_> {
    /// Returns true if its calls go through the writer's queue.
    fn queues(&self) -> bool {
        matches!(self, Self::Writer(_))
    }

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
            (Self::Writer(writer), Some(request)) => writer.push(request).map(Line::Writer).map_err(|(error, _)| error),
            (Self::Readers(readers), Some(request)) => readers.push(request).map(Line::Readers),
            _ => Ok(Line::Nowhere),
        }
    }
}

impl Engine {
    /// Runs the work on this thread at once and without waiting, if it is known to be short. The work is
    /// to be sent if it did not run, or fell back.
    pub(super) fn run_inline<'a>(&self, route: Route<'a>, work: &Work, options: CallOptions) -> Begun<'a> {
        let policy = &self.context.policy;
        if options.never_inline || policy.limits().is_none() {
            return Begun::ToSend(route);
        }
        if matches!(route, Route::Kept(kept) if !kept.runs_inline()) {
            self.context.recorder.inline.not_tried(NotTried::Other);
            return Begun::ToSend(route);
        }
        if let Some((_, bytes)) = work.rows() {
            return rows_inline(&self.context, route, work, bytes, options);
        }
        // Begins or ends a transaction, does a step with a savepoint of one, or begins a snapshot.
        let is = work.describe();
        let is_bracket = is.is_bracket();
        let text = if is_bracket { None } else { work.statement() };
        let permitted = match text {
            // A transaction shares no commit, so whether groups are cheaper is no question for it.
            None if is_bracket => policy.permit(false, 0, || true),
            None => Err(NotTried::Other),
            Some((text, params)) => policy.permit(route.queues(), params.heap_bytes(), || text.backoff.may_try()),
        };
        let Some(permit) = &self.context.recorder.inline.permitted(permitted) else { return Begun::ToSend(route) };
        // Foreign code that runs meanwhile, such as the receiver of the events, must not wait for this connection.
        let tried = mark_closure(|| match (route, work) {
            (Route::Transaction(Inside { transaction, savepoints }), _) => {
                transaction.run_inline(work, savepoints, permit)
            }
            (Route::Readers(readers), Work::Query { text, params, wanted, .. }) => {
                // A front end holds a lock while it polls batches.
                let calls_timed = !matches!(wanted, Wanted::Batches);
                let (output, cookie) = (work.output(), None);
                let query = InlineQuery { text, params, output, permit, cookie, calls_timed };
                Tried::Ran(readers.run_inline(query))
            }
            (Route::Readers(readers), Work::Snapshot) => Tried::Ran(readers.begin_snapshot_inline(permit)),
            (Route::Writer(writer), Work::Begin(rowid)) => Tried::Ran(begin_inline(writer, *rowid, permit)),
            (Route::Kept(kept), _) if !is_bracket => kept.run_inline(work, permit, options),
            (Route::Writer(writer), _) if !is_bracket => writer.run_inline(work, permit, options),
            _ => Tried::Ran(InlineRun::Ineligible(NotTried::Other)),
        });
        begun(route, permit, tried, |run| {
            text.inspect(|(text, _)| text.backoff.tried(run));
            match route {
                Route::Readers(_) if !is_bracket => self.context.recorder.inline.tried(run),
                _ => self.context.recorder.tried(is.kind, !is.only_reads(), run),
            }
        })
    }
}

/// Runs rows of parameters on this thread, with so many bytes of values.
fn rows_inline<'a>(context: &Context, route: Route<'a>, work: &Work, bytes: usize, options: CallOptions) -> Begun<'a> {
    // Each text counts a use, also after one that may not be tried.
    let texts_may = || work.texts().filter(|text| !text.backoff.may_try()).count() == 0;
    let permitted = match route {
        Route::Writer(writer) => context.policy.permit(true, bytes, texts_may).map(|permit| (writer, permit)),
        _ => Err(NotTried::Other),
    };
    let Some((writer, permit)) = &context.recorder.inline.permitted(permitted) else { return Begun::ToSend(route) };
    let tried = mark_closure(|| run_rows_inline(writer, work, permit, options));
    begun(route, permit, tried, |run| {
        context.recorder.tried(work.describe().kind, true, run);
        // A text that is to blame for a fallback was told.
        if matches!(run, InlineRun::Done(..)) {
            work.texts().for_each(|text| text.backoff.tried(run));
        }
    })
}

/// Spends the time of what was tried, has it recorded, and returns what became of the call.
fn begun<'a>(
    route: Route<'a>,
    permit: &Permit<'_>,
    tried: Tried,
    record: impl FnOnce(&InlineRun<Result<Answer>>),
) -> Begun<'a> {
    // Of one that is unsettled the reply says what became of it.
    let (run, unsettled) = match tried {
        Tried::Ran(run) => (run, None),
        Tried::Unsettled(reply, held) => (InlineRun::FellBack(Fallback::Failed, held), Some(reply)),
    };
    budget::spend(permit.began, run.took());
    record(&run);
    match run {
        InlineRun::Done(answer, held) => Begun::Answered(answer, Some(held.time())),
        _ => unsettled.map_or(Begun::ToSend(route), Begun::Unsettled),
    }
}
