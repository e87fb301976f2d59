//! What a reader needs of the writer, without knowing it: handing a request over, and whether a write is in progress.
//!
//! Owns: the trait. Its functions run on the readers' threads. Leaves out: running writes.

use std::sync::Arc;

use crate::queue::reply::Reply;
use crate::queue::ticket::Ticket;
use crate::workers::Answer;
use crate::workers::request::Request;
use flatwater_base::error::Result;

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
