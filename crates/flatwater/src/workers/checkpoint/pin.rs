//! A pin: a read transaction that keeps the WAL from being restarted while the checkpointer copies it.
//!
//! Owns: the transaction, on a connection of its own, because a connection cannot checkpoint in a transaction
//! (<https://sqlite.org/c3ref/wal_checkpoint_v2.html>). Begins on `fw-checkpoint`, and is ended by whoever holds the slot, immediately
//! before a checkpoint that truncates the WAL or that a caller demands. Invariant: as long as there is one, no writer of any process
//! restarts the WAL, because a restart needs the locks of all readers of the WAL (<https://sqlite.org/walformat.html#wal_locks>).
//! While a transaction of this process is open, a pin waits for its end, and holds up checkpoints as a reader does.
//! Leaves out: when one is needed (`passes`).
//!
//! ```text
//! fw-checkpoint, without a pin             another process
//! copies all frames
//!                                          commits: all frames are copied and nobody reads them, so the
//!                                          WAL begins anew, and its old end stays in the file
//! Litestream comes back: it finds the end up to which it has read, so it sends only what follows, and
//! never the frames before that it had not read
//! ```

use std::sync::{Arc, Mutex, MutexGuard};

use super::passes::no_wait;
use crate::connection::EngineConnection;
use crate::connection::open::Role;
use crate::workers::context::Context;
use flatwater_base::error::{Error, ErrorCode, Result};
use flatwater_base::thread::lock;

/// The pin of one checkpointer, if there is one.
#[derive(Clone, Default)]
pub(super) struct Pin(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    pinned: Option<Pinned>,
    /// The holder of the slot runs a checkpoint, which would wait for a pin, and the pin for the slot.
    is_refused: bool,
}

/// While it lives, there is no pin.
pub(super) struct NoPin(Pin);

impl Drop for NoPin {
    fn drop(&mut self) {
        self.0.lock().is_refused = false;
    }
}

struct Pinned {
    /// Closed when the pin ends, which ends its transaction.
    _connection: EngineConnection,
    /// The frames up to here are those that may be copied.
    mark: u32,
}

impl Pin {
    /// Pins the WAL as it is now, if the connection that copies finds frames to copy. Ends an earlier pin after that. If there are none,
    /// an earlier pin stays: a reader that begins when all is copied reads the database, and keeps nobody from restarting the WAL.
    pub(super) fn renew(&self, context: &Context, beside: &EngineConnection) -> Result<()> {
        let Some(header) = beside.sqlite.wal().header().filter(|header| header.copied < header.max_frame) else {
            return Ok(());
        };
        let mut connection = EngineConnection::open(&context.options, &Arc::default(), Role::Checkpointer, no_wait())?;
        connection.control.begin_read(&mut connection.sqlite)?;
        // The first read takes the snapshot.
        connection.schema.cookie(&mut connection.sqlite)?;
        let mut state = self.lock();
        if state.is_refused {
            return Err(Error::new(ErrorCode::CheckpointBusy, "another checkpoint of this process runs"));
        }
        state.pinned = Some(Pinned { _connection: connection, mark: header.max_frame });
        Ok(())
    }

    /// # Errors
    /// `Busy` if a reader other than this one kept frames from being copied.
    pub(super) fn was_reached(&self, beside: &EngineConnection) -> Result<()> {
        let copied = beside.sqlite.wal().header().map_or(u32::MAX, |header| header.copied);
        match &self.lock().pinned {
            Some(pinned) if copied < pinned.mark => {
                Err(Error::new(ErrorCode::CheckpointBusy, "a reader keeps the WAL from being copied"))
            }
            _ => Ok(()),
        }
    }

    /// Ends it after a commit that leaves the WAL with a frame which is not copied: so nobody restarts the WAL before the checkpoint
    /// that follows. Called in the slot. If there can be no such commit now, because another process writes, the pin stays.
    ///
    /// # Errors
    /// The commit failed.
    pub(super) fn end(&self, commit: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        // The commit takes its time, and nobody else ends the pin, because the slot is held.
        if self.lock().pinned.is_none() {
            return Ok(());
        }
        commit()?;
        self.lock().pinned.take();
        Ok(())
    }

    /// The same, and there is no other pin as long as the returned value lives.
    ///
    /// # Errors
    /// The commit failed.
    pub(super) fn refuse(&self, commit: &mut dyn FnMut() -> Result<()>) -> Result<NoPin> {
        self.lock().is_refused = true;
        let refused = NoPin(self.clone());
        self.end(commit).map(|()| refused)
    }

    /// Ends it if frames are left that are not copied, which keep the WAL from being restarted as well.
    pub(super) fn end_if_not_needed(&self, beside: &EngineConnection) {
        if beside.sqlite.wal().header().is_some_and(|header| header.copied < header.max_frame) {
            self.lock().pinned.take();
        }
    }

    /// Ends it in any case: the thread that it is for ends.
    pub(super) fn give_up(&self) {
        self.lock().pinned.take();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.0)
    }
}
