//! The states of one call, whatever the type of its result.
//!
//! Owns: how a call begins, waits for its answer and returns it, and what happens if its caller leaves it in any of
//! these states. Runs on the thread that polls it or drops it, and never blocks there but to begin a call that may.
//! Invariants: nothing begins before the first poll; after the caller has left, a waiting request never runs, what runs
//! ends early, and a write that cannot end any more is finished; a caller that wants the outcome of a write gets it,
//! however the write ends. Leaves out: which worker serves it (`engine::dispatch`), and reading the answer (`call`).

use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Instant;

use crate::api::report::{Collection, Report};
use crate::engine::awaited::{Awaited, Submitted};
use crate::engine::caller::Caller;
use crate::engine::dispatch::Begun;
use crate::engine::handle::inherited;
use crate::engine::opening::{CancelOutcome, Opening};
use crate::queue::reply::Reply;
use crate::queue::ticket::CallOptions;
use crate::workers::Answer;
use crate::workers::open_transaction::Level;
use crate::workers::shared_errors::{polled_again, too_late};
use crate::workers::work::Work;
use flatwater_base::error::{Error, ErrorCode, Result};
use flatwater_base::inline::budget::{self, Suspended};

/// A call that has not returned its result.
pub(crate) struct Pending {
    /// `None` while the database is being opened.
    pub(crate) caller: Option<Caller>,
    /// The options of the calls of the handle, which what this call returns takes over. `None`: those of `caller`.
    handle_options: Option<Box<CallOptions>>,
    pub(crate) operation: &'static str,
    /// Only the owner of the call accesses it, through `get_mut` and without locking. The mutex makes the call `Sync`.
    stage: Mutex<Stage>,
    /// The transaction or savepoint that is rolled back if the call does not end it.
    level: Option<Box<Level>>,
    /// Present from the first poll to the end, if someone listens.
    report: Option<Box<Report>>,
    /// What the report becomes a part of.
    pub(crate) collection: Option<Arc<Collection>>,
}

/// Begins a call that sends no request of its own. The argument says whether it may block.
pub(crate) type Start = Box<dyn FnOnce(bool) -> Result<Submitted> + Send>;

/// The state of a call.
pub(crate) enum Stage {
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

/// What a caller that gives a call up waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leaving {
    /// Nothing.
    AtOnce,
    /// Until a write that runs has ended.
    AfterWrite,
    /// The same, and it takes the outcome of a write: also of one that has ended.
    WithOutcome,
}

impl Pending {
    /// Returns a call in this stage.
    pub(crate) fn new(caller: Option<Caller>, operation: &'static str, stage: Stage) -> Self {
        let stage = Mutex::new(stage);
        Self { caller, handle_options: None, operation, stage, level: None, report: None, collection: None }
    }

    /// Makes this the call that ends a level of a transaction, and with it what is open inside. If the call does not end
    /// the level, the level is rolled back.
    pub(crate) fn end_level(&mut self, level: Level) {
        if let Some(caller) = &mut self.caller {
            caller.options.ended_nested = u64::MAX;
        }
        self.level = Some(Box::new(level));
    }

    /// The call belongs to a front end, which may use a transaction while a nested one is open: it says nothing of those.
    pub(crate) fn keep_nested(&mut self) {
        if let (Some(caller), None) = (&mut self.caller, &self.level) {
            caller.options.ended_nested = 0;
        }
    }

    /// Changes the options of this call alone.
    pub(crate) fn set_option(&mut self, set: impl FnOnce(&mut CallOptions)) {
        if let Some(caller) = &mut self.caller {
            self.handle_options.get_or_insert_with(|| Box::new(caller.options));
            set(&mut caller.options);
        }
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

    /// The work of a call that was not begun yet.
    pub(crate) fn unbegun_work(&mut self) -> Option<&mut Work> {
        if let Stage::New(work) = self.stage() { Some(work) } else { None }
    }

    pub(crate) fn begin(&mut self, may_block: bool, opening: Option<&Opening>) -> Poll<Result<Answer>> {
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
                        let record = self.report.as_ref().map(|report| report.record.clone());
                        caller.send(route, work, may_block, record, opening)
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

    /// Ends the call with this answer.
    pub(crate) fn end(&mut self, answer: Result<Answer>) -> Result<Answer> {
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
        Ok(answer)
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
            None => Error::new(ErrorCode::Panicked, "opening the database panicked"),
        }
    }

    fn stage(&mut self) -> &mut Stage {
        self.stage.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true until the call begins.
    pub(crate) fn is_new(&mut self) -> bool {
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

    /// Gives the call up, as dropping it does, but for what `leaving` waits for.
    pub(crate) fn give_up(&mut self, leaving: Leaving) -> CancelOutcome {
        let cancelled = match std::mem::replace(self.stage(), Stage::Done) {
            Stage::New(_) | Stage::Start(_) => CancelOutcome::Withdrawn,
            Stage::Waiting(_, reply) if reply.is_inherited() => CancelOutcome::Answered,
            // Asked before giving up: an interrupted request is answered too. One that is too late never ran.
            Stage::Waiting(awaited, reply) if reply.is_answered() && !awaited.is_too_late() => {
                if leaving == Leaving::WithOutcome && awaited.may_write() {
                    *self.stage() = Stage::Waiting(awaited, reply);
                    return CancelOutcome::Answered;
                }
                CancelOutcome::Answered
            }
            Stage::Held(answer, suspended)
                if leaving == Leaving::WithOutcome && answer.as_ref().is_ok_and(Answer::may_be_of_write) =>
            {
                *self.stage() = Stage::Held(answer, suspended);
                return CancelOutcome::Answered;
            }
            Stage::Waiting(awaited, reply) => match awaited.give_up() {
                cancelled if leaving != Leaving::AtOnce && awaited.has_outcome(cancelled) => {
                    *self.stage() = Stage::Waiting(awaited, reply);
                    return cancelled;
                }
                // It was done before it could learn that its caller had left.
                _ if matches!(reply.look(), Poll::Ready(Some(Ok(_)))) => CancelOutcome::Answered,
                cancelled => cancelled,
            },
            Stage::Held(..) => {
                budget::renew();
                CancelOutcome::Answered
            }
            Stage::Refused(_) | Stage::Done => CancelOutcome::Answered,
        };
        if let Some(report) = self.report.take() {
            report.dropped(cancelled, self.collection.as_deref());
        }
        cancelled
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if (self.report.is_some() || self.waits()) && !self.is_inherited() {
            self.give_up(Leaving::AtOnce);
        }
    }
}
