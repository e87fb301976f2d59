//! The call that runs a body in a transaction, or in a nested one.
//!
//! Owns: beginning the transaction, polling the body, ending both. Runs on the thread that polls it. Invariants: nothing begins before
//! the first poll; the body is polled only while the transaction is open, and its end is awaited before the result is returned; a call
//! that is dropped, or whose deadline passes, drops the body and with it the transaction, which is rolled back. Leaves out: what a
//! transaction is (`transaction`), and ends of the transaction that the body did not ask for, which its next use is told.
//!
//! ```text
//! BEGINNING --begun--> RUNNING --the body returned--> ENDING --committed, or rolled back--> DONE
//!                      RUNNING --deadline, and the body waits for nothing of the transaction--> DONE
//! ```

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use crate::api::call::Call;
use crate::api::transaction::Transaction;
use crate::engine::handle::called_from_within;
use crate::engine::opening::CancelOutcome;
use crate::queue::reply::{Reply, reply};
use crate::workers::open_transaction::Inside;
use crate::workers::shared_errors::polled_again;
use flatwater_base::error::hint::hint;
use flatwater_base::error::{Error, Result, TimeoutEffect, timed_out};
use flatwater_base::thread::current::{self, block_on, must_not_block};
use flatwater_base::thread::lock;
use flatwater_base::time::later;
use flatwater_base::time::timer::{self, Alarm};

/// How long a statement of the body may take to end after the deadline, which it has too, before one looks again.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// A transaction with its body: the future that [`Database::transaction`](crate::Database::transaction) and its kin return. It begins
/// when it is first polled. Its type has that of the body, which has no name: a struct stores it as a `Pin<Box<dyn Future>>`.
///
/// Dropping it drops the body, and rolls the transaction back, unless its commit has begun: then it is committed, and nothing receives
/// the result.
#[must_use = "a transaction begins when it is awaited"]
pub struct TransactionCall<'a, B: Future> {
    stage: Stage<'a, B>,
    timeout: Option<Duration>,
    place: Place<'a>,
}

/// Where the transaction is while the body does not have it. Locked by the thread that polls the call, and no other.
type Place<'a> = Arc<Mutex<Option<Transaction<'a>>>>;

enum Stage<'a, B: Future> {
    Beginning(Call<Transaction<'a>>, Pin<Box<B>>),
    Running(Pin<Box<B>>, Option<Deadline>),
    Ending(Call<()>, B::Output),
    Done,
}

/// When the body must have returned.
struct Deadline {
    inside: Arc<Inside>,
    passed: Reply<()>,
    _alarm: Alarm,
}

impl Deadline {
    fn at(when: Instant, inside: Arc<Inside>) -> Self {
        let (promise, passed) = reply();
        Self { inside, passed, _alarm: timer::at(when, move || promise.answer(())) }
    }

    /// Returns true if it has passed, and the body waits for no statement of the transaction: that has the same deadline, and
    /// its error says more.
    fn is_over(&mut self, context: &mut Context<'_>) -> bool {
        while Pin::new(&mut self.passed).poll(context).is_ready() {
            if self.inside.transaction.rests() {
                return true;
            }
            *self = Self::at(later(Instant::now(), LOOK_AGAIN), self.inside.clone());
        }
        false
    }
}

/// Returns the call that runs `body` in the transaction of `begin`.
pub(crate) fn transaction<'a, F, R, E>(
    begin: Call<Transaction<'a>>,
    body: F,
) -> TransactionCall<'a, impl Future<Output = Result<R, E>> + use<'a, F, R, E>>
where
    F: AsyncFnOnce(&mut Transaction<'_>) -> Result<R, E>,
    E: From<Error>,
{
    let place = Place::default();
    let begun = place.clone();
    let body = async move {
        let Some(mut transaction) = lock(&begun).take() else { return Err(polled_again().into()) };
        let database = transaction.session.0.handle.id();
        let result = match transaction.session.0.inside.clone() {
            Some(inside) => current::inside(database, inside, body(&mut transaction)).await,
            None => body(&mut transaction).await,
        };
        *lock(&begun) = Some(transaction);
        result
    };
    TransactionCall { stage: Stage::Beginning(begin, Box::pin(body)), timeout: None, place }
}

impl Transaction<'_> {
    /// Runs `body` in a nested transaction. Its changes are kept if `body` returns `Ok`, and undone if it returns an
    /// error, panics, or is dropped.
    ///
    /// # Errors
    /// The error `body` returns; `Misuse` if the transaction is over.
    pub fn transaction<'b, F, R>(
        &'b mut self,
        body: F,
    ) -> TransactionCall<'b, impl Future<Output = Result<R>> + use<'b, F, R>>
    where
        F: AsyncFnOnce(&mut Transaction<'_>) -> Result<R>,
    {
        transaction(self.begin(), body)
    }

    /// The same with a `body` that returns an error of the caller's own type.
    ///
    /// # Errors
    /// As [`transaction`](Self::transaction).
    pub fn try_transaction<'b, F, R, E>(
        &'b mut self,
        body: F,
    ) -> TransactionCall<'b, impl Future<Output = Result<R, E>> + use<'b, F, R, E>>
    where
        F: AsyncFnOnce(&mut Transaction<'_>) -> Result<R, E>,
        E: From<Error>,
    {
        transaction(self.begin(), body)
    }
}

