//! What goes on beside calls, and the turn of other tasks, which a front end gives them then.
//!
//! Owns: polling for the next part, counting what is there at once. Runs on the thread of the host's event loop, and never blocks
//! there. Leaves out: calls, which count themselves (`front_call`), and suspending a task, which the host does.

use std::task::{Context, Poll};
use std::time::Instant;

use crate::api::batches::Batches;
use crate::api::live::Live;
use crate::error::Result;
use crate::inline::budget;
use crate::values::row::Rows;

/// Polls for the next batch of rows, as [`Batches::next`] does. The front end gives other tasks their turn.
pub fn poll_batch(batches: &mut Batches, context: &mut Context<'_>) -> Poll<Result<Option<Rows>>> {
    batches.poll_batch(context)
}

/// Polls for the next item of a live query, as [`Live::next`] does. The front end gives other tasks their turn.
pub fn poll_live<T>(live: &mut Live<T>, context: &mut Context<'_>) -> Poll<Option<Result<T>>> {
    live.poll_item(Instant::now(), context)
}

/// Counts something that was there at once and that no call returns. Returns true if this thread has used up its share:
/// other tasks are to have their turn, and then [`turn_was_given`](super::turn_was_given) is called.
#[must_use]
pub fn turn_is_due() -> bool {
    budget::count(Instant::now());
    budget::is_spent()
}
