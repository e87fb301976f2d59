//! The lowest floor of [Flatwater](https://docs.rs/flatwater): one SQLite connection, and what rusqlite cannot express about it.
//!
//! All `unsafe` code of Flatwater is in this crate. It has no threads, no policy and no SQL for users' needs: it
//! prepares, binds and steps statements, consults the policy that the engine gives it, and waits as the engine says.
//! Its API follows the engine's needs and is not stable.
//!
//! - `connection`: a connection, made of the parts below: opening it, running its statements, lending it
//! - `handle`: SQLite's own connection, and what it says of its state
//! - `statements`: the prepared statements of a connection: their table, binding values, passing rows to a [`Sink`]
//! - `hooks`: the callbacks from SQLite, and the state behind each
//! - `wal`: the wal-index header, and SQLite's handles to the files
//! - `guard`: refusing snapshots to a thread, and timing its reads, in front of SQLite's file methods
//! - `heap`: how much memory SQLite takes for what a thread runs
//! - `process`: forks, and state that each process has for itself
//! - `secret`: a key in memory
//! - `locks`, `turn_file`: files and locks outside of SQLite
//! - `fault`, `held_step` (feature `fault`): failures and pauses on demand, for tests

mod connection;
mod cpu_time;
mod error;
#[cfg(all(feature = "fault", target_os = "linux"))]
pub mod fault;
mod filesystem;
mod guard;
mod handle;
mod heap;
#[cfg(feature = "fault")]
pub mod held_step;
mod hooks;
mod locks;
mod process;
mod secret;
mod statements;
mod turn_file;
mod wal;

pub use connection::Sqlite;
pub use connection::checkpoint::{CheckpointInfo, CheckpointMode};
pub use connection::cipher::{CAN_ENCRYPT, Cipher, PLAIN_HEADER, set_key};
pub use connection::explain::{Op, Program};
pub use connection::newest_schema::drop_older_schemas;
pub use connection::open::has_nul;
pub use connection::plans::{Matters, PlanParameter, Plans};
pub use connection::prepare::Prepared;
pub use connection::stable::prepare_stable;
pub use connection::statement::Statement;
pub use connection::transaction_control::Control;
pub use cpu_time::thread_cpu_time;
pub use error::cause::{Cause, Shared};
pub use error::system_failure::SystemFailure;
pub use error::{Error, Limit, Result, SqliteError, from_rusqlite};
pub use filesystem::{filesystem_magic, free_bytes, why_not_readable, why_not_writable};
pub use guard::Unheld;
pub use guard::refusals::{Refused, refused};
pub use handle::{CacheUse, Handle};
pub use hooks::authorizer::{AuthEvent, Authorizer, Policy, Verdict};
pub use hooks::caller_hooks::{Authorize, Callbacks, Changed, Profile, Progress, Trace};
pub use hooks::changes::{ChangedRows, Changes, ROWS, RowSet};
pub use hooks::commits::Commits;
pub use hooks::failure::Failure;
pub use hooks::inserts::Inserts;
pub use hooks::interrupts::{Ends, Interrupt, Interrupts};
pub use hooks::preupdate::REPORTS_ALL_ROWS;
pub use hooks::{Busy, Hooks};
pub use locks::{LockFile, LockedFile};
pub use process::at_exit::at_exit;
pub use process::origin::Origin;
pub use process::{InUse, PerProcess, Slot, ThreadChange, is_forked, may_open, notice_forks};
pub use rusqlite;
pub use secret::Secret;
pub use statements::bindings::Bindings;
pub use statements::columns::{ColumnOrigin, ColumnSource};
pub use statements::sink::{Discard, FirstRow, Flow, Sink};
pub use statements::statement_start::statement_start;
pub use statements::{StatementId, Statements};
pub use turn_file::{Counters, TurnFile, Word, precise_pauses};
pub use wal::files::Files;
pub use wal::{Wal, WalHeader, WalState};
