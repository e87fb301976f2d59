//! The future that every operation returns.
//!
//! Owns: the states of one call (it begins, waits for its result, returns it), and what happens if the caller drops it
//! in any of them. Runs on the thread that polls it, never blocks there, and depends on no runtime. Invariants: nothing
//! begins before the first poll; after the caller dropped the call, a waiting request never runs, what runs ends early,
//! and a write that cannot end any more is finished. Leaves out: which worker serves it (`engine::dispatch`),
//! and blocking for it (`blocking`).

mod leaving;

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

pub(crate) use leaving::Leaving;

use crate::api::report::{Collection, Report};
use crate::engine::cancelled::CancelOutcome;
use crate::engine::dispatch::{Awaited, Begun, Caller, Submitted};
use crate::engine::handle::inherited;
use crate::engine::opening::Opening;
use crate::error::{Error, Result};
use crate::inline::budget::{self, Suspended};
use crate::inline::pause;
use crate::queue::reply::Reply;
use crate::queue::ticket::CallOptions;
use crate::workers::Answer;
use crate::workers::nesting::Level;
use crate::workers::shared_errors::{polled_again, too_late};
use crate::workers::work::Work;

/// The future of one operation, with a result of `T` or an error of `E`. It begins when it is first polled, and it can
/// be moved to any task or thread. To wait for it without a runtime, use [`wait`](Call::wait).
///
/// A poll never blocks. If the statement is known to be short and a connection is free, the first poll runs it on the
/// polling thread and returns its result at once ([`Tuning::inline`](crate::options::Tuning::inline)); otherwise the request
/// goes to one of the database's threads, which wakes the task. When results that were there at once have held a thread for
/// 1 ms, a call returns `Pending` before yielding its result, some 16 times, so that other tasks and the event loop itself run.
/// Writes run in the order of their first polls.
///
/// Dropping a call cancels it: a request that is still waiting never runs, and what runs is interrupted. A write is then
/// rolled back, unless it shares its commit with other writes or its commit has begun: such a write is finished although
/// nothing receives its result. Inside a transaction an interrupted write may end the whole transaction.
/// [`cancel`](Call::cancel) returns which of these happened.
#[must_use = "a call begins when it is awaited"]
pub struct Call<T, E = Error> {
    /// `None` while the database is being opened.
    pub(super) caller: Option<Caller>,
    /// The options of the calls of the handle, which what this call returns takes over. `None`: those of `caller`.
    handle_options: Option<Box<CallOptions>>,
    pub(crate) operation: &'static str,
    /// Only the owner of the call accesses it, through `get_mut` and without locking. The mutex makes the call `Sync`.
    stage: Mutex<Stage>,
    read: Read<T, E>,
    /// The transaction or savepoint that is rolled back if the call does not end it.
    level: Option<Box<Level>>,
    /// Present from the first poll to the end, if someone listens.
    report: Option<Box<Report>>,
    /// What the report becomes a part of.
    collection: Option<Arc<Collection>>,
}

/// Converts the answer of a request into the result of an operation.
pub(crate) type Read<T, E> = fn(Answer, Option<&Caller>) -> Result<T, E>;

/// Begins a call that sends no request of its own. The argument says whether it may block.
pub(crate) type Start = Box<dyn FnOnce(bool) -> Result<Submitted> + Send>;

/// The state of a call.
enum Stage {
    Refused(Error),
    New(Work),
    Start(Start),
    Waiting(Awaited, Reply<Result<Answer>>),
    /// The result is there. It is returned when other tasks had their turn.
    Held(Result<Answer>, Box<Suspended>),
    Done,
}

/// What a step of a call came to.
pub(crate) enum Stepped {
    Ready(Result<Answer>),
    Yields,
    Waits,
}

impl<T, E: From<Error>> Call<T, E> {
    pub(crate) fn new(caller: Caller, operation: &'static str, work: Result<Work>, read: Read<T, E>) -> Self {
        let stage = work.map_or_else(|error| Stage::Refused(error.in_operation(operation)), Stage::New);
        Self::with_stage(Some(caller), operation, stage, read)
    }

    /// Returns a call that `start` begins, on the first poll.
    pub(crate) fn starting(caller: Option<&Caller>, operation: &'static str, start: Start, read: Read<T, E>) -> Self {
        Self::with_stage(caller.cloned(), operation, Stage::Start(start), read)
    }

    fn with_stage(caller: Option<Caller>, operation: &'static str, stage: Stage, read: Read<T, E>) -> Self {
        let stage = Mutex::new(stage);
        Self { caller, handle_options: None, operation, stage, read, level: None, report: None, collection: None }
    }

