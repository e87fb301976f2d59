//! What was committed since the slot was last released.
//!
//! Owns: the commits that this connection and others made, and what shows them: the change counters of the WALs. Runs on the
//! thread that holds the slot. Leaves out: what is published of them (`publish`), what a failed COMMIT means
//! (`failed_commit`).

use flatwater_sqlite::{Sqlite, WalState};

use super::failed_commit::{Change, Changes};
use super::state::Commits;
use super::writer_connection::WriterConnection;
use crate::connection::EngineConnection;
use flatwater_sql::catalogue::LeftWal;

/// What was committed since the slot was last released.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Committed {
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

/// Called before the slot is released at this state: records the state, and whether the schema may have changed.
/// Returns what was committed since the slot was last released.
pub(crate) fn leave_at(writer: &mut WriterConnection, state: &WalState, left: &LeftWal) -> Committed {
    let Some(EngineConnection { sqlite, schema, .. }) = &writer.connection else { return Committed::Others };
    let now = Commits { stamp: state.stamp(), all: state.change(), own: published(sqlite, writer.commits_beside) };
    if writer.commits == Some(now) {
        return Committed::Nothing;
    }
    let committed = now.since(writer.commits);
    left.leave(state.stamp(), !schema.seen.is_known() || committed == Committed::Others);
    writer.commits = Some(now);
    committed
}

/// Returns how many commits of a connection of a caller went into the WAL since the last call.
pub(crate) fn take_new_commits(own: &mut WriterConnection) -> u32 {
    let published = own.connection.as_ref().map_or(0, |connection| connection.sqlite.hooks().commits.published());
    published.wrapping_sub(std::mem::replace(&mut own.commits_beside, published))
}

/// The commits of this engine: those of the connection, and those that were made beside it in its slot.
fn published(sqlite: &Sqlite, beside: u32) -> u32 {
    sqlite.hooks().commits.published().wrapping_add(beside)
}

/// Returns true if the state is not the one at which the slot was last released.
pub(crate) fn has_left(writer: &WriterConnection, state: &WalState) -> bool {
    writer.commits.is_some_and(|commits| commits.stamp == state.stamp())
}

/// Returns what shows a commit to the main file from outside the connection.
pub(crate) fn change(writer: &WriterConnection) -> Change {
    if writer.is_in_memory() {
        return Change::InMemory;
    }
    writer.wal_header().map_or(Change::Unseen, |header| Change::Wal(header.change))
}

/// Returns what shows a commit to the main file and to the attached files.
pub(crate) fn changes(writer: &WriterConnection) -> Changes {
    let connection = writer.connection.iter();
    let attached = connection.flat_map(|connection| {
        let counted = |name: &str| Some((name.into(), connection.sqlite.wal().attached_change(name)?));
        connection.attached.in_wal_mode.iter().filter_map(move |name| counted(name))
    });
    Changes { main: change(writer), attached: attached.collect() }
}

/// Returns true if something was committed to an attached file since this was published the last time.
pub(crate) fn attached_has_moved(writer: &WriterConnection) -> bool {
    let attached = writer.connection.as_ref().is_some_and(|connection| !connection.attached.in_wal_mode.is_empty());
    attached && changes(writer).attached != writer.attached_left
}
