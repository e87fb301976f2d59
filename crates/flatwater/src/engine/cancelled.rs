//! What giving a call up did.
//!
//! Owns: the type that says it. Leaves out: giving up a request (`dispatch`), and an opening (`opening`).

/// What [`Call::cancel`](crate::Call::cancel) did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CancelOutcome {
    /// The request did not begin and never will: it changed nothing.
    Withdrawn,
    /// The request runs and only reads. It is interrupted.
    ReadInterrupted,
    /// The request runs and may write. It is interrupted and rolled back: nothing of it is kept. The same for what has not
    /// got its lock or its connection yet, such as `begin`, `checkpoint` and `open`. Inside a transaction this may end the
    /// whole transaction. What `migrate` and `with_connection` committed before stays.
    WriteInterrupted,
    /// The request writes and is finished, and its result is discarded: its commit has begun, or it shares a commit with
    /// other writes; or it ends a transaction or a savepoint, or closes the database.
    WriteRunning,
    /// The result was already there, and is discarded.
    Answered,
}
