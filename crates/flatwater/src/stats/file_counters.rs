//! What is counted of the file, for `stats().wal` and `stats().turns`: the length of the WAL, what checkpoints cost, and what blocked
//! one; the turns that this process took among those that write to the file.
//!
//! Owns: the recorders, written by the checkpointer, by who holds the writer slot and by the thread that waits for commits, and the
//! snapshots. Counters are single atomics; one lock guards what else there is of the WAL, held for one record or one summary. The
//! recorders also emit the events for what they count, without a lock. Leaves out: deciding when to checkpoint, and when turns
//! are taken (`turnstile`).

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use flatwater_sqlite::CheckpointMode;

use super::counters::{Counter, Times, counters};
use crate::events::{self, InTheWay};
use flatwater_base::error::Error;
use flatwater_base::thread::lock;

/// What prevents a restart of the WAL: the WAL can restart only when no connection reads from it
/// (<https://sqlite.org/wal.html#avoiding_excessively_large_wal_files>).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum WalBlocker {
    /// A read of this database: of the running reads, the one that began first.
    Read {
        /// For how long it had been running.
        age: Duration,
        /// The SQL it runs, cut to 200 bytes and without its parameters; "a closure" for `read_with`.
        sql: String,
    },
    /// A reader, a writer or a checkpoint in another process, or on a connection of this process that is not
    /// Flatwater's.
    Foreign,
}

impl WalBlocker {
    fn in_the_way(&self) -> InTheWay<'_> {
        if let Self::Read { age, sql } = self { Some((*age, sql)) } else { None }
    }
}

counters! {
    pub(crate) struct WalRecorder {
        path: PathBuf,
        /// In the WAL, and of these in the database.
        in_wal: AtomicU32,
        copied: AtomicU32,
        guarded: Mutex<Guarded>,
    }

    /// The WAL and its checkpoints, as the checkpointer last saw them. All zero for a database without a checkpointer: in
    /// memory, in another journal mode, opened for reading only, or with
    /// [`Checkpoint::External`](crate::options::Checkpoint::External).
    #[derive(Debug, Clone, Default, PartialEq, Eq)]
    #[non_exhaustive]
    pub struct WalStats {
        /// Frames in the WAL.
        pub frames: u32,
        /// Frames that are not yet copied into the database.
        pub backlog: u32,
        /// Length of the `-wal` file. A restart of the WAL does not shorten it.
        pub file_bytes: u64 = Counter,
        /// Frames that background checkpoints copied since the database was opened.
        pub copied_frames: u64 = Counter,
        /// Background checkpoints (PASSIVE), including those that prepare a restart.
        pub copies: u64,
        /// The median duration of a background checkpoint in microseconds.
        pub copy_p50_us: u64,
        /// The longest duration of a background checkpoint in microseconds.
        pub copy_max_us: u64,
        /// How often the WAL was restarted.
        pub resets: u64 = Counter,
        /// How long writes paused for a restart, successful or not, in microseconds: the median.
        pub pause_p50_us: u64,
        /// The 99th percentile of that pause, in microseconds.
        pub pause_p99_us: u64,
        /// The longest such pause, in microseconds.
        pub pause_max_us: u64,
        /// Blocked attempts to restart the WAL, counted from the third one in a row. The WAL grows meanwhile.
        pub starved: u64,
        /// What blocked the restart the last time `starved` was counted.
        pub cause: Option<WalBlocker>,
        /// Reads that were ended because of [`Tuning::read_limit`](crate::options::Tuning::read_limit).
        pub cut_off: u64 = Counter,
        /// Writes, or groups of writes, that waited because the WAL was beyond its hard limit.
        pub waits_for_room: u64,
        /// Writes, or groups of writes, that were delayed because the WAL grew faster than the disk could take it.
        pub slowed: u64 = Counter,
        /// Checkpoints that failed for another reason than a lock.
        pub failures: u64 = Counter,
        /// For how long the oldest running read has been running.
        pub oldest_read: Option<Duration>,
    }
}

#[derive(Default)]
struct Guarded {
    checkpoints: Times,
    pauses: Times,
    room: Times,
    starved: u64,
    cause: Option<WalBlocker>,
    /// Events sent since the last restart of the WAL: starvation, and waiting writers.
    sent_starved: bool,
    sent_room: bool,
}

