//! What goes on for longer than one call: results in batches and live queries, whose next part is awaited.
//!
//! Owns: polling them on behalf of a call. Runs on the loop's thread, and never waits there. Invariant: an await that
//! is cancelled loses nothing: the next one gets what it would have got; a loop over parts that are there at once lets other tasks
//! run. Leaves out: the objects of Python (`batches`,
//! `live`).

use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use flatwater::Result;
use flatwater::bindings::{Mailbox, Output, Polled, turn_is_due, turn_was_given};
use flatwater_bridge::waker;
use pyo3::prelude::*;

use crate::waiting::pending::Pending;

/// Something with a next part. `None`: there is no more, or it was closed.
pub(crate) type Shared<T> = Arc<Mutex<Option<T>>>;

/// Awaits the next part of it.
pub(crate) struct Next<T, P> {
    of: Shared<T>,
    poll: P,
    /// Other tasks were given their turn.
    gave_turn: bool,
}

impl<T, P> Next<T, P>
where
    P: FnMut(&mut T, &mut Context<'_>) -> Poll<Result<Output>>,
{
    pub(crate) fn new(of: &Shared<T>, poll: P) -> Self {
        Self { of: of.clone(), poll, gave_turn: false }
    }
}

impl<T, P> Pending for Next<T, P>
where
    T: Send,
    P: FnMut(&mut T, &mut Context<'_>) -> Poll<Result<Output>> + Send + Sync,
{
    fn poll(&mut self, _: Python<'_>, address: Option<(&Arc<dyn Mailbox>, u64)>) -> PyResult<Polled> {
        let mut of = self.of.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(of) = &mut *of else { return Ok(Polled::Ready(Ok(Output::Done(())))) };
        if std::mem::take(&mut self.gave_turn) {
            turn_was_given();
        } else if address.is_none() && turn_is_due() {
            // Before a part is taken, which a cancelled await would lose.
            self.gave_turn = true;
            return Ok(Polled::Yields);
        }
        let waker = address.map_or_else(|| Waker::noop().clone(), |(mailbox, token)| waker(mailbox.clone(), token));
        Ok(match (self.poll)(of, &mut Context::from_waker(&waker)) {
            Poll::Ready(result) => Polled::Ready(result),
            Poll::Pending => Polled::Waits,
        })
    }

    fn give_up(&mut self) -> bool {
        false
    }
}

/// Ends it: what it holds is given back.
pub(crate) fn close<T>(of: &Shared<T>) {
    let ended = of.lock().unwrap_or_else(PoisonError::into_inner).take();
    drop(ended);
}
