//! What the driver asks of a load, and what a load answers. Both are JSON: the job is the load's only argument.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// One process of a load.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Job {
    pub db: PathBuf,
    pub setlk: Setlk,
    pub task: Task,
}

/// What is given to `sqlite3_setlk_timeout` on each connection.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Setlk {
    /// Milliseconds; 0 turns waits off, -1 waits without an end.
    pub ms: i32,
    /// Whether `SQLITE_SETLK_BLOCK_ON_CONNECT` is set.
    pub on_connect: bool,
}

/// What a process does.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Task {
    /// Creates the database, and answers SQLite's version and compile options.
    Prepare,
    /// One writer, so many readers and perhaps a checkpointer, each with a thread and a connection.
    Mixed(Mixed),
    /// One connection that writes, with nobody beside it.
    Alone { seconds: f64 },
    /// One connection that takes no lock: `SELECT 1`.
    Noop { seconds: f64 },
    /// Holds a lock until a line arrives.
    Hold(Held),
    /// One call without a busy handler, between two marks on standard error.
    Probe(Call),
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Mixed {
    pub seconds: f64,
    pub readers: u32,
    pub checkpoints: bool,
    /// How long a writer keeps the lock beyond what its statements take.
    pub hold_us: u64,
    /// The pause between two writes.
    pub think_us: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Held {
    Nothing,
    Write,
    Read,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Call {
    /// The first read of a connection, which locks the database file besides.
    First,
    Read,
    Write,
    Checkpoint,
}

/// The mark before the call of a probe, and the one after it.
pub const MARKS: [&str; 2] = ["probe: begin", "probe: end"];

/// The answer to [`Task::Prepare`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Build {
    pub sqlite: String,
    pub options: Vec<String>,
}

/// The answer to [`Task::Probe`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Probed {
    /// `ok`, or SQLite's code.
    pub answer: String,
    pub took_us: f64,
}

/// The answer of a load: times in nanoseconds.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Counted {
    /// How long BEGIN IMMEDIATE took, of each write; in a load alone, how long the write took.
    pub writes: Vec<u64>,
    /// How long each read took, its pause not included.
    pub reads: Vec<u64>,
    pub checkpoints: Vec<u64>,
    /// Checkpoints that reported that they could not do everything.
    pub busy_checkpoints: u64,
    /// How often SQLite asked the busy handler.
    pub busy_calls: u64,
    /// Calls that ended with BUSY or PROTOCOL all the same.
    pub failed: u64,
    pub seconds: f64,
    pub cpu_seconds: f64,
}

impl Counted {
    pub fn add(&mut self, mut other: Self) {
        self.writes.append(&mut other.writes);
        self.reads.append(&mut other.reads);
        self.checkpoints.append(&mut other.checkpoints);
        self.busy_checkpoints += other.busy_checkpoints;
        self.busy_calls += other.busy_calls;
        self.failed += other.failed;
        self.seconds = self.seconds.max(other.seconds);
        self.cpu_seconds += other.cpu_seconds;
    }
}
