//! How the space of a small disk is divided between the database and its WAL.
//!
//! Owns: the state of the disk, and three decisions from it: how long the WAL may get, when its file must become
//! shorter, and how many pages the database may have. Pure but for reading the state. Runs on the checkpointer's
//! thread, and after a failure for want of space on the thread that holds the slot. Invariant: with room for the
//! database and its WAL, there is room for the checkpoint of a WAL within its limit, and for a WAL in which rows can be
//! deleted. Leaves out: quotas, and what other programs write meanwhile.

use flatwater_sqlite::{Sqlite, WalHeader, free_bytes};

/// One part in so many of what a disk has room for stays free, for the `-shm` and for the file system itself.
const SPARE: u64 = 8;
/// No disk makes the limit of the WAL smaller than this.
pub(crate) const LIMIT_AT_LEAST: u32 = 16;
/// The reserve, which the database does not grow into: this part of the soft limit, but at most that part of the disk.
const RESERVE_OF_LIMIT: u64 = 8;
const RESERVE_OF_DISK: u64 = 16;
/// The disk limits the database only when the WAL has less space than so many reserves.
const NEAR: u64 = 8;
/// A disk with less free space is taken for full, since a file system may need some space for itself.
const SCARCE: u32 = 256;

/// The files of a database and the free space beside them, in frames; the database in pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Disk {
    /// The length of the WAL's file. A restart does not shorten the file.
    pub(crate) wal: u32,
    pub(crate) database: u32,
    /// The highest number if that is unknown.
    pub(crate) free: u32,
}

impl Disk {
    pub(crate) fn of(sqlite: &Sqlite, header: &WalHeader) -> Self {
        let known = |frames: u64| u32::try_from(frames).unwrap_or(u32::MAX).min(u32::MAX - 1);
        let in_frames = |bytes: u64| known(bytes / frame_bytes(header.page_bytes));
        let free = sqlite.rusqlite().path().and_then(|path| free_bytes(path.as_ref()));
        Self {
            wal: sqlite.files().wal_bytes().map_or(0, in_frames),
            database: sqlite
                .files()
                .database_bytes()
                .map_or(0, |bytes| known(bytes / u64::from(header.page_bytes.max(1)))),
            free: free.map_or(u32::MAX, in_frames),
        }
    }

    /// The longest WAL that this disk has space for, if it is not longer than `limit`. A checkpoint may make the database longer by as many frames as the WAL has, so that
    /// many must be free. Frames within the length of the file take no free space; frames beyond it do.
    pub(crate) fn limit(&self, limit: u32) -> u32 {
        let fits = u64::from(self.free.min(self.free.midpoint(self.wal)));
        limit.min(u32::try_from(fits - fits / SPARE).unwrap_or(u32::MAX)).max(LIMIT_AT_LEAST)
    }

    /// Returns true if the file of the WAL takes space that its checkpoint may need.
    pub(crate) fn is_wal_too_long(&self) -> bool {
        self.wal > self.free
    }

    /// Returns true if hardly anything is free, or nobody knows.
    pub(crate) fn is_scarce(&self) -> bool {
        self.free < SCARCE || self.free == u32::MAX
    }

    /// How many pages the database may have, so that the reserve stays for the WAL. The highest number while there is
    /// more than enough space.
    pub(crate) fn pages(&self, soft: u32) -> u32 {
        let for_wal = u64::from(self.wal) + u64::from(self.free);
        let all = for_wal + u64::from(self.database);
        let reserve = (u64::from(soft) / RESERVE_OF_LIMIT).min(all / RESERVE_OF_DISK);
        let is_near = self.free != u32::MAX && for_wal < reserve * NEAR;
        if is_near { u32::try_from(all - reserve).unwrap_or(u32::MAX) } else { u32::MAX }
    }
}

/// The length of a frame: its page, and a header.
pub(crate) fn frame_bytes(page_bytes: u32) -> u64 {
    u64::from(page_bytes) + 24
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOFT: u32 = 8192;

    /// A disk of 4,096 frames.
    fn small(wal: u32, database: u32) -> Disk {
        Disk { wal, database, free: 4096 - wal - database }
    }

    #[test]
    fn a_large_disk_changes_nothing() {
        for free in [100_000, u32::MAX - 1, u32::MAX] {
            let disk = Disk { wal: 8192, database: 1_000_000, free };
            assert_eq!((disk.limit(SOFT), disk.is_wal_too_long(), disk.pages(SOFT)), (SOFT, false, u32::MAX));
        }
    }

    /// Whatever the WAL and the database have taken so far.
    #[test]
    fn a_wal_within_its_limit_leaves_space_for_its_checkpoint() {
        for database in (0..4000).step_by(10) {
            for wal in (0..4096 - database).step_by(10) {
                let disk = small(wal, database);
                let limit = disk.limit(SOFT);
                if limit == LIMIT_AT_LEAST {
                    continue;
                }
                let left = disk.free - limit.saturating_sub(wal);
                assert!(limit < left, "{disk:?}: {limit} frames, {left} left");
            }
        }
    }

    /// The next restart gives the space back, and the limit is half of what there is again.
    #[test]
    fn a_file_that_got_too_long_is_made_shorter() {
        assert_eq!(small(1500, 0).limit(SOFT), 1792);
        let disk = small(1500, 1500);
        assert!(disk.is_wal_too_long());
        assert_eq!(disk.limit(SOFT), 959);
        assert_eq!(small(0, 1500).limit(SOFT), 1136);
        assert!(!small(0, 1500).is_wal_too_long());
        assert_eq!(small(1000, 3096).limit(SOFT), LIMIT_AT_LEAST, "nothing is free: it restarts at once");
    }

    #[test]
    fn a_database_that_fills_a_disk_leaves_a_reserve() {
        assert_eq!(small(0, 1000).pages(SOFT), u32::MAX, "there is enough");
        for (wal, database) in [(0, 2500), (500, 3000), (0, 3840), (256, 3840), (0, 4096)] {
            assert_eq!(small(wal, database).pages(SOFT), 4096 - 256, "{wal} {database}");
        }
        let large = Disk { wal: 2000, database: 10_000_000, free: 1000 };
        assert_eq!(large.pages(SOFT), 10_003_000 - SOFT / 8);
    }
}