impl<'a, B, R, E> TransactionCall<'a, B>
where
    B: Future<Output = Result<R, E>>,
    E: From<Error>,
{
    /// Sets the deadline of the transaction, counted from the first poll: for its beginning, its body with all statements, and its
    /// commit. After it the call fails with `Timeout`, and nothing is committed: a statement that runs is interrupted, and a body
    /// that waits for something else is dropped. The timeout of the handle holds for each call of the body, too.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Blocks this thread until the transaction is over. The body runs on this thread. See [`Call::wait`].
    ///
    /// # Errors
    /// The errors of the call, and `Misuse` where this thread could deadlock.
    pub fn wait(mut self) -> Result<R, E> {
        if must_not_block() {
            return Err(called_from_within().in_operation("transaction").into());
        }
        self.set_deadline();
        match std::mem::replace(&mut self.stage, Stage::Done) {
            Stage::Beginning(begin, body) => self.stage = self.running(begin.wait()?, body),
            stage => self.stage = stage,
        }
        block_on(self)
    }

    /// Cancels the call, as dropping it does, and returns the effect: `WriteInterrupted` while the body runs, because all of it is
    /// rolled back. See [`Call::cancel`].
    pub fn cancel(self) -> CancelOutcome {
        match self.stage {
            Stage::Beginning(begin, _) => begin.cancel(),
            Stage::Ending(commit, Ok(_)) => commit.cancel(),
            Stage::Running(..) | Stage::Ending(_, Err(_)) => CancelOutcome::WriteInterrupted,
            Stage::Done => CancelOutcome::Answered,
        }
    }

    /// Called when the call begins: the transaction, and all calls of it, have the deadline.
    fn set_deadline(&mut self) {
        if let Stage::Beginning(begin, _) = &mut self.stage
            && let Some(timeout) = self.timeout.take()
            && let Some(caller) = &mut begin.pending.caller
        {
            caller.options.set_deadline(later(Instant::now(), timeout));
        }
    }

    fn running(&self, transaction: Transaction<'a>, body: Pin<Box<B>>) -> Stage<'a, B> {
        let caller = &transaction.session.0;
        let deadline = caller.options.time.deadline().zip(caller.inside.clone());
        let deadline = deadline.map(|(when, inside)| Deadline::at(when, inside));
        *lock(&self.place) = Some(transaction);
        Stage::Running(body, deadline)
    }

    /// The body has returned: commits if it succeeded, and rolls back otherwise.
    fn ending(&self, result: Result<R, E>) -> Stage<'a, B> {
        let transaction = lock(&self.place).take();
        match (transaction, result) {
            (Some(transaction), Ok(result)) => Stage::Ending(transaction.commit(), Ok(result)),
            (Some(transaction), Err(error)) => Stage::Ending(transaction.rollback(), Err(error)),
            (None, _) => Stage::Done,
        }
    }
}

impl<B, R, E> Future for TransactionCall<'_, B>
where
    B: Future<Output = Result<R, E>>,
    E: From<Error>,
{
    type Output = Result<R, E>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        this.set_deadline();
        loop {
            // Taken out: after a panic of the body the call is over.
            match std::mem::replace(&mut this.stage, Stage::Done) {
                Stage::Beginning(mut begin, body) => match Pin::new(&mut begin).poll(context) {
                    Poll::Ready(begun) => this.stage = this.running(begun?, body),
                    Poll::Pending => {
                        this.stage = Stage::Beginning(begin, body);
                        return Poll::Pending;
                    }
                },
                Stage::Running(mut body, mut deadline) => match body.as_mut().poll(context) {
                    Poll::Ready(result) => this.stage = this.ending(result),
                    Poll::Pending if deadline.as_mut().is_some_and(|deadline| deadline.is_over(context)) => {
                        return Poll::Ready(Err(body_too_late().into()));
                    }
                    Poll::Pending => {
                        this.stage = Stage::Running(body, deadline);
                        return Poll::Pending;
                    }
                },
                Stage::Ending(mut end, result) => match Pin::new(&mut end).poll(context) {
                    // The body's error is returned. If the rollback fails, the connection is replaced.
                    Poll::Ready(ended) => return Poll::Ready(result.and_then(|result| Ok(ended.map(|()| result)?))),
                    Poll::Pending => {
                        this.stage = Stage::Ending(end, result);
                        return Poll::Pending;
                    }
                },
                Stage::Done => return Poll::Ready(Err(polled_again().into())),
            }
        }
    }
}

#[cold]
fn body_too_late() -> Error {
    timed_out("the deadline of the transaction passed while its body waited for something else", TimeoutEffect::No)
        .in_operation("transaction")
        .with_hint(hint!["a transaction holds the writer: wait for nothing else inside it"])
}

/// The body is pinned in its box, and the result is not pinned.
impl<B: Future> Unpin for TransactionCall<'_, B> {}

impl<B: Future> std::fmt::Debug for TransactionCall<'_, B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TransactionCall").finish_non_exhaustive()
    }
}
