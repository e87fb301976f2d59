//! What a stay needs of the writer's connection, and what is known of its schema: the part of the writer that callers' threads
//! use.
//!
//! Owns: running something as a stay; what others may have committed or changed since the token was last given back; giving up
//! a connection that cannot be trusted. Used by whoever holds the token. Invariant: nothing here waits or opens a file, but
//! for `renew` and `see_schema`, which are a worker's. Leaves out: which writes may stay (`inline`).

use flatwater_sqlite::WalState;

use super::connection::WriterConnection;
use crate::connection::inline::{self, Begun, LastRead, Reads};
use crate::connection::open::Connection;
use crate::inline::outcome::Fallback;
use crate::sql::seen::Left;

/// What was committed up to a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Commits {
    /// Of the WAL's state.
    stamp: u32,
    /// By anybody: the change counter of the WAL.
    all: u32,
    /// By this connection.
    own: u32,
}

impl Commits {
    fn are_ours_since(self, before: Self) -> bool {
        self.all.wrapping_sub(before.all) == self.own.wrapping_sub(before.own)
    }
}

impl WriterConnection {
    /// Runs `f` as a stay: no snapshot begins in it that would have to wait or to recover, locks are not waited for, and one
    /// page that is read from a file after `last_read` is refused. Answers also what became of its reads; `None` if this
    /// connection cannot have a stay.
    pub(super) fn run_inline<T>(
        &mut self,
        bytes: usize,
        last_read: Option<LastRead>,
        f: impl FnOnce(&mut Self) -> T,
    ) -> Option<(T, Reads)> {
        self.busy_timeout.never();
        let connection = self.connection.as_mut()?;
        connection.limit(bytes);
        // In memory nothing is waited for, and nothing read.
        let begun = if self.watch.is_none() { None } else { Some(inline::begin(&connection.sqlite, last_read)?) };
        let result = f(self);
        Some((result, begun.map_or_else(Reads::default, Begun::end)))
    }

    /// A page was refused that SQLite read to roll back: its cache may hold what was never committed. Nothing runs on the
    /// connection any more, and a worker opens another.
    pub(super) fn suspect(&mut self) {
        self.is_suspect = true;
    }

    pub(super) fn is_suspect(&self) -> bool {
        self.is_suspect
    }

    /// Opens another connection in the place of a suspect one, which is closed after that: were it the last one in the process,
    /// the next to open the file would recover the WAL.
    pub(super) fn renew(&mut self) {
        if !std::mem::take(&mut self.is_suspect) {
            return;
        }
        let suspect = self.take();
        // If it fails the next use tries again.
        let _ = self.connection();
        drop(suspect);
    }

    /// Begins a read transaction beside autocommit, without waiting for a lock, if the schema is the one that is known.
    pub(super) fn hold(&mut self, state: &WalState, left: &Left) -> Result<(), Fallback> {
        self.busy_timeout.never();
        let Some(connection) = &mut self.connection else { return Err(Fallback::Failed) };
        connection.hold_known_schema(state, left)
    }

    /// Whether the schema can only be the one that is known.
    pub(super) fn has_seen_schema(&self, state: &WalState, left: &Left) -> bool {
        self.connection.as_ref().is_some_and(|connection| connection.seen.holds(state, left))
    }

    /// On a worker: reads the schema if it may be another than the one that is known. Waits for no lock.
    pub(super) fn see_schema(&mut self, left: &Left) {
        self.busy_timeout.never();
        if let Some(connection) = &mut self.connection {
            connection.see_schema(left);
        }
    }

    /// The slot is about to be released at this state: notes it, and whether the schema may have changed.
    pub(super) fn leave_at(&mut self, state: &WalState, left: &Left) {
        let Some(Connection { sqlite, seen, .. }) = &self.connection else { return };
        let now = Commits { stamp: state.stamp(), all: state.change(), own: sqlite.published() };
        if self.commits != Some(now) {
            let is_known = seen.is_known() && self.commits.is_some_and(|before| now.are_ours_since(before));
            left.leave(state, !is_known);
            self.commits = Some(now);
        }
    }

    /// Ends what `hold` began.
    pub(super) fn let_go(&mut self) {
        if let Some(Connection { sqlite, control, .. }) = &mut self.connection {
            control.let_go(sqlite);
        }
    }

    /// A worker is about to use the connection: the limit of a stay ends.
    pub(super) fn unlimit(&mut self) {
        if let Some(connection) = &mut self.connection {
            connection.unlimit();
        }
    }

    /// Whether the schema was seen when the transaction that is open began.
    pub(super) fn has_settled_schema(&self) -> bool {
        let is_seen = |connection: &Connection| self.is_in_memory() || connection.seen.is_known();
        self.connection.as_ref().is_some_and(is_seen)
    }
}