impl WalRecorder {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, ..Self::default() }
    }

    /// Records the current length of the WAL.
    pub(crate) fn sees(&self, frames: u32, copied: u32, bytes: u64) {
        self.in_wal.store(frames, Ordering::Relaxed);
        self.copied.store(copied, Ordering::Relaxed);
        self.file_bytes.set(bytes);
    }

    /// Records a PASSIVE checkpoint that copied `frames` and did not reach `left`.
    pub(crate) fn checkpointed(&self, frames: u32, left: u32, took: Duration) {
        self.copied_frames.add(u64::from(frames));
        lock(&self.guarded).checkpoints.record(took);
        events::checkpointed(&self.path, frames, left, took);
    }

    /// Records the time between two writes that a checkpoint took, whether it restarted the WAL or not.
    pub(crate) fn paused(&self, took: Duration) {
        lock(&self.guarded).pauses.record(took);
    }

    /// Records how long a restart of the WAL took, from its first sync to its end.
    pub(crate) fn was_restarted(&self, took: Duration) {
        self.resets.count();
        let mut guarded = lock(&self.guarded);
        (guarded.sent_starved, guarded.sent_room) = (false, false);
        drop(guarded);
        events::was_restarted(&self.path, took);
    }

    pub(crate) fn truncated(&self) {
        events::truncated(&self.path);
    }

    /// Sends the event of a checkpoint outside of the checkpointer, which copied `frames`. It is not counted.
    pub(crate) fn checkpointed_on_demand(&self, mode: CheckpointMode, frames: u32, left: u32, took: Duration) {
        match mode {
            CheckpointMode::Truncate => events::truncated(&self.path),
            CheckpointMode::Restart => events::was_restarted(&self.path, took),
            CheckpointMode::Passive | CheckpointMode::Full => events::checkpointed(&self.path, frames, left, took),
        }
    }

    /// Records a checkpoint that failed for another reason than a lock.
    pub(crate) fn failed(&self, error: &Error) {
        self.failures.count();
        events::checkpoint_failed(&self.path, error);
    }

    /// Records a checkpoint that a lock blocked; `is_starved` after several in a row. `has_grown`: the WAL is longer than its
    /// soft limit for that reason.
    pub(crate) fn blocked(&self, cause: WalBlocker, is_starved: bool, has_grown: bool) {
        events::blocked(&self.path, cause.in_the_way());
        if !is_starved {
            return;
        }
        let mut guarded = lock(&self.guarded);
        guarded.starved += 1;
        guarded.cause = Some(cause.clone());
        let is_news = has_grown && !std::mem::replace(&mut guarded.sent_starved, true);
        drop(guarded);
        if is_news {
            events::starved(&self.path, cause.in_the_way());
        }
    }

    pub(crate) fn cut_off(&self, age: Duration, sql: &str) {
        self.cut_off.count();
        events::cut_off(&self.path, age, sql);
    }

    /// Records a round of the writer that waited because the WAL is beyond its hard limit.
    pub(crate) fn writers_waited(&self, took: Duration) {
        let mut guarded = lock(&self.guarded);
        guarded.room.record(took);
        let was_sent = std::mem::replace(&mut guarded.sent_room, true);
        drop(guarded);
        if !was_sent {
            events::waited_for_room(&self.path, took);
        }
    }

    /// Records that another program checkpoints this database.
    pub(crate) fn is_external(&self) {
        events::external(&self.path);
    }

    pub(crate) fn snapshot(&self) -> WalStats {
        let guarded = lock(&self.guarded);
        let (frames, copied) = (self.in_wal.load(Ordering::Relaxed), self.copied.load(Ordering::Relaxed));
        WalStats {
            frames,
            backlog: frames.saturating_sub(copied),
            copies: guarded.checkpoints.len(),
            copy_p50_us: guarded.checkpoints.quantile(0.5),
            copy_max_us: guarded.checkpoints.max(),
            pause_p50_us: guarded.pauses.quantile(0.5),
            pause_p99_us: guarded.pauses.quantile(0.99),
            pause_max_us: guarded.pauses.max(),
            starved: guarded.starved,
            cause: guarded.cause.clone(),
            waits_for_room: guarded.room.len(),
            ..self.counted()
        }
    }
}

counters! {
    pub(crate) struct TurnRecorder { path: PathBuf }

    /// Turns among the processes that write to the file, see [`Tuning::fairness`](crate::options::Tuning::fairness). All zero while no
    /// other process writes.
    #[derive(Debug, Clone, Default, PartialEq, Eq)]
    #[non_exhaustive]
    pub struct TurnStats {
        /// Turns that this process took. In a turn it may commit many writes.
        pub taken: u64 = Counter,
        /// How long it waited for them, in microseconds.
        pub waited_us: u64 = Counter,
        /// Turns that it took out of order, because no turn had ended for 20 ms: the process that was next had stopped.
        pub stalled: u64 = Counter,
        /// How often the file `<db>-turn` could not be used, so that writes only polled for the lock.
        pub failures: u64 = Counter,
        /// Commits that this process announced to other processes with live queries.
        pub commits_announced: u64 = Counter,
        /// How often the announcement of another process's commit woke the live queries of this one.
        pub commits_heard: u64 = Counter,
    }
}

impl TurnRecorder {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, ..Self::default() }
    }

    /// Records a part of the time that writes waited.
    pub(crate) fn waited(&self, time: Duration) {
        self.waited_us.add(u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
    }

    /// Records a turn that was taken before it was due.
    pub(crate) fn jumped(&self) {
        self.taken.count();
        self.stalled.count();
    }

    /// Records that the file cannot be used at the moment.
    pub(crate) fn failed(&self, error: &std::io::Error) {
        if self.failures.get() == 0 {
            events::no_turns(&self.path, error);
        }
        self.failures.count();
    }
}
