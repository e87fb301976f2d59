//! A subscriber's place: the newest result that it has not taken.
//!
//! Owns: one result, and the waker of the task that waits for it, guarded by the place's own lock. Runs on the threads
//! that deliver and on those that poll. Invariants: a newer result takes the place of an older one; no lock is held while
//! a waker runs, is cloned or is dropped. Leaves out: when a result is delivered (`registry`).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use crate::changes::primary_keys::PrimaryKeys;
use crate::error::Error;
use crate::values::row::Rows;

/// One result of a live query, or why there is none.
#[derive(Debug, Clone)]
pub(crate) struct Delivery {
    /// For each statement of the query.
    pub(crate) result: Result<Arc<[Arc<Rows>]>, Error>,
    /// For each statement: the keys of the tables that it read. None after an error.
    pub(crate) keys: Arc<[Arc<PrimaryKeys>]>,
    /// The number of the last commit whose effect it surely has.
    pub(crate) commit: u64,
    /// When it became known.
    pub(crate) at: Instant,
}

#[derive(Debug, Default)]
pub(crate) struct Place(Mutex<Held>);

#[derive(Debug, Default)]
struct Held {
    delivery: Option<Delivery>,
    waker: Option<Waker>,
    is_over: bool,
}

impl Place {
    fn lock(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a result into the place. Returns the waker to wake, and true if an older result was still there.
    pub(super) fn put(&self, delivery: Delivery) -> (Option<Waker>, bool) {
        let mut held = self.lock();
        let before = held.delivery.replace(delivery);
        let waker = held.waker.take();
        drop(held);
        (waker, before.is_some())
    }

    /// Ends the stream after the result that is there, if there is one. Returns the waker to wake.
    pub(super) fn end(&self) -> Option<Waker> {
        let mut held = self.lock();
        held.is_over = true;
        held.waker.take()
    }

    /// Takes the result if it is due: `due` tells of one that is there when it is. Otherwise the task is woken when
    /// there is another one. `None`: there will be none.
    pub(crate) fn poll(
        &self,
        context: &mut Context<'_>,
        due: impl FnOnce(&Delivery) -> bool,
    ) -> Poll<Option<Delivery>> {
        let own = context.waker().clone();
        let mut held = self.lock();
        if held.delivery.as_ref().is_some_and(|delivery| held.is_over || due(delivery)) {
            return Poll::Ready(held.delivery.take());
        }
        if held.delivery.is_none() && held.is_over {
            return Poll::Ready(None);
        }
        let before = held.waker.replace(own);
        drop(held);
        drop(before);
        Poll::Pending
    }

    /// Returns the waker of the task that waits, so that it looks again.
    pub(crate) fn nudge(&self) -> Option<Waker> {
        self.lock().waker.take()
    }
}
