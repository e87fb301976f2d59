//! Floor 0 of [Flatwater](https://docs.rs/flatwater): one SQLite connection and what rusqlite cannot express of it.
//!
//! All `unsafe` of Flatwater lives in this crate. It has no threads, no policy and no SQL of users' needs: it prepares,
//! binds, steps, asks the engine's policy and waits as it is told. Its API follows the engine's needs and is not stable.
//!
//! - `connection`: open, hooks, state, restoring after a closure of the user
//! - `slots`: the table of its statements
//! - `statement`: prepare, and run in one go
//! - `running`: bind, the loop into a [`Sink`]
//! - `cursor`: a statement that is run in parts
//! - `explain`: the program of a text, as EXPLAIN lists it
//! - `control`: BEGIN, SAVEPOINT, COMMIT as prepared statements
//! - `hooks`: the callbacks from C and the state behind them
//! - `inserts`: whether a row came into a table
//! - `armed`: what ends the statements that run
//! - `patience`: waiting for a snapshot that does not begin at once
//! - `opening`: asking SQLite for a connection, and the system's reason if there is none
//! - `failures`: the system's reasons, and reads that fail
//! - `methods`: our methods before SQLite's for the files of a connection
//! - `read_guard`: pages and snapshots that a thread is refused
//! - `snapshot`: what beginning a snapshot may do to the locks of the wal-index
//! - `stay`: what bounds a run on a thread that must not be held up
//! - `wal`: the wal-index header
//! - `checkpoint`: checkpoints, and syncing the files outside of any lock
//! - `files`: SQLite's own handles of its files
//! - `locks`: locks that belong to a descriptor: the one place that opens a database file outside of SQLite
//! - `filesystem`: what a path lies on
//! - `process`: whether this process was forked, and state that each process has for itself
//! - `fault` (feature): failures on demand, for tests

mod armed;
mod checkpoint;
mod connection;
mod control;
mod cursor;
mod error;
mod explain;
mod failures;
#[cfg(all(feature = "fault", target_os = "linux"))]
pub mod fault;
mod files;
mod filesystem;
mod hooks;
mod inserts;
mod locks;
mod methods;
mod opening;
mod patience;
mod process;
mod read_guard;
mod running;
mod sink;
mod slots;
mod snapshot;
mod statement;
mod stay;
mod wal;

pub use armed::Interrupt;
pub use checkpoint::{CheckpointMode, Checkpointed};
pub use connection::{Connection, from_rusqlite, has_nul};
pub use control::Control;
pub use error::{Error, Result, SqliteError};
pub use explain::{Op, Program};
pub use failures::SystemFailure;
pub use filesystem::{filesystem_magic, why_not_writable};
pub use hooks::{AuthEvent, Busy, Policy, Verdict};
pub use locks::{LockFile, LockedFile};
pub use process::{InUse, PerProcess, Slot, is_stranded};
pub use read_guard::{PageRefusal, Refused, Unheld, refused};
pub use rusqlite;
pub use sink::{Discard, Flow, Sink};
pub use slots::StatementId;
pub use statement::{Bindings, Prepared};
pub use wal::{WalHeader, WalState};
