//! A request: the one message that a caller sends to a worker, and where its answer goes.
//!
//! Owns: the work together with its ticket and its reply, delivering the answer, on the thread that delivers answers, and what became
//! of a call that was tried on its caller's thread before. Runs on callers' and workers' threads. Invariants: a request has one owner
//! at a time: the caller's future, a queue, or the worker that runs it; what goes on with an answer is called once, whatever becomes
//! of the request. Leaves out: what can be asked (`work`), the reply of a caller (`queue::reply`), when answers are delivered
//! (`outbox`), running requests.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use flatwater_sqlite::Origin;

use super::Answer;
use super::work::{Ours, Unsettled, Work};
use crate::queue::metrics::PendingWrite;
use crate::queue::reply::{Promise, Reply, Teller, foreign, reply};
use crate::queue::ticket::{CallOptions, Ticket};
use flatwater_base::error::Result;
use flatwater_base::inline::outcome::{Held, InlineRun};

pub(crate) struct Request {
    pub(crate) ticket: Arc<Ticket>,
    pub(crate) work: Work,
    pub(crate) reply_to: ReplyTo,
    /// When the first attempt to take the lock for this request began.
    pub(crate) lock_since: Option<Instant>,
    /// Its group was lost: it must not join a group again.
    pub(crate) must_be_alone: bool,
    /// A write was in progress when the call began.
    pub(crate) had_active_writes: bool,
    /// Set by the writer when it receives the request.
    pub(crate) pending: Option<PendingWrite>,
}

impl Request {
    /// Returns the request that finds out what became of a write that failed on its caller's thread, and its reply.
    pub(crate) fn settling(
        unsettled: Unsettled,
        options: CallOptions,
        began: Instant,
    ) -> (Self, Reply<Result<Answer>>) {
        let (promise, reply) = reply();
        (Self::new(Arc::new(Ticket::new(options, began)), Ours::Settle(unsettled).into(), promise), reply)
    }

    pub(crate) fn new(ticket: Arc<Ticket>, work: Work, reply_to: impl Into<ReplyTo>) -> Self {
        Self {
            ticket,
            work,
            reply_to: reply_to.into(),
            lock_since: None,
            must_be_alone: false,
            had_active_writes: false,
            pending: None,
        }
    }
}

pub(crate) enum ReplyTo {
    Caller(Promise<Result<Answer>>),
    Completion(Completion),
    /// The work reports by itself.
    Nobody,
}

impl ReplyTo {
    /// Goes on with `then`, which gets the answer, or `None` if the request is gone without one. It must hold no lock while it
    /// runs the user's code.
    pub(crate) fn then(then: impl FnOnce(Option<Result<Answer>>) + Send + 'static) -> Self {
        Self::Completion(Completion { run: Some(Box::new(then)), origin: Origin::here() })
    }

    /// Delivers the answer. Wakers may run arbitrary code, and so may the drop of an answer that nobody wants.
    pub(crate) fn fill(self, answer: Result<Answer>, teller: &mut Teller) {
        let unwanted = match self {
            Self::Caller(promise) => match promise.fill(answer) {
                Ok(waiter) => return waiter.into_iter().for_each(|waiter| teller.tell(waiter)),
                Err(unwanted) => unwanted,
            },
            Self::Completion(completion) => return completion.call(answer),
            Self::Nobody => answer,
        };
        // Of a transaction this is its rollback.
        drop(catch_unwind(AssertUnwindSafe(|| drop(unwanted))));
    }
}

impl From<Promise<Result<Answer>>> for ReplyTo {
    fn from(promise: Promise<Result<Answer>>) -> Self {
        Self::Caller(promise)
    }
}

type Run = Box<dyn FnOnce(Option<Result<Answer>>) + Send>;

/// What goes on with an answer.
pub(crate) struct Completion {
    /// `None` once it was called.
    run: Option<Run>,
    /// In a forked child the locks that it takes may be ones that a thread held.
    origin: Origin,
}

impl Completion {
    fn call(mut self, answer: Result<Answer>) {
        if let Some(run) = self.run.take() {
            foreign(|| run(Some(answer)));
        }
    }
}

impl Drop for Completion {
    fn drop(&mut self) {
        if let Some(run) = self.run.take().filter(|_| !self.origin.is_inherited()) {
            foreign(|| run(None));
        }
    }
}

pub(crate) enum Tried {
    Ran(InlineRun<Result<Answer>>),
    /// It failed in a way that may have come from its commit, after this time. A worker finds out what became of it, and
    /// answers, whatever the caller does. No other write runs before that.
    Unsettled(Reply<Result<Answer>>, Held),
}
