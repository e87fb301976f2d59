//! Where a caller is inside an open transaction: in the transaction itself, or in a nested one.
//!
//! Owns: the right to such a level, which a caller's handle has. Runs on callers' threads, never blocks. Invariant: dropping
//! the right rolls the level back, unless it has ended, or this process was forked since it began. Leaves out: what happens
//! on each level (`open_transaction`).

use std::sync::Arc;

use crate::thread::reentrancy::MayEnd;
use crate::workers::kept::inbox::End;
use crate::workers::open_transaction::{OpenTransaction, Savepoints};

/// The position of a handle inside an open transaction.
#[derive(Clone)]
pub(crate) struct Inside {
    pub(crate) transaction: Arc<dyn OpenTransaction>,
    pub(crate) savepoints: Savepoints,
}

impl MayEnd for Inside {
    fn is_open(&self) -> bool {
        self.transaction.is_open()
    }
}

/// A caller's right to an open transaction. Dropping it rolls back what is not committed.
pub(crate) struct TransactionGuard(pub(crate) Arc<dyn OpenTransaction>);

/// A caller's right to the innermost nested transaction of a position. `None`: it has ended.
pub(crate) struct NestedGuard(Option<Arc<Inside>>);

/// A caller's right to a level of an open transaction. Dropping it rolls back that level's changes, unless it has
/// ended.
pub(crate) enum Level {
    Outermost(#[allow(dead_code, reason = "its drop ends the transaction")] TransactionGuard),
    Nested(NestedGuard),
}

impl Level {
    pub(crate) fn nested(inside: Option<Arc<Inside>>) -> Self {
        Self::Nested(NestedGuard(inside))
    }

    /// Records that the level was kept or undone: dropping a nested one then does nothing. The transaction itself records
    /// the end of the transaction.
    pub(crate) fn ended(&mut self) {
        if let Self::Nested(guard) = self {
            guard.0 = None;
        }
    }
}

impl Drop for NestedGuard {
    fn drop(&mut self) {
        if let Some(inside) = self.0.as_ref().filter(|inside| !inside.transaction.is_inherited()) {
            inside.transaction.undo(&inside.savepoints);
        }
    }
}

impl Drop for TransactionGuard {
    fn drop(&mut self) {
        if self.0.is_inherited() {
            // The connection belongs to the parent process.
            return std::mem::forget(self.0.clone());
        }
        self.0.end(End::Finished);
    }
}
