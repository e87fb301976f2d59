//! The future that every operation returns.
//!
//! Owns: reading the answer as the type of the operation, and waiting for it with a runtime or without. Runs on the
//! thread that polls it, never blocks there, and depends on no runtime. Invariant: a thread that could deadlock is
//! refused before it blocks. Leaves out: the states of a call (`pending`).

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::api::pending::{Leaving, Pending, Stage, Start, Stepped};
use crate::engine::caller::Caller;
use crate::engine::handle::called_from_within;
use crate::engine::opening::{CancelOutcome, Opening};
use crate::workers::Answer;
use crate::workers::work::Work;
use flatwater_base::error::{Error, Result};
use flatwater_base::inline::budget;
use flatwater_base::thread::current::{block_on, must_not_block};

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
    pub(crate) pending: Pending,
    pub(crate) read: Read<T, E>,
}

/// Converts the answer of a request into the result of an operation.
pub(crate) type Read<T, E = Error> = fn(Answer, Option<&Caller>) -> Result<T, E>;

impl<T, E: From<Error>> Call<T, E> {
    pub(crate) fn new(caller: Caller, operation: &'static str, work: Result<Work>, read: Read<T, E>) -> Self {
        let stage = work.map_or_else(Stage::Refused, Stage::New);
        Self { pending: Pending::new(Some(caller), operation, stage), read }
    }

    /// Returns a call that `start` begins, on the first poll.
    pub(crate) fn starting(caller: Option<&Caller>, operation: &'static str, start: Start, read: Read<T, E>) -> Self {
        Self { pending: Pending::new(caller.cloned(), operation, Stage::Start(start)), read }
    }

    /// Sets the deadline of this call, in place of the one of its handle: after this time, counted from the first poll, it
    /// fails with `Timeout`. See [`Database::with_timeout`](crate::Database::with_timeout). A transaction, a snapshot or a
    /// prepared statement that the call returns keeps the timeout of the handle. Has no effect on `open`, which has
    /// [`Options::busy_timeout`](crate::Options::busy_timeout), nor on `close`, which has
    /// [`Tuning::close_wait`](crate::options::Tuning::close_wait).
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.pending.set_option(|options| options.set_timeout(timeout));
        self
    }

    /// Sends this call to one of the database's threads even if it is known to be short, as
    /// [`Inline::Never`](crate::options::Inline::Never) does for all calls. Use it when you start many writes before awaiting
    /// them: on the writer's thread they share a commit. Has no effect on [`wait`](Self::wait), nor on the calls of an
    /// object that this call returns.
    pub fn never_inline(mut self) -> Self {
        self.pending.set_option(|options| options.never_inline = true);
        self
    }

    /// Cancels the call, as dropping it does, and returns the effect. Does not block.
    ///
    /// A call that was never polled is `Withdrawn`. For a read closure the result is `ReadInterrupted`, although only
    /// its SQLite statements are interrupted.
    pub fn cancel(mut self) -> CancelOutcome {
        self.pending.give_up(Leaving::AtOnce)
    }

    /// Blocks this thread until the call completes. Do not use it on a thread that runs an event loop. If a connection
    /// is free, this thread does the work.
    ///
    /// # Errors
    /// Returns the errors of the operation, and `Misuse` where this thread could deadlock: in a closure on a
    /// connection, or on a thread of the database.
    pub fn wait(mut self) -> Result<T, E> {
        if self.pending.caller.is_some() && must_not_block() {
            return Err(called_from_within().in_operation(self.pending.operation).into());
        }
        if self.pending.is_new()
            && let Poll::Ready(answer) = self.pending.begin(true, None)
        {
            budget::renew();
            return self.finish(answer);
        }
        let result = block_on(self);
        budget::renew();
        result
    }

    /// Blocks this thread, which opens a database, until the result is there. Whoever gives the opening up gives this call up.
    pub(crate) fn wait_within(mut self, opening: &Opening) -> Result<T, E> {
        if let Poll::Ready(answer) = self.pending.begin(true, Some(opening)) {
            return self.finish(answer);
        }
        block_on(self)
    }

    fn finish(&mut self, answer: Result<Answer>) -> Result<T, E> {
        let answer = self.pending.end(answer)?;
        (self.read)(answer, self.pending.caller.as_ref())
    }
}

impl<T, E: From<Error>> Future for Call<T, E> {
    type Output = Result<T, E>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        match this.pending.step(|reply| Pin::new(reply).poll(context)) {
            Stepped::Ready(answer) => return Poll::Ready(this.finish(answer)),
            Stepped::Yields => budget::wake(context),
            Stepped::Waits => {}
        }
        Poll::Pending
    }
}

impl<T, E> std::fmt::Debug for Call<T, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Call").field("operation", &self.pending.operation).finish_non_exhaustive()
    }
}
