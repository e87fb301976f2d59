//! A request: the one message that a caller sends to a worker.
//!
//! Owns: the work together with its ticket and its reply. Runs on callers' and workers' threads. Invariant: a request has
//! one owner at a time: the caller's future, a queue, or the worker that runs it. Leaves out: what can be asked (`work`),
//! running requests.

use std::sync::Arc;
use std::time::Instant;

use crate::error::Result;
use crate::queue::reply::{Reply, reply};
use crate::queue::ticket::{CallOptions, Ticket};
use crate::queue::write_count::PendingWrite;
use crate::workers::Answer;
use crate::workers::reply_to::ReplyTo;
use crate::workers::work::{Ours, Unsettled, Work};

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
