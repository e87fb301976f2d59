//! A pin: a read transaction that keeps the WAL from being restarted while the checkpointer copies it.
//!
//! Owns: the transaction, on a connection of its own, because a connection cannot checkpoint in a transaction
//! (<https://sqlite.org/c3ref/wal_checkpoint_v2.html>). Begins on `fw-checkpoint`, and ends on the writer's thread, between two
//! rounds, immediately before the WAL is truncated. Invariant: as long as there is one, no writer of any process restarts the WAL,
//! because a restart needs the locks of all readers of the WAL (<https://sqlite.org/walformat.html#wal_locks>). Leaves out: when one is
//! needed (`passes`).
//!
//! ```text
//! fw-checkpoint, without a pin             another process
//! copies all frames
//!                                          commits: all frames are copied and nobody reads them, so the
//!                                          WAL begins anew, and its old end stays in the file
//! Litestream comes back: it finds the end up to which it has read, so it sends only what follows, and
//! never the frames before that it had not read
//! ```

use std::sync::Arc;

use super::waits::{no_wait, unless_a_sync_failed};
use crate::connection::Connection;
use crate::connection::open::role::Role;
use crate::error::{Error, ErrorKind, Result};
use crate::workers::context::Context;

pub(super) struct Pin {
    /// Closed when the pin is dropped, which ends its transaction.
    _connection: Connection,
    /// The frames up to here are those that may be copied.
    mark: u32,
}

impl Pin {
    /// Begins the transaction. `beside` is the connection that copies.
    pub(super) fn begin(context: &Context, beside: &Connection) -> Result<Self> {
        let mark = beside.sqlite.wal().header().map_or(0, |header| header.max_frame);
        let mut connection = Connection::open(&context.options, &Arc::default(), Role::Checkpointer, no_wait())?;
        connection.control.begin_read(&mut connection.sqlite)?;
        // The first read takes the snapshot.
        connection.schema.cookie(&mut connection.sqlite)?;
        Ok(Self { _connection: connection, mark })
    }

    /// Ends the transaction, after a commit that leaves the WAL with a frame which is not copied: so nobody restarts it before the
    /// checkpoint that follows, which copies that frame and truncates the file under one lock.
    ///
    /// # Errors
    /// A sync failed. After another failure the checkpoint may still be possible.
    pub(super) fn end(self, commit: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        commit().or_else(unless_a_sync_failed)
    }

    /// # Errors
    /// `Busy` if a reader other than this one kept frames from being copied.
    pub(super) fn was_reached(&self, beside: &Connection) -> Result<()> {
        match beside.sqlite.wal().header() {
            Some(header) if header.copied < self.mark => {
                Err(Error::new(ErrorKind::Busy, "a reader keeps the WAL from being copied"))
            }
            _ => Ok(()),
        }
    }
}
