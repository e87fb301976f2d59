//! What an inline run needs of the writer's connection, and what is known of its schema: the part of the connection
//! that callers' threads use.
//!
//! Owns: inline runs on the connection; what others may have committed or changed since the token was last given back;
//! giving up a connection that cannot be trusted. Runs on the thread that holds the token. Invariant: nothing here
//! waits or opens a file, except `renew` and `see_schema`, which only a worker calls. Leaves out: which writes are
//! eligible (`inline_write`).

use flatwater_sqlite::WalState;

use super::connection::WriterConnection;
use super::failed_commit::Changes;
use super::state::Commits;
use crate::connection::Connection;
use crate::connection::run::inline_run::{self, Begun, LastRead, Reads};
use crate::inline::outcome::Fallback;
use crate::sql::schema_seen::LeftWal;

/// What was committed since the token was last given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Committed {
    Nothing,
    /// Only by this connection.
    Ours,
    /// By another connection too, or it is not known.
    Others,
}

impl Commits {
    fn since(self, before: Option<Self>) -> Committed {
        let Some(before) = before else { return Committed::Others };
        match (self.all.wrapping_sub(before.all), self.own.wrapping_sub(before.own)) {
            (0, 0) => Committed::Nothing,
            (all, own) if all == own => Committed::Ours,
            _ => Committed::Others,
        }
    }
}

impl WriterConnection {
    /// Runs `f` as an inline run: no snapshot begins in it that would have to wait or to recover the wal-index, it
    /// waits for no locks, and one page that is read from a file after `last_read` is refused. Also returns what became
    /// of its reads. Returns `None` if this connection is not capable of inline runs.
    pub(super) fn run_inline<T>(
        &mut self,
        bytes: usize,
        last_read: Option<LastRead>,
        f: impl FnOnce(&mut Self) -> T,
    ) -> Option<(T, Reads)> {
        self.busy_timeout.never();
        let connection = self.connection.as_mut()?;
        connection.lengths.lower(&mut connection.sqlite, bytes);
        // In memory nothing waits, and nothing is read from a file.
        let begun = if self.watch.is_none() { None } else { Some(inline_run::begin(&connection.sqlite, last_read)?) };
        let result = f(self);
        Some((result, begun.map_or_else(Reads::default, Begun::end)))
    }

    /// Marks the connection as suspect: a page was refused that SQLite read to roll back, so its cache may hold pages
    /// that were never committed. Nothing runs on the connection any more, and a worker opens another.
    pub(super) fn suspect(&mut self) {
        self.is_suspect = true;
    }

    pub(super) fn is_suspect(&self) -> bool {
        self.is_suspect
    }

    /// Opens another connection in the place of a suspect one, and closes the suspect one after that: if it were the
    /// last one in the process, the next connection to open the file would recover the WAL.
    pub(super) fn renew(&mut self) {
        if !std::mem::take(&mut self.is_suspect) {
            return;
        }
        let suspect = self.take();
        // If this fails, the next use tries again, and waits.
        self.busy_timeout.never();
        let _ = self.connection();
        drop(suspect);
    }

    /// Begins a read transaction beside autocommit, without waiting for a lock, if the schema is the known one.
    pub(super) fn hold(&mut self, state: &WalState, left: &LeftWal) -> Result<(), Fallback> {
        self.busy_timeout.never();
        let Some(Connection { sqlite, control, schema, .. }) = &mut self.connection else {
            return Err(Fallback::Failed);
        };
        schema.hold_known(sqlite, control, state, left)
    }

    /// Returns true if the schema can only be the known one.
    pub(super) fn has_seen_schema(&self, state: &WalState, left: &LeftWal) -> bool {
        self.connection.as_ref().is_some_and(|connection| connection.schema.seen.holds(state, left))
    }

    /// Reads the schema if it may differ from the known one. Called by a worker. Waits for no lock.
    pub(super) fn see_schema(&mut self, left: &LeftWal) {
        self.busy_timeout.never();
        if let Some(Connection { sqlite, control, schema, .. }) = &mut self.connection {
            schema.see(sqlite, control, left);
        }
    }

    /// Called before the slot is released at this state: records the state, and whether the schema may have changed.
    /// Returns what was committed since the slot was last released.
    pub(super) fn leave_at(&mut self, state: &WalState, left: &LeftWal) -> Committed {
        let Some(Connection { sqlite, schema, .. }) = &self.connection else { return Committed::Others };
        let now = Commits { stamp: state.stamp(), all: state.change(), own: sqlite.published() };
        if self.commits == Some(now) {
            return Committed::Nothing;
        }
        let committed = now.since(self.commits);
        left.leave(state, !schema.seen.is_known() || committed == Committed::Others);
        self.commits = Some(now);
        committed
    }

    /// Returns what shows a commit to the main file and to the attached files.
    pub(super) fn changes(&self) -> Changes {
        let connection = self.connection.iter();
        let attached = connection.flat_map(|connection| {
            let counted = |name: &str| Some((name.into(), connection.sqlite.attached_change(name)?));
            connection.attached.in_wal_mode.iter().filter_map(move |name| counted(name))
        });
        Changes { main: self.change(), attached: attached.collect() }
    }

    /// Returns true if the state is not the one at which the slot was last released.
    pub(super) fn has_left(&self, state: &WalState) -> bool {
        self.commits.is_some_and(|commits| commits.stamp == state.stamp())
    }

    /// Ends the read transaction that `hold` began.
    pub(super) fn let_go(&mut self) {
        if let Some(Connection { sqlite, control, .. }) = &mut self.connection {
            control.let_go(sqlite);
        }
    }

    /// Removes the length limit of inline runs. Called before a worker uses the connection.
    pub(super) fn unlimit(&mut self) {
        if let Some(connection) = &mut self.connection {
            connection.lengths.restore(&mut connection.sqlite);
        }
    }

    /// Returns true if the schema was seen when the open transaction began.
    pub(super) fn has_settled_schema(&self) -> bool {
        let is_seen = |connection: &Connection| self.is_in_memory() || connection.schema.seen.is_known();
        self.connection.as_ref().is_some_and(is_seen)
    }
}
