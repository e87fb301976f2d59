//! What a reader needs of the writer, without knowing it: handing a request over, and whether a write is in progress.
//!
//! Owns: the count of writes in progress. Runs on callers' and workers' threads. Invariant: a write counts from its first
//! push until it is answered or dropped. Leaves out: running writes.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::Result;
use crate::queue::reply::Reply;
use crate::queue::ticket::Ticket;
use crate::workers::request::{Answer, Request};

/// Counts a write in progress, from its first push until it is answered or dropped.
pub(crate) struct OnItsWay<C: Deref<Target = AtomicU64> = Arc<AtomicU64>>(C);

impl<C: Deref<Target = AtomicU64>> OnItsWay<C> {
    pub(crate) fn new(count: C) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count)
    }
}

impl<C: Deref<Target = AtomicU64>> Drop for OnItsWay<C> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The writer, for a reader that finds that a request must not run on a reader.
pub(crate) trait TakesOver: Send + Sync {
    /// Returns true if a write is queued or running.
    fn is_active(&self) -> bool;

    /// Takes over the request, which began on the reader's thread. If no other thread can be started for it, that
    /// thread serves the writer until no work is left.
    fn take_over(&self, request: Request);

    /// Asks the writer to open its connection before all waiting requests, so that a parked database may have connections
    /// again.
    fn unpark(&self, ticket: Arc<Ticket>) -> Result<Reply<Result<Answer>>>;
}
