//! What the writer tells of the WAL, and the wait it owes when the WAL is too long.
//!
//! Owns: the calls between the writer and whoever keeps the WAL short. Leaves out: both.

use std::time::Instant;

use flatwater_sqlite::WalHeader;

pub(crate) trait CommitListener: Send + Sync {
    /// Something may have been committed up to `now`; the WAL is like this. Must be short: it is called for each turn of
    /// the writer.
    fn grew(&self, header: &WalHeader, now: Instant);

    /// Whether the WAL is shorter than it may be, so that the next turn need not wait.
    fn has_room(&self) -> bool;

    /// Ends the leases of readers. While the answer lives none is taken.
    fn end_leases(&self) -> Box<dyn Send>;

    /// Called before a turn, with the token. Blocks for a while if the WAL is longer than it may be, never for ever.
    fn wait_for_room(&self);
}