    /// Makes this the call that ends a level of a transaction, and with it what is open inside. If the call does not end
    /// the level, the level is rolled back.
    pub(crate) fn ending(mut self, level: Level) -> Self {
        if let Some(caller) = &mut self.caller {
            caller.options.ended_nested = u64::MAX;
        }
        self.level = Some(Box::new(level));
        self
    }

    /// Makes the report of this call a part of the collection.
    pub(crate) fn collected(mut self, collection: Option<Arc<Collection>>) -> Self {
        self.collection = collection;
        self
    }

    /// Sets the deadline of this call, in place of the one of its handle: after this time, counted from the first poll, it
    /// fails with `Timeout`. See [`Database::with_timeout`](crate::Database::with_timeout). A transaction, a snapshot or a
    /// prepared statement that the call returns keeps the timeout of the handle. Has no effect on `open`, which has
    /// [`Options::busy_timeout`](crate::Options::busy_timeout), nor on `close`, which has
    /// [`Options::close_wait`](crate::Options::close_wait).
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.set_option(|options| options.timeout = Some(timeout));
        self
    }

    /// Sends this call to one of the database's threads even if it is known to be short, as
    /// [`Inline::Never`](crate::options::Inline::Never) does for all calls. Use it when you start many writes before awaiting
    /// them: on the writer's thread they share a commit. Has no effect on [`wait`](Self::wait), nor on the calls of an
    /// object that this call returns.
    pub fn never_inline(mut self) -> Self {
        self.set_option(|options| options.never_inline = true);
        self
    }

    /// Changes the options of this call alone.
    fn set_option(&mut self, set: impl FnOnce(&mut CallOptions)) {
        if let Some(caller) = &mut self.caller {
            self.handle_options.get_or_insert_with(|| Box::new(caller.options));
            set(&mut caller.options);
        }
    }

    /// Cancels the call, as dropping it does, and returns the effect. Does not block.
    ///
    /// A call that was never polled is `Withdrawn`. For a read closure the result is `ReadInterrupted`, although only
    /// its SQLite statements are interrupted.
    pub fn cancel(mut self) -> CancelOutcome {
        self.give_up(Leaving::AtOnce)
    }

    /// The origin of a call that was not begun yet, unless it ends a transaction.
    pub(crate) fn unbegun(&mut self) -> Option<&mut Caller> {
        if self.is_new() && self.level.is_none() { self.caller.as_mut() } else { None }
    }

    /// The queue in which a call that was not begun yet takes its place. See [`Caller::line_of`].
    pub(crate) fn line(&mut self) -> Option<usize> {
        let stage = self.stage.get_mut().unwrap_or_else(PoisonError::into_inner);
        match (stage, &self.caller) {
            (Stage::New(work), Some(caller)) => caller.line_of(work),
            (Stage::Start(_), Some(caller)) => caller.line(),
            _ => None,
        }
    }

    /// The time until the deadline, counted from the beginning of the call.
    pub(crate) fn time(&self) -> Option<Duration> {
        self.caller.as_ref()?.options.timeout
    }

    /// Counts time that has passed since the call was made, and before it begins.
    pub(crate) fn waited(&mut self, time: Duration) {
        self.set_option(|options| options.timeout = options.timeout.map(|timeout| timeout.saturating_sub(time)));
    }

    pub(super) fn begin(&mut self, may_block: bool, opening: Option<&Opening>) -> Poll<Result<Answer>> {
        // What panics here is not tried again: the stage is `Done` already.
        let submitted = match (std::mem::replace(self.stage(), Stage::Done), &self.caller) {
            (Stage::New(work), Some(caller)) => {
                self.report = Report::begin(caller, self.operation, Some(&work));
                match caller.begin(&work) {
                    // Its run has counted.
                    Begun::Answered(answer, Some(took)) => {
                        if let Some(report) = &self.report {
                            report.ran_here(took, &answer);
                        }
                        return Poll::Ready(answer);
                    }
                    Begun::Answered(answer, None) => Ok(Submitted::Now(answer)),
                    Begun::Unsettled(reply) => Ok(Submitted::Waits(Awaited::Outcome, reply)),
                    Begun::ToSend(route) => {
                        let metrics = self.report.as_ref().map(|report| report.metrics.clone());
                        caller.send(route, work, may_block, metrics, opening)
                    }
                }
            }
            (Stage::Start(start), _) => start(may_block),
            _ => Err(polled_again()),
        };
        let answer = match submitted {
            Ok(Submitted::Now(answer)) => answer,
            Ok(Submitted::Waits(awaited, reply)) => {
                *self.stage() = Stage::Waiting(awaited, reply);
                return Poll::Pending;
            }
            Err(error) => Err(error),
        };
        budget::count(Instant::now());
        Poll::Ready(answer)
    }

    pub(crate) fn finish(&mut self, answer: Result<Answer>) -> Result<T, E> {
        let answer = answer.map_err(|error| error.in_operation(self.operation));
        if let Some(report) = self.report.take() {
            report.end(&answer, self.collection.as_deref());
        }
        let answer = answer?;
        self.level.iter_mut().for_each(|level| level.ended());
        if let Some(options) = self.handle_options.take()
            && let Some(caller) = &mut self.caller
        {
            caller.options = CallOptions { inside_body: caller.options.inside_body, ..*options };
        }
        (self.read)(answer, self.caller.as_ref())
    }

    /// `poll` looks for the reply of a call that waits.
    pub(crate) fn step(
        &mut self,
        poll: impl FnOnce(&mut Reply<Result<Answer>>) -> Poll<Option<Result<Answer>>>,
    ) -> Stepped {
        if self.is_new()
            && let Poll::Ready(answer) = self.begin(false, None)
        {
            return self.in_turn(answer);
        }
        let answer = match std::mem::replace(self.stage(), Stage::Done) {
            Stage::Waiting(awaited, mut reply) => match poll(&mut reply) {
                // Checked only after the reply has stored the waiter: otherwise a deadline that passes in between would
                // wake no task.
                Poll::Pending if awaited.is_too_late() => {
                    awaited.leave_line();
                    Err(too_late())
                }
                Poll::Pending => {
                    *self.stage() = Stage::Waiting(awaited, reply);
                    return Stepped::Waits;
                }
                Poll::Ready(Some(answer)) => answer,
                Poll::Ready(None) if awaited.is_too_late() => Err(too_late()),
                Poll::Ready(None) => Err(self.lost(reply.is_inherited())),
            },
            Stage::Held(..) if self.is_inherited() => Err(self.lost(true)),
            Stage::Held(answer, mut suspended) => {
                if budget::goes_on(&mut suspended, Instant::now()) {
                    return Stepped::Ready(answer);
                }
                *self.stage() = Stage::Held(answer, suspended);
                return Stepped::Yields;
            }
            Stage::Refused(error) => {
                self.report = self.caller.as_ref().and_then(|caller| Report::begin(caller, self.operation, None));
                Err(error)
            }
            _ => return Stepped::Ready(Err(polled_again())),
        };
        budget::count(Instant::now());
        self.in_turn(answer)
    }

    /// Holds an answer back if this thread has used up its share, also one that the call has waited for: the task may poll
    /// other futures besides, and never suspend. The work is complete, so a call that begins later does not overtake it. A forked
    /// process is told at once that it cannot use the database.
    fn in_turn(&mut self, answer: Result<Answer>) -> Stepped {
        if !budget::is_spent() || self.is_inherited() {
            return Stepped::Ready(answer);
        }
        if let Some(caller) = &self.caller {
            caller.handle.context().recorder.inline.yields.count();
        }
        *self.stage() = Stage::Held(answer, Box::new(budget::suspend()));
        Stepped::Yields
    }

    #[cold]
    fn lost(&self, is_inherited: bool) -> Error {
        match &self.caller {
            Some(caller) => caller.lost(),
            None if is_inherited => inherited(),
            None => Error::misuse("opening the database panicked"),
        }
    }
}

