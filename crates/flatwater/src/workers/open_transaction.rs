//! An open transaction, as the handles of its caller use it.
//!
//! Owns: what can be done with one, wherever it is open, and what its end means for a call. Runs on callers' threads. Leaves
//! out: how it is kept (`kept::transaction`), what the messages do, and the rights of callers (`nesting`).

use crate::error::hint::hint;
use crate::error::{Error, Result, TimeoutEffect};
use crate::inline::permit::Permit;
use crate::workers::Answer;
use crate::workers::kept::inbox::End;
use crate::workers::request::Request;
use crate::workers::tried::Tried;
use crate::workers::work::Work;

/// The savepoints of a handle, outermost first; empty for the transaction itself. Each savepoint has its own number, so
/// that a request for a savepoint that ended is never applied to a later one.
pub(crate) type Savepoints = Vec<u64>;

/// An open transaction.
pub(crate) trait OpenTransaction: Send + Sync {
    /// Returns true if this process was forked since the transaction began.
    fn is_inherited(&self) -> bool;

    /// Returns true until the transaction has ended.
    fn is_open(&self) -> bool;

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
        End::Idle(limit) => Error::timeout(
            format!("the transaction was rolled back because it was not used for {limit:?}"),
            TimeoutEffect::No,
        )
        .with_hint(hint!["a transaction holds the writer: wait for nothing else inside it, or raise " TransactionIdle]),
        End::Lost(error) => Error::misuse(format!(
            "SQLite rolled back the transaction because of an earlier error: {}",
            error.message()
        ))
        .with_hint("begin another one"),
        End::Gone(error) => error.clone(),
        End::Closed => Error::closed(),
        End::Finished | End::Old(_) | End::CutOff => {
            Error::misuse("the transaction is finished").with_hint("begin another one")
        }
    }
}
