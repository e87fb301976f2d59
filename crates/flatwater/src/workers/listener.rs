//! What the writer reports about the WAL, and its wait when the WAL is too long.
//!
//! Owns: the interface between the writer and the checkpointer. Its functions run on the thread that holds the writer's
//! token. Invariant: none of them blocks for ever. Leaves out: both implementations.

use std::time::Instant;

use flatwater_sqlite::WalHeader;

use crate::file::disk::Disk;

pub(crate) trait CommitListener: Send + Sync {
    /// Reports that there may have been commits up to `now`, and the WAL's header. Must be fast: it is called once per
    /// round of the writer.
    fn grew(&self, header: &WalHeader, now: Instant);

    /// Returns true if the WAL is within its limits, so that the next round need not wait.
    fn has_room(&self) -> bool;

    /// Returns the number of pages that the database may have on its disk.
    fn page_limit(&self) -> u32;

    /// Reports the state of the disk, when space was missing.
    fn looked_at(&self, disk: &Disk, header: &WalHeader);

    /// Ends the leases of readers. While the returned value lives, no reader takes a lease.
    fn end_leases(&self) -> Box<dyn Send>;

    /// Waits before a round, holding the token, if the WAL is longer than its limits. Blocks for a bounded time.
    fn wait_for_room(&self);
}