impl<T, E> Call<T, E> {
    fn stage(&mut self) -> &mut Stage {
        self.stage.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true until the call begins.
    pub(super) fn is_new(&mut self) -> bool {
        matches!(self.stage(), Stage::New(_) | Stage::Start(_))
    }

    /// Returns true while the call waits for its answer, or has it and does not return it yet.
    pub(crate) fn waits(&mut self) -> bool {
        matches!(self.stage(), Stage::Waiting(..) | Stage::Held(..))
    }

    /// Returns true if this process was forked after the call had begun, or after its database was opened.
    fn is_inherited(&mut self) -> bool {
        self.caller.as_ref().is_some_and(|caller| caller.handle.is_inherited())
            || matches!(self.stage(), Stage::Waiting(_, reply) if reply.is_inherited())
    }
}

impl<T, E: From<Error>> Future for Call<T, E> {
    type Output = Result<T, E>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        match this.step(|reply| Pin::new(reply).poll(context)) {
            Stepped::Ready(answer) => return Poll::Ready(this.finish(answer)),
            Stepped::Yields => pause::wake(context),
            Stepped::Waits => {}
        }
        Poll::Pending
    }
}

impl<T, E> Drop for Call<T, E> {
    fn drop(&mut self) {
        let has_begun = matches!(self.stage(), Stage::Waiting(..) | Stage::Held(..));
        if (self.report.is_some() || has_begun) && !self.is_inherited() {
            self.give_up(Leaving::AtOnce);
        }
    }
}

impl<T, E> std::fmt::Debug for Call<T, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Call").field("operation", &self.operation).finish_non_exhaustive()
    }
}
