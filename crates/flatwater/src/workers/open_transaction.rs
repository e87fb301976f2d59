//! An open transaction, as the handles of its caller use it, and where a caller is inside: in it, or in a nested one.
//!
//! Owns: what can be done with one, wherever it is open, what its end means for a call, and the right to a level, which a handle
//! has. Runs on callers' threads, never blocks. Invariant: dropping the right rolls the level back, unless it has ended, or this
//! process was forked since it began. Leaves out: how it is kept (`kept::transaction`), what the messages do.

use std::sync::Arc;

use super::Answer;
use super::kept::inbox::End;
use super::request::{Request, Tried};
use super::work::Work;
use flatwater_base::error::hint::hint;
use flatwater_base::error::{Error, ErrorCode, Result};
use flatwater_base::inline::eligibility::Permit;
use flatwater_base::thread::current::MayEnd;

/// The savepoints of a handle, outermost first; empty for the transaction itself. Each savepoint has its own number, so
/// that a request for a savepoint that ended is never applied to a later one.
pub(crate) type Savepoints = Vec<u64>;

/// An open transaction.
pub(crate) trait OpenTransaction: Send + Sync {
    /// Returns true if this process was forked since the transaction began.
    fn is_inherited(&self) -> bool;

    /// Returns true until the transaction has ended.
    fn is_open(&self) -> bool;

    /// Returns true while nothing of it runs or waits to run, and when it has ended.
    fn rests(&self) -> bool;

    /// Sends a request, or returns an error if the transaction has ended.
    fn send(&self, request: Request, savepoints: &Savepoints) -> Result<()>;

    /// Runs the work on this thread, if the work is short and no earlier message waits.
    fn run_inline(&self, work: &Work, savepoints: &Savepoints, permit: &Permit<'_>) -> Tried;

    /// Returns the number for a new savepoint.
    fn next_savepoint(&self) -> u64;

    /// Returns the number that the next savepoint will have.
    fn savepoints_begun(&self) -> u64;

    /// Undoes a savepoint whose handle was dropped.
    fn undo(&self, savepoints: &Savepoints);

    /// Ends the transaction after all earlier messages are served, unless it has ended already.
    fn end(&self, end: End);
}

/// The answer to a request that comes after this end: what is to be undone is undone.
pub(crate) fn answer_after(end: &End, work: &Work) -> Result<Answer> {
    if work.describe().undoes() { Ok(Answer::Done) } else { Err(ended(end)) }
}

/// The error for a call that uses the transaction after this end.
pub(crate) fn ended(end: &End) -> Error {
    match end {
        End::Idle(limit) => Error::new(
            ErrorCode::TransactionIdle,
            format!("the transaction was rolled back because it was not used for {limit:?}"),
        )
        .with_hint(hint!["a transaction holds the writer: wait for nothing else inside it, or raise " TransactionIdle]),
        End::Lost(error) => Error::new(
            ErrorCode::Lost,
            format!("SQLite rolled back the transaction because of an earlier error: {}", error.message()),
        )
        .with_hint("begin another one"),
        End::Gone(error) => error.clone(),
        End::Closed => Error::closed(),
        End::Finished | End::Old(_) | End::CutOff => {
            Error::new(ErrorCode::Finished, "the transaction is finished").with_hint("begin another one")
        }
    }
}

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
