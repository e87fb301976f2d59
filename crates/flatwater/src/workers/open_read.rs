//! A snapshot or a cursor that is open, as its caller and the readers share it.
//!
//! Owns: the caller's rights to them. Runs on callers' threads. Invariant: dropping a right ends what it is a right to.
//! Leaves out: serving them, which the readers do.

use std::sync::Arc;

use flatwater_sqlite::Origin;

use crate::error::Result;
use crate::workers::request::Request;

/// A reader that is kept for one caller, with its open transaction.
pub(crate) trait OpenRead: Send + Sync {
    /// Sends a request, or returns an error if the reader was given back.
    fn send(&self, request: Request) -> Result<()>;

    /// Ends a cursor.
    fn end_cursor(&self, number: u64);

    /// Gives the reader back.
    fn end(&self);

    /// The caller uses rows that were fetched before.
    fn touch(&self);
}

/// A caller's right to a snapshot.
pub(crate) struct SnapshotGuard {
    pub(crate) at: Arc<dyn OpenRead>,
    origin: Origin,
}

impl SnapshotGuard {
    pub(crate) fn new(at: Arc<dyn OpenRead>) -> Self {
        Self { at, origin: Origin::here() }
    }
}

impl Drop for SnapshotGuard {
    fn drop(&mut self) {
        if self.origin.is_inherited() {
            // The connection belongs to the parent process.
            return std::mem::forget(self.at.clone());
        }
        self.at.end();
    }
}

/// A caller's right to the rest of a result.
pub(crate) struct CursorGuard {
    pub(crate) at: Arc<dyn OpenRead>,
    pub(crate) number: u64,
    origin: Origin,
}

impl CursorGuard {
    pub(crate) fn new(at: Arc<dyn OpenRead>, number: u64) -> Self {
        Self { at, number, origin: Origin::here() }
    }
}

impl Drop for CursorGuard {
    fn drop(&mut self) {
        if self.origin.is_inherited() {
            // The connection belongs to the parent process.
            return std::mem::forget(self.at.clone());
        }
        self.at.end_cursor(self.number);
    }
}
