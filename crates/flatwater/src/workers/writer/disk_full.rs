//! A full disk: making room with a checkpoint that truncates the WAL, and keeping the database from growing into the
//! space that the WAL needs.
//!
//! Owns: when room is made, and the page limit of the writer's connection. Runs on the thread that holds the slot, and
//! makes room outside of any transaction. Invariants: making room takes bounded time; a limit that the user set is never
//! raised. Leaves out: which writes run once more afterwards (`round`), and what the disk has room for (`file::disk`).
//!
//! | the call that finds no space | SQLite's code | what is left |
//! |---|---|---|
//! | a frame, also one before the COMMIT | FULL; IOERR_WRITE for a quota | frames without a commit |
//! | the header of a WAL that restarts | FULL | nothing |
//! | the next part of the `-shm` | IOERR_SHMSIZE | perhaps a phantom commit: a barrier commit follows |
//! | a page, in a checkpoint | FULL | pages of the WAL in the database; as many frames are copied as before |
//! | a page beyond the page limit | FULL | nothing |

use std::time::{Duration, Instant};

use flatwater_sqlite::{CheckpointMode, WalHeader};
use rusqlite::ffi;

use super::WriterShared;
use super::demanded_checkpoint::checkpoint;
use super::state::{PageLimit, Room};
use super::writer_connection::WriterConnection;
use crate::file::disk::Disk;
use flatwater_base::error::{Error, ErrorKind};

/// After a try that failed, the next one is so far away at least.
const APART: Duration = Duration::from_millis(100);
/// How long a try waits for readers and for a checkpoint of another process.
const WAIT: Duration = Duration::from_millis(100);

impl Room {
    /// Decides what to do after `error`, with a disk in this state now.
    fn step(&self, error: &Error, disk: &Disk, now: Instant) -> Step {
        if error.sqlite_code() == Some(ffi::SQLITE_FULL) && !disk.is_scarce() {
            return Step::HasRoom;
        }
        let is_due = self.failed.is_none_or(|failed| now.saturating_duration_since(failed) >= APART);
        if is_due { Step::Make } else { Step::Leave }
    }

    fn tried(&mut self, is_made: bool, now: Instant) {
        *self = Self { failed: (!is_made).then_some(now), is_made, noted: None };
    }

    /// Records a failure inside a transaction.
    pub(crate) fn note(&mut self, error: &Error) {
        if error.kind() == ErrorKind::Full {
            self.noted = Some(error.clone());
        }
    }
}

/// What to do after a failure for want of space.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Make,
    /// There is space: the checkpointer or another program made it since the failure. Or the database has all the pages
    /// that it may have, which SQLite reports in the same way, and a write that runs once more fails once more.
    HasRoom,
    /// A try failed just before.
    Leave,
}

impl Default for PageLimit {
    fn default() -> Self {
        Self { own: None, asked: u32::MAX }
    }
}

impl WriterConnection {
    fn disk(&self) -> Option<(Disk, WalHeader)> {
        let (connection, header) = self.connection.as_ref().zip(self.wal_header())?;
        Some((Disk::of(&connection.sqlite, &header), header))
    }

    /// Sets the number of pages that the database may have from now on. If it has more already, it cannot grow.
    pub(crate) fn limit_pages(&mut self, pages: u32) {
        let Some(connection) = self.connection.as_ref().filter(|_| pages != self.page_limit.asked) else { return };
        let ask = |pragma: &str| connection.sqlite.rusqlite().query_row(pragma, [], |row| row.get(0));
        // If it cannot be set now, the next round tries again.
        let Ok(own) = self.page_limit.own.map_or_else(|| ask("PRAGMA max_page_count"), Ok) else { return };
        self.page_limit.own = Some(own);
        if ask(&format!("PRAGMA max_page_count = {}", pages.min(own))).is_ok() {
            self.page_limit.asked = pages;
        }
    }
}

impl Room {
    /// Called before a write that may run once more if room is made for it.
    pub(crate) fn begin(&mut self) {
        self.is_made = false;
    }
}

impl WriterShared {
    /// Makes room after `error`, if that is due. Not with `Checkpoint::External`.
    pub(crate) fn make_room(&self, writer: &mut WriterConnection, error: &Error) {
        let Some(listener) = self.listener.get().filter(|_| writer.is_autocommit()) else { return };
        let Some((disk, header)) = writer.disk() else { return };
        listener.looked_at(&disk, &header);
        match writer.room.step(error, &disk, Instant::now()) {
            Step::Leave => return,
            Step::HasRoom => return writer.room.tried(true, Instant::now()),
            Step::Make => {}
        }
        let end = writer.busy_timeout.end();
        let made = loop {
            let was_copying = listener.is_copying();
            writer.busy_timeout.end_at(end.min(Instant::now() + WAIT));
            let made = checkpoint(writer, self, CheckpointMode::Truncate);
            let is_locked = made.as_ref().is_err_and(|error| error.kind() == ErrorKind::Busy);
            writer.busy_timeout.end_at(end);
            if !is_locked || !(was_copying || listener.is_copying()) || writer.busy_timeout.is_over() {
                break made;
            }
        };
        writer.room.tried(made.is_ok(), Instant::now());
    }

    /// Called after a closure, which may have failed because its pages are used up, while the connection still has their
    /// limit: if there is one, finds out whether there is space for more by now.
    pub(crate) fn look_at_disk(&self, writer: &mut WriterConnection) {
        if writer.page_limit.asked != u32::MAX
            && let Some((listener, (disk, header))) = self.listener.get().zip(writer.disk())
        {
            listener.looked_at(&disk, &header);
        }
    }

    /// Makes room after a failure that was noted.
    pub(crate) fn make_noted_room(&self, writer: &mut WriterConnection) {
        if let Some(error) = writer.room.noted.take() {
            self.make_room(writer, &error);
        }
    }

    /// Called after a write found no space, and did nothing. Returns true if there may be space now: room was made, or
    /// the database may have more pages than before, because other programs have removed files.
    pub(crate) fn has_room_again(&self, writer: &mut WriterConnection, error: &Error) -> bool {
        if writer.refusal().is_some() {
            return false;
        }
        if !writer.room.is_made {
            self.make_room(writer, error);
        }
        let before = writer.page_limit.asked;
        if let Some(listener) = self.listener.get() {
            writer.limit_pages(listener.page_limit());
        }
        std::mem::take(&mut writer.room.is_made) || writer.page_limit.asked > before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_made_if_the_disk_is_full_and_not_again_at_once_if_it_cannot_be_made() {
        let of = |code: i32| Error::from(flatwater_sqlite::SqliteError::from_code(code));
        let (full, quota) = (of(ffi::SQLITE_FULL), of(ffi::SQLITE_IOERR_WRITE));
        let scarce = Disk { wal: 500, database: 10_000, free: 0 };
        let ample = Disk { free: 10_000, ..scarce };
        let (mut room, now) = (Room::default(), Instant::now());
        assert_eq!(room.step(&full, &scarce, now), Step::Make);
        assert_eq!(room.step(&full, &ample, now), Step::HasRoom);
        assert_eq!(room.step(&quota, &ample, now), Step::Make, "the system reported it");
        room.tried(true, now);
        assert_eq!(room.step(&full, &scarce, now), Step::Make);
        room.tried(false, now);
        assert_eq!(room.step(&full, &scarce, now + APART / 2), Step::Leave);
        assert_eq!(room.step(&full, &scarce, now + APART), Step::Make);
    }
}
