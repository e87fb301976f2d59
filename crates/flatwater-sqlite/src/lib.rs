//! Floor 0 of [Flatwater](https://docs.rs/flatwater): one SQLite connection, and what rusqlite cannot express about it.
//!
//! All `unsafe` code of Flatwater is in this crate. It has no threads, no policy and no SQL for users' needs: it
//! prepares, binds and steps statements, consults the policy that the engine gives it, and waits as the engine says.
//! Its API follows the engine's needs and is not stable.
//!
//! - `connection`: open, hooks, state, and restoring the connection after a closure of the user
//! - `slots`: the table of a connection's statements
//! - `statement`: prepare, and run in one go
//! - `text`: where the first statement of a text begins
//! - `columns`: the columns of a statement's result
//! - `running`: bind, and the loop that passes rows to a [`Sink`]
//! - `cursor`: a statement that runs in parts
//! - `explain`: the program of a text, as EXPLAIN lists it
//! - `control`: BEGIN, SAVEPOINT, COMMIT as prepared statements
//! - `hooks`: the callbacks from C and the state behind them
//! - `commits`: what is known of the commits of a connection
//! - `inserts`: whether a table got a new row
//! - `changes`: the rows that a connection changed
//! - `preupdate`: being told of rows before they change, where SQLite is built for that
//! - `lend`: giving the whole rusqlite connection to a closure, and taking it back
//! - `armed`: ending running statements
//! - `patience`: waiting for a snapshot that does not begin at once
//! - `opening`: opening a connection in SQLite, and the system's reason for a failure
//! - `failures`: the system's reasons for failures, and failed reads
//! - `methods`: Flatwater's file methods, called before SQLite's for the files of a connection
//! - `read_guard`: refusing pages and snapshots to a thread
//! - `snapshot`: how beginning a snapshot may change the locks of the wal-index
//! - `bounds`: the bounds of an inline run
//! - `mapping`: what is remembered of the files of a connection
//! - `wal`: the wal-index header
//! - `checkpoint`: checkpoints, and syncing the files while no lock is held
//! - `files`: SQLite's own handles to its files
//! - `locks`: locks that belong to a descriptor; the only module that opens a database file outside of SQLite
//! - `turn_file`: the file through which processes take turns: its counters, its locks, and waiting for a change
//! - `ofd`: locks of a descriptor
//! - `filesystem`: the file system of a path
//! - `origin`: which process made a value
//! - `process`: whether this process was forked, and state that each process has for itself
//! - `fault` (feature): failures on demand, for tests
//! - `held_step` (feature `fault`): holding a statement at one of its steps, for tests

mod armed;
mod bindings;
mod bounds;
mod changes;
mod checkpoint;
mod clock;
mod columns;
mod commits;
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
mod forks;
#[cfg(feature = "fault")]
pub mod held_step;
mod hooks;
mod inserts;
mod lend;
mod locks;
mod mapping;
mod methods;
mod ofd;
mod opening;
mod origin;
mod parameters;
mod patience;
mod preupdate;
mod process;
mod read_guard;
mod running;
mod sink;
mod slots;
mod snapshot;
mod statement;
mod text;
mod turn_file;
mod wal;

pub use armed::Interrupt;
pub use bindings::Bindings;
pub use changes::{ChangedRows, ROWS, RowSet};
pub use checkpoint::{CheckpointInfo, CheckpointMode};
pub use clock::thread_cpu_time;
pub use columns::{ColumnOrigin, ColumnSource};
pub use connection::Connection;
pub use control::Control;
pub use error::{Error, Result, SqliteError, from_rusqlite};
pub use explain::{Op, Program};
pub use failures::SystemFailure;
pub use filesystem::{filesystem_magic, free_bytes, why_not_readable, why_not_writable};
pub use hooks::{AuthEvent, Busy, Policy, Verdict};
pub use locks::{LockFile, LockedFile};
pub use opening::has_nul;
pub use origin::Origin;
pub use preupdate::REPORTS_ALL_ROWS;
pub use process::{InUse, PerProcess, Slot, ThreadChange, is_forked, may_open};
pub use read_guard::{PageRefusal, Refused, Unheld, refused};
pub use rusqlite;
pub use sink::{Discard, FirstRow, Flow, Sink};
pub use slots::StatementId;
pub use statement::Prepared;
pub use text::statement_start;
pub use turn_file::{Counters, TurnFile, Word, precise_pauses};
pub use wal::{WalHeader, WalState};
