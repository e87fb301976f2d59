//! What the workers need of each other without knowing each other: what the writer reports to the checkpointer and to the live queries, and
//! what a reader hands over to the writer.
//!
//! Owns: the interfaces. The functions of the listeners run on the thread that holds the slot, or that waits for it, and none of them
//! blocks; those of `TakesOver` run on the readers' threads. Leaves out: all implementations.

use std::sync::Arc;
use std::time::{Duration, Instant};

use flatwater_sqlite::WalHeader;

use crate::file::disk::Disk;
use crate::queue::reply::Reply;
use crate::queue::ticket::Ticket;
use crate::workers::Answer;
use crate::workers::request::Request;
use flatwater_base::error::Result;
use flatwater_sql::dependencies::change::Change;

/// The checkpointer, as the writer sees it. It says how long writes wait when the WAL is too long.
pub(crate) trait CommitListener: Send + Sync {
    /// Reports that there may have been commits up to `now`, and the WAL's header. Must be fast: it is called once per
    /// round of the writer.
    fn grew(&self, header: &WalHeader, now: Instant);

    /// Returns how long the next write still has to wait, if it has to.
    fn delay(&self, now: Instant) -> Option<Duration>;

    /// Records that a write was delayed for so long.
    fn delayed(&self, took: Duration);

    /// Returns the number of pages that the database may have on its disk.
    fn page_limit(&self) -> u32;

    /// Reports the state of the disk, when space was missing.
    fn looked_at(&self, disk: &Disk, header: &WalHeader);

    /// Returns true while the checkpointer copies frames, which ends by itself and keeps every other checkpoint out.
    fn is_copying(&self) -> bool;

    /// Ends the read transaction of the checkpointer that keeps the WAL from being restarted, if there is one, after a commit. While the
    /// returned value lives, there is no other one. Called in the slot.
    fn unpin(&self, commit: &mut dyn FnMut() -> Result<()>) -> Result<Box<dyn Send>>;

    /// Ends the leases of readers. While the returned value lives, no reader takes a lease.
    fn end_leases(&self) -> Box<dyn Send>;
}

/// The live queries, as the writer sees them.
pub(crate) trait ChangeListener: Send + Sync {
    /// Returns true if there is a live query: then changes are recorded and published.
    fn is_watching(&self) -> bool;

    /// Reports what the commits since the last call changed. Called in the writer slot, after the commits and before
    /// their callers are woken.
    fn publish(&self, change: &Change);

    /// Runs the live queries that were invalidated. Called when the slot is released, on the thread that published; it
    /// may wake tasks.
    fn start(&self);
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
