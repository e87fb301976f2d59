//! Whether a database that is open has no connection.
//!
//! Owns: the state, the wait for its end, and who is told of that. Runs on the threads that open connections.
//! Invariant: it begins under a drain, on the thread that holds the writer slot, and ends when the writer has opened
//! its connection again. Leaves out: closing and opening the connections (`workers::writer`), which databases are
//! parked (`engine::parking`).

use std::sync::{Condvar, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use crate::error::Result;
use crate::thread::lock;

#[derive(Default)]
pub(crate) struct ParkedState {
    is_set: Mutex<bool>,
    /// Signalled when it is not parked any more.
    ended: Condvar,
    tells: OnceLock<Box<dyn HasConnections>>,
}

/// Who must know when a parked database gets connections again.
pub(crate) trait HasConnections: Send + Sync {
    /// Called before they are opened. Waits until there is room for them, or `is_over`. The opening ends when the returned
    /// value is dropped. Fails if it is over.
    fn wait_for_room(&self, is_over: &dyn Fn() -> bool) -> Result<Box<dyn Send>>;

    /// Called when there are connections again.
    fn has_connections(&self);
}

impl ParkedState {
    /// Returns true if the database is open and has no connection, so that only the writer may open one.
    pub(crate) fn is_set(&self) -> bool {
        *lock(&self.is_set)
    }

    /// Sets who must know when there are connections again. Called once.
    pub(crate) fn tell(&self, tells: Box<dyn HasConnections>) {
        let _ = self.tells.set(tells);
    }

    /// Waits until a parked database may have connections again. Blocks.
    pub(crate) fn wait_for_room(&self, is_over: &dyn Fn() -> bool) -> Result<Option<Box<dyn Send>>> {
        self.tells.get().filter(|_| self.is_set()).map(|tells| tells.wait_for_room(is_over)).transpose()
    }

    /// Waits until the database is not parked, or for this time.
    pub(crate) fn wait_for_end(&self, time: Duration) {
        let is_set = lock(&self.is_set);
        if *is_set {
            drop(self.ended.wait_timeout(is_set, time).unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// Records that all connections were closed. Called under a drain.
    pub(crate) fn begin(&self) {
        *lock(&self.is_set) = true;
    }

    /// Allows connections again.
    pub(crate) fn end(&self) {
        *lock(&self.is_set) = false;
        self.ended.notify_all();
        self.tells.get().inspect(|tells| tells.has_connections());
    }
}
