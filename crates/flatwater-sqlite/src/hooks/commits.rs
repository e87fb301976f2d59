//! The commits of a connection: whether they are refused, when one began, how many were published, and how often something
//! was undone.
//!
//! Owns: what the commit, the rollback and the WAL hook record. Runs on the thread that uses the connection, also inside of
//! the hooks; the refusal may be set on any thread. Invariant: a commit that is refused counts for nothing. Leaves out: the hooks.

use std::cell::{Cell, OnceCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// What is known about the next commit.
#[derive(Clone, Copy, Default)]
enum Commit {
    #[default]
    Unwatched,
    Watched,
    Began(Instant),
}

#[derive(Default)]
/// What is known of the commits of a connection.
pub struct Commits {
    commit: Cell<Commit>,
    /// The number of commits that wrote to the WAL of the main database.
    published: Cell<u32>,
    /// How often a transaction was rolled back, or undone up to a savepoint.
    undone: Cell<u32>,
    /// A commit began, and none was published since.
    unpublished: Cell<bool>,
    /// A commit began while an earlier one was unpublished.
    missed: Cell<bool>,
    /// While this is true, commits are refused.
    refused: OnceCell<Arc<AtomicBool>>,
}

impl Commits {
    /// Refuses every commit with SQLITE_CONSTRAINT_COMMITHOOK while `refused` is true: its transaction is rolled back. The
    /// first call counts. A closure that replaces the commit hook is not refused while it runs.
    pub fn refuse_while(&self, refused: Arc<AtomicBool>) {
        let _ = self.refused.set(refused);
    }

    /// Called when a commit is about to begin. Returns false if it is refused.
    pub(crate) fn begins(&self) -> bool {
        if self.refused.get().is_some_and(|refused| refused.load(Ordering::SeqCst)) {
            return false;
        }
        if self.unpublished.replace(true) {
            self.missed.set(true);
        }
        if !matches!(self.commit.get(), Commit::Unwatched) {
            self.commit.set(Commit::Began(Instant::now()));
        }
        true
    }

    /// Called when a commit was written to the WAL of the main database.
    pub(crate) fn publishes(&self) {
        self.published.set(self.published.get().wrapping_add(1));
        self.unpublished.set(false);
    }

    /// How many commits of this connection went into the main WAL, wrapping. A commit that was then interrupted is
    /// counted late.
    #[must_use]
    pub fn published(&self) -> u32 {
        self.published.get()
    }

    /// Called when changes that were not committed were undone, or may have been.
    pub(crate) fn undoes(&self) {
        self.undone.set(self.undone.get().wrapping_add(1));
    }

    /// How often changes of this connection were undone, wrapping: by a rollback of a transaction, whatever its reason, or
    /// up to a savepoint of [`Control`](crate::Control). A statement that leaves nothing behind because it failed does not
    /// count.
    #[must_use]
    pub fn undone(&self) -> u32 {
        self.undone.get()
    }

    /// Forgets the commits so far, for `missed`.
    pub(crate) fn forget(&self) {
        self.unpublished.set(false);
        self.missed.set(false);
    }

    /// Returns true if a commit began since the connection was lent that wrote nothing to the WAL of the main database:
    /// it failed, or it had nothing to write there. Only known while the hooks are this crate's.
    #[must_use]
    pub fn missed(&self) -> bool {
        self.unpublished.get() || self.missed.get()
    }

    /// Starts to record when a commit reaches its point of no return.
    pub fn watch(&self) {
        self.commit.set(Commit::Watched);
    }

    /// Returns when the last commit since [`watch`](Self::watch) reached its point of no return, if one did. The time
    /// before it was execution, the time after it is writing and syncing. Ends the recording.
    #[must_use]
    pub fn began(&self) -> Option<Instant> {
        if let Commit::Began(at) = self.commit.replace(Commit::Unwatched) { Some(at) } else { None }
    }
}
