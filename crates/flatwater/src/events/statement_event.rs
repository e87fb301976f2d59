//! The event of one call, and the caller's function that receives it.
//!
//! Owns: what is reported, calling the function, and the mark of a thread that runs it. Runs on the thread that ends a
//! call. Invariants: an event contains no bound value; a panic of the function stays here; what the function calls is not
//! reported. Leaves out: gathering the event (`report`), and `tracing` (`events`).

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use flatwater_base::error::Error;

/// Where the work of a call ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ExecutedOn {
    /// On the thread that polled the call, at once: see [`Tuning::inline`](crate::options::Tuning::inline).
    Caller,
    /// On a reader.
    Reader,
    /// On the writer, by itself or in an open transaction.
    Writer,
    /// On the writer, in a transaction that other callers' writes may share.
    Group,
    /// On a server, from when it was sent for the first time.
    Server,
}

impl ExecutedOn {
    /// Returns the name: `caller`, `reader`, `writer`, `group`, or `server`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Caller => "caller",
            Self::Reader => "reader",
            Self::Writer => "writer",
            Self::Group => "group",
            Self::Server => "server",
        }
    }
}

/// The outcome of one call: see [`Options::on_statement`](crate::Options::on_statement).
///
/// Each call has one event, when it ends. A `batch`, a stream with all its batches, a closure, a `begin` and a `commit`
/// are calls too. The event never contains bound values.
#[derive(Debug)]
#[non_exhaustive]
pub struct StatementEvent<'a> {
    /// The path of the database.
    pub path: &'a Path,
    /// The method that was called, such as `query_as` or `commit`.
    pub operation: &'static str,
    /// The SQL text. The texts of a batch are joined by `; `. `None` for closures, checkpoints and migrations, and for a
    /// call whose parameters were refused.
    pub sql: Option<&'a str>,
    /// True for a call of an open transaction.
    pub in_transaction: bool,
    /// Where it ran; `None` if it did not run.
    pub ran_on: Option<ExecutedOn>,
    /// How long the call waited until it ran, locks excluded.
    pub queue: Duration,
    /// How long it waited for locks that other connections held.
    pub lock: Duration,
    /// How long it ran.
    pub run: Duration,
    /// From the first poll of the call to its end.
    pub total: Duration,
    /// The number of rows that were returned, if rows were asked for.
    pub rows: Option<u64>,
    /// The number of rows that were changed, if a write was asked for.
    pub changes: Option<u64>,
    /// Why it failed. A call that was dropped has the kind [`Cancelled`](crate::ErrorKind::Cancelled).
    pub error: Option<&'a Error>,
    /// True if `total` is at least [`Options::slow_statement`](crate::Options::slow_statement). For a stream or
    /// batches the sum of `queue`, `lock` and `run` counts, without the time in which the caller used the rows.
    pub is_slow: bool,
}

/// The caller's function that receives every event. Two are equal if they are clones of one.
#[derive(Clone)]
pub(crate) struct Listener(pub(crate) Arc<dyn Fn(&StatementEvent<'_>) + Send + Sync>);

impl PartialEq for Listener {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Listener {}

impl std::fmt::Debug for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Listener")
    }
}

thread_local! {
    static IS_TELLING: Cell<bool> = const { Cell::new(false) };
}

/// Returns true on a thread that runs `tell`.
pub(crate) fn is_telling() -> bool {
    IS_TELLING.get()
}

/// Runs foreign code that receives an event. Its panic ends here: the call that is reported has its own result.
pub(crate) fn tell(f: impl FnOnce()) {
    let before = IS_TELLING.replace(true);
    let ran = catch_unwind(AssertUnwindSafe(f));
    IS_TELLING.set(before);
    if let Err(panic) = ran {
        // Dropping what it panicked with may panic too.
        std::mem::forget(panic);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_of_the_listener_ends_with_the_mark() {
        tell(|| {
            assert!(is_telling());
            tell(|| panic!("planted"));
            assert!(is_telling());
        });
        assert!(!is_telling());
    }

    #[test]
    fn listeners_are_equal_if_they_are_clones_of_one() {
        let listener = Listener(Arc::new(|_: &StatementEvent<'_>| {}));
        assert_eq!(listener, listener.clone());
        assert_ne!(listener, Listener(Arc::new(|_: &StatementEvent<'_>| println!())));
    }
}
