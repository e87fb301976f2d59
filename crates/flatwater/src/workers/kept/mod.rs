//! A connection that is kept for one caller, as its caller and the workers share it: for a transaction (`transaction`), a reader
//! for a snapshot or a cursor that is open, or a connection of the caller's own.
//!
//! Owns: the caller's rights to snapshots and cursors. Runs on callers' threads. Invariant: dropping a right ends what it is a right to.
//! Leaves out: serving them, which the workers do.

pub(crate) mod inbox;
pub(crate) mod transaction;

use std::sync::Arc;

use flatwater_sqlite::Origin;

use crate::connection::functions::Functions;
use crate::queue::ticket::CallOptions;
use crate::workers::request::{Request, Tried};
use crate::workers::work::Work;
use flatwater_base::error::Result;
use flatwater_base::inline::eligibility::Permit;
use flatwater_base::inline::outcome::{InlineRun, NotTried};

/// A connection that is kept for one caller.
pub(crate) trait KeptConnection: Send + Sync {
    /// Sends a request, or returns an error if the connection was given back.
    fn send(&self, request: Request) -> Result<()>;

    /// Ends a cursor.
    fn end_cursor(&self, number: u64);

    /// Gives the connection back.
    fn end(&self);

    /// The functions and collations of this connection alone. `None`: it has those of the database.
    fn functions(&self) -> Option<&Arc<Functions>> {
        None
    }

    /// Returns true if short statements on it run on the thread of their caller.
    fn runs_inline(&self) -> bool {
        false
    }

    /// Runs the work on this thread now, if it is known to be short and nothing waits that was sent before.
    fn run_inline(&self, _: &Work, _: &Permit<'_>, _: CallOptions) -> Tried {
        Tried::Ran(InlineRun::Ineligible(NotTried::Other))
    }

    /// Returns true if the caller has a transaction open on it that may write.
    fn in_transaction(&self) -> bool {
        false
    }

    /// The caller uses rows that were fetched before.
    fn touch(&self);
}

/// A caller's right to a snapshot.
pub(crate) struct SnapshotGuard {
    pub(crate) at: Arc<dyn KeptConnection>,
    origin: Origin,
}

impl SnapshotGuard {
    pub(crate) fn new(at: Arc<dyn KeptConnection>) -> Self {
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
    pub(crate) at: Arc<dyn KeptConnection>,
    pub(crate) number: u64,
    origin: Origin,
}

impl CursorGuard {
    pub(crate) fn new(at: Arc<dyn KeptConnection>, number: u64) -> Self {
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
