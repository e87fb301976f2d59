//! The values of the options that are choices, and their defaults.
//!
//! Owns: plain values, usable on any thread. Invariant: the defaults are part of the API. Leaves out: checking which
//! values contradict each other (`resolve`).

use std::time::Duration;

/// The failures that an acknowledged write survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Durability {
    /// The end of the process, including kill -9. A power failure may lose the last writes, in order, but does not
    /// damage the file (`PRAGMA synchronous=NORMAL`).
    #[default]
    Normal,
    /// Also a power failure. Each commit costs one fsync (`PRAGMA synchronous=FULL`).
    Full,
}

/// What to do with the file's journal mode (<https://sqlite.org/pragma.html#pragma_journal_mode>).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Journal {
    /// Switches the file to WAL mode, which is persistent.
    #[default]
    Wal,
    /// Keeps the mode the file has. In a mode other than WAL there is only one connection: reads queue behind writes
    /// and wait for an open transaction to end. [`Stats::journal`](crate::stats::Stats::journal) contains the mode.
    Keep,
}

/// Which program checkpoints the WAL to keep it short (<https://sqlite.org/wal.html#ckpt>). SQLite's autocheckpoint is
/// off in both cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Checkpoint {
    /// Flatwater checkpoints the WAL on a dedicated thread. Commits pause only while the WAL restarts. A file that has
    /// Litestream's tables is left to Litestream while that runs; while it does not, a WAL near its limit is truncated, so that
    /// Litestream notices what it has missed. Closing such a file leaves its WAL.
    Managed(CheckpointLimits),
    /// Another program checkpoints the WAL. Flatwater never does so on its own, not even when the database is closed, and
    /// the WAL has no size limit. For Litestream `Managed` is right: Flatwater leaves the WAL to it while it runs.
    External,
}

impl Default for Checkpoint {
    fn default() -> Self {
        Self::Managed(CheckpointLimits::default())
    }
}

/// The size limits of a WAL that Flatwater checkpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[must_use]
pub struct CheckpointLimits {
    /// The WAL restarts at its beginning before it grows beyond this length, unless one transaction is larger, writes are faster
    /// than the disk, or a read or another process prevents the restart. [`WalStats::cause`](crate::stats::WalStats::cause)
    /// contains the reason. Default 32 MiB; at least 256 KiB.
    pub limit_bytes: u64,
    /// From half of the way between the limits on, writes are delayed, the more the longer the WAL. Beyond this length each
    /// write, or each group of writes, waits up to 100 ms for the WAL to restart, and then runs regardless. Default 256 MiB; must be more than `limit_bytes`.
    pub hard_limit_bytes: u64,
}

setters! {
    CheckpointLimits, limits => limits;

    /// Sets [`limit_bytes`](Self::limit_bytes).
    limit_bytes: u64;

    /// Sets [`hard_limit_bytes`](Self::hard_limit_bytes).
    hard_limit_bytes: u64;
}

impl Default for CheckpointLimits {
    fn default() -> Self {
        Self { limit_bytes: 32 << 20, hard_limit_bytes: 256 << 20 }
    }
}

/// Whether processes that write to one file take turns in the order in which they came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Fairness {
    /// Processes that use Flatwater take turns: the first one that finds the write lock taken creates the file
    /// `<db>-turn`. A process still takes SQLite's lock in its turn, so programs without turns are safe beside it.
    /// Where turns are not possible, processes poll for the lock.
    #[default]
    Auto,
    /// This process polls for the lock, and gets it in no particular order.
    Off,
}

/// Where SQLite keeps temporary data: large sorts, GROUP BY and DISTINCT of many rows, and the journal that undoes one
/// statement (<https://sqlite.org/tempfiles.html>).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum TempStore {
    /// Readers use files beyond a few MiB, as SQLite does by default. The writer uses memory, because it keeps
    /// a statement journal for each write of a group.
    #[default]
    Auto,
    /// Files, on all connections, in the system's directory for temporary files. SQLite unlinks them when it creates
    /// them.
    File,
    /// Memory, on all connections. A large sort then takes as much memory as its rows.
    Memory,
}

/// Whether a file gives the space of deleted rows back (<https://sqlite.org/pragma.html#pragma_auto_vacuum>).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum AutoVacuum {
    /// Freed pages are used again, and the file keeps its length until VACUUM.
    #[default]
    None,
    /// Each commit truncates the file by the pages that it freed.
    Full,
    /// `PRAGMA incremental_vacuum` truncates the file.
    Incremental,
}

/// The limits of a group: a set of writes that arrive together and share one transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[must_use]
pub struct GroupLimits {
    /// The maximum number of writes in a group. Default 256.
    pub members: usize,
    /// The running time after which no further write is added to the group. A statement that takes longer than this on
    /// average is never grouped. Default 1 ms.
    pub time: Duration,
    /// The maximum total size of text and blob parameters, in bytes. Default 1 MiB.
    pub bytes: usize,
}

setters! {
    GroupLimits, limits => limits;

    /// Sets [`members`](Self::members).
    members: usize;

    /// Sets [`time`](Self::time).
    time: Duration;

    /// Sets [`bytes`](Self::bytes).
    bytes: usize;
}

impl Default for GroupLimits {
    fn default() -> Self {
        Self { members: 256, time: Duration::from_millis(1), bytes: 1 << 20 }
    }
}
