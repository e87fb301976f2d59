//! The values of the options that are choices, and their defaults.
//!
//! Owns: plain values for any thread. Invariant: the defaults are part of the API. Leaves out: which values contradict
//! each other (`resolve`).

use std::time::Duration;

/// What an acknowledged write survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// The end of the process, including kill -9. A power failure may lose the last writes, in order, without damage to
    /// the file (`PRAGMA synchronous=NORMAL`).
    #[default]
    Normal,
    /// Also a power failure, at the cost of one fsync per commit (`PRAGMA synchronous=FULL`).
    Full,
}

/// What to do with the file's journal mode (<https://sqlite.org/pragma.html#pragma_journal_mode>).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Journal {
    /// Switch the file to WAL mode, which is persistent.
    #[default]
    Wal,
    /// Keep the mode the file has. In a mode other than WAL there is one connection: reads queue behind writes, and
    /// wait for an open transaction to end. [`Stats::journal`](crate::Stats::journal) tells the mode.
    Keep,
}

/// Who checkpoints the WAL to keep it short (<https://sqlite.org/wal.html#ckpt>). SQLite's autocheckpoint is off either
/// way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checkpoint {
    /// Flatwater, on a dedicated thread. Commits pause only when the WAL is started over.
    Managed(CheckpointLimits),
    /// Another program, such as Litestream: Flatwater never checkpoints on its own, not even when the database is
    /// closed, and the WAL has no limit. Chosen automatically for a file that has Litestream's tables when it is
    /// opened.
    External,
}

impl Default for Checkpoint {
    fn default() -> Self {
        Self::Managed(CheckpointLimits::default())
    }
}

/// The limits of a WAL that Flatwater keeps short.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckpointLimits {
    /// The WAL starts over before it is longer than this, unless one transaction is larger, or a read or another
    /// process is in the way, which [`WalStats::cause`](crate::WalStats::cause) tells. Default 32 MiB; at least 256
    /// KiB.
    pub limit_bytes: u64,
    /// Beyond this length writes are slowed: each turn of the writer, which is one write or a group, waits up to 100 ms
    /// for the WAL to start over, and then runs all the same. Default 256 MiB; must be more than `limit_bytes`.
    pub hard_limit_bytes: u64,
}

impl Default for CheckpointLimits {
    fn default() -> Self {
        Self { limit_bytes: 32 << 20, hard_limit_bytes: 256 << 20 }
    }
}

/// What to do if another SQLite library in this process opens the file. When that library closes the file, this
/// library's locks are lost, and acknowledged writes with them
/// (<https://sqlite.org/howtocorrupt.html#multiple_copies_of_sqlite_linked_into_the_same_application>).
///
/// Flatwater checks for another library when the database is opened and every few seconds after that, on Linux and in
/// WAL mode. Independent of this setting, guard descriptors keep the other library from taking the WAL away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SecondCopy {
    /// Refuse to open the database; if another library is found later, refuse writes.
    #[default]
    Refuse,
    /// Count it in [`Stats::second_copies`](crate::Stats::second_copies).
    Warn,
    /// Do not check for another library.
    Off,
}

/// The limits of a group: writes that arrive together and share one transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupLimits {
    /// The maximum number of writes in a group. Default 256.
    pub members: usize,
    /// No further write is added once the group has run for this long. Default 1 ms.
    pub time: Duration,
    /// The maximum total of text and blob parameters, in bytes. Default 1 MiB.
    pub bytes: usize,
}

impl Default for GroupLimits {
    fn default() -> Self {
        Self { members: 256, time: Duration::from_millis(1), bytes: 1 << 20 }
    }
}
