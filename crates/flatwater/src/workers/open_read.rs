//! A snapshot or a cursor that is open, as its caller and the readers share it.
//!
//! Owns: the caller's rights to them. Runs on callers' threads. Invariant: dropping a right ends what it is a right to.
//! Leaves out: serving them, which the readers do.

use std::sync::Arc;

use flatwater_sqlite::is_stranded;

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
pub(crate) struct SnapshotGuard(pub(crate) Arc<dyn OpenRead>);

impl Drop for SnapshotGuard {
    fn drop(&mut self) {
        if is_stranded() {
            // The connection belongs to the parent process.
            return std::mem::forget(self.0.clone());
        }
        self.0.end();
    }
}

/// A caller's right to the rest of a result.
pub(crate) struct CursorGuard {
    pub(crate) at: Arc<dyn OpenRead>,
    pub(crate) number: u64,
}

impl Drop for CursorGuard {
    fn drop(&mut self) {
        if is_stranded() {
            // The connection belongs to the parent process.
            return std::mem::forget(self.at.clone());
        }
        self.at.end_cursor(self.number);
    }
}
