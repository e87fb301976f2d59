//! What the live queries are told: what the commits of one slot changed.
//!
//! Owns: when changes are recorded, and what is published of them. Runs on the thread that holds the slot. Invariant: a
//! commit that was not recorded from its first statement is published as a change of everything. Leaves out: what live
//! queries make of it (`workers::live`).
//!
//! ```text
//! holder of the slot                       a first live query
//! acquire: nothing is watched
//! INSERT, not recorded
//!                                          is watched from here on
//!                                          runs: its snapshot is from before the COMMIT
//! COMMIT
//! leave: watched, and not recorded
//! publishes a change of everything         runs again
//! ```

use std::time::Instant;

use super::commits_seen::{Committed, attached_has_moved, changes, has_left};
use super::slot::Slot;
use super::writer_connection::WriterConnection;
use super::{Writer, WriterShared};
use crate::connection::EngineConnection;
use flatwater_sql::dependencies::change::Change;

impl Writer {
    /// Publishes the commits of other connections, unless another thread holds the slot, which then does that.
    pub(crate) fn look_for_others(&self) {
        let Some(mut slot) = Slot::acquire_idle(self) else { return };
        let is_open = slot.run(|writer, _| {
            if writer.context.watch.as_ref().is_some_and(|watch| watch.parked.is_set()) {
                // Its files are looked at instead.
                return true;
            }
            let is_new = |(state, _): &(_, _)| !has_left(writer, state) || attached_has_moved(writer);
            if let Some(now) = writer.wal_now().filter(is_new) {
                self.0.leave(writer, Some(&now), Instant::now());
            }
            writer.is_open()
        });
        drop(slot);
        if !is_open {
            // The connection was given up.
            self.look_again();
        }
    }
}

impl WriterShared {
    /// Records what changes from here on, if it is watched.
    #[inline]
    pub(crate) fn record(&self, writer: &mut WriterConnection) {
        let is_watching = self.live.get().is_some_and(|live| live.is_watching());
        if let Some(connection) = &mut writer.connection
            && connection.recording.is_on() != is_watching
        {
            connection.recording.set(&connection.sqlite, is_watching);
        }
    }

    /// Publishes what the slot changed.
    pub(crate) fn publish(&self, writer: &mut WriterConnection, committed: Committed) {
        let Some(live) = self.live.get().filter(|live| live.is_watching()) else { return };
        let is_noted = writer.connection.as_ref().is_some_and(|connection| connection.recording.wrote_nothing());
        // The header does not show commits to attached files only, and what is noted does not show those of others.
        let has_moved = attached_has_moved(writer);
        if has_moved {
            writer.attached_left = changes(writer).attached;
        }
        let change =
            writer.connection.as_mut().and_then(|EngineConnection { sqlite, recording, .. }| recording.take(sqlite));
        match committed {
            Committed::Nothing if !has_moved && (is_noted || self.context.options.attach.is_empty()) => {}
            Committed::Nothing | Committed::Ours => live.publish(&change.unwrap_or(Change::Everything)),
            Committed::Others => live.publish(&Change::Everything),
        }
    }

    /// The same if the header of the WAL cannot be read: there is no WAL, or no connection any more. Otherwise another
    /// process commits in this moment, and the next slot publishes. Waits for no lock.
    pub(crate) fn publish_unseen(&self, writer: &mut WriterConnection) {
        if !self.live.get().is_some_and(|live| live.is_watching()) {
            return;
        }
        writer.busy_timeout.never();
        let has_counter = self.journal != "wal" && !writer.is_in_memory();
        let sees_others = has_counter
            && writer
                .connection
                .as_mut()
                .is_some_and(|connection| connection.recording.sees_others(&connection.sqlite));
        let committed = match &writer.connection {
            None => Committed::Others,
            Some(_) if self.journal == "wal" => return,
            Some(_) if sees_others => Committed::Others,
            Some(connection) if connection.recording.wrote_nothing() => Committed::Nothing,
            Some(_) => Committed::Ours,
        };
        self.publish(writer, committed);
    }

    /// Runs the live queries that were invalidated. Called when the slot is released.
    #[inline]
    pub(crate) fn start_live(&self) {
        if let Some(live) = self.live.get().filter(|live| live.is_watching()) {
            live.start();
        }
    }
}
