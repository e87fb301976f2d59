//! Where the answer of a request goes: to a caller that waits for it, or to code of the engine that goes on with it.
//!
//! Owns: delivering it there, on the thread that delivers answers. Invariant: what goes on is called once, whatever becomes of
//! the request. Leaves out: the reply of a caller (`queue::reply`), when answers are delivered (`outbox`).

use std::panic::{AssertUnwindSafe, catch_unwind};

use flatwater_sqlite::Origin;

use crate::error::Result;
use crate::queue::reply::{Promise, Teller, foreign};
use crate::workers::Answer;

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
