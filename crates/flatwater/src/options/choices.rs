//! The values of those options that are choices, and their defaults, which are API.
//!
//! Leaves out: what goes together with what (`resolve`).

use std::time::Duration;

/// What an acknowledged write survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// The end of the process, kill -9 included. A power failure may take back the last writes, in order, without
    /// damage (`PRAGMA synchronous=NORMAL`).
    #[default]
    Normal,
    /// A power failure too: one fsync per commit (`PRAGMA synchronous=FULL`).
    Full,
}

/// What becomes of the file's journal mode (<https://sqlite.org/pragma.html#pragma_journal_mode>).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Journal {
    /// The file is switched to WAL mode, which lasts.
    #[default]
    Wal,
    /// The file keeps the mode it has. In another mode than WAL there is one connection: reads queue behind writes, and
    /// wait for an open transaction's end. [`Stats::journal`](crate::Stats::journal) tells the mode.
    Keep,
}

/// Who keeps the WAL short (<https://sqlite.org/wal.html#ckpt>). SQLite's autocheckpoint is off either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checkpoint {
    /// Flatwater, on a thread of its own. Commits pause only when the WAL is started over.
    Managed(CheckpointLimits),
    /// Somebody else, such as Litestream: Flatwater never checkpoints by itself, also not when the database is closed, and
    /// the WAL has no limit. Chosen by itself for a file that has Litestream's tables when it is opened.
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
    /// The WAL starts over before it is longer than this, unless a read or another process is in the way, which
    /// [`WalStats::cause`](crate::WalStats::cause) tells, or one transaction is larger. Default 32 MiB; at least 256 KiB.
    pub limit_bytes: u64,
    /// Beyond this writes are slowed: each turn of the writer, which is one write or a group, waits for up to 100 ms for
    /// the WAL to start over, and then runs all the same. Default 256 MiB; more than `limit_bytes`.
    pub hard_limit_bytes: u64,
}

impl Default for CheckpointLimits {
    fn default() -> Self {
        Self { limit_bytes: 32 << 20, hard_limit_bytes: 256 << 20 }
    }
}

/// What to do if another SQLite library in this process opens the file: when that one closes it, the locks of this one
/// are lost, and acknowledged writes with them
/// (<https://sqlite.org/howtocorrupt.html#multiple_copies_of_sqlite_linked_into_the_same_application>).
///
/// It is looked for when the database is opened and every few seconds after that, on Linux and in WAL mode. Independent
/// of this setting, guard descriptors keep the other library from taking the WAL away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SecondCopy {
    /// Opening is refused; if it is found later, writes are.
    #[default]
    Refuse,
    /// It is counted in [`Stats::second_copies`](crate::Stats::second_copies).
    Warn,
    /// It is not looked for.
    Off,
}

/// The limits of a group: writes that arrive together and share one transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupLimits {
    /// Members at most. Default 256.
    pub members: usize,
    /// No further member is begun once the group has run for this long. Default 1 ms.
    pub time: Duration,
    /// Bytes of text and blob parameters at most. Default 1 MiB.
    pub bytes: usize,
}

impl Default for GroupLimits {
    fn default() -> Self {
        Self { members: 256, time: Duration::from_millis(1), bytes: 1 << 20 }
    }
}
