//! SQLite for async Rust: as fast as calling it directly, and it never stalls your event loop.
//!
//! ```
//! # async fn example() -> flatwater::Result<()> {
//! let db = flatwater::Database::open(":memory:").await?;
//! db.execute("CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT NOT NULL)", ()).await?;
//! db.execute("INSERT INTO users (name) VALUES (?)", ("Ada",)).await?;
//! let name: Option<String> = db.query_value("SELECT name FROM users WHERE id = ?", (1,)).await?;
//! assert_eq!(name.as_deref(), Some("Ada"));
//! # Ok(()) }
//! ```
//!
//! One writer and several readers serve any number of callers in one process. Writes that arrive together share one
//! commit, yet each keeps its own result and its own error. The futures do not depend on any async runtime.
//!
//! - [`Database`]: open, execute, query, batch, transactions, closures on rusqlite's connection
//! - [`Prepared`]: a statement whose SQL was looked up once, for hot loops
//! - [`Sql`]: SQL that is put together at run time, with bound values
//! - [`Row`], [`Rows`], [`FromRow`]: results, and reading them as types
//! - [`Transaction`]: interactive transactions and savepoints
//! - [`Executor`]: what a database, a transaction and a [`Snapshot`] have in common
//! - [`Migrations`]: the scripts that bring a database to the schema a program needs
//! - [`Options`]: every setting and its default
//! - [`Error`], [`Kind`]: one error type, with a hint on what to do
//! - [`Call`]: the future that every operation returns; [`wait`](Call::wait) for plain threads

#![forbid(unsafe_code)]

mod backup;
mod busy_handler;
mod call;
mod changes;
mod closures;
mod connection;
mod cursor;
mod database;
mod encode;
mod engine;
mod error;
mod events;
mod executor;
mod file;
#[doc(hidden)]
pub mod front;
#[doc(hidden)]
mod front_begin;
#[doc(hidden)]
mod front_call;
mod inline;
mod lease;
mod live;
mod live_changes;
mod live_group;
mod live_typed;
mod long_reads;
mod many;
mod migrate;
mod migrations;
mod open;
mod operations;
mod options;
mod plan;
mod prepared;
mod program;
mod queue;
mod report;
mod savepoints;
mod shutdown;
mod snapshot;
mod sql;
mod statement_event;
mod stats;
mod steps;
mod stream;
#[cfg(feature = "testing")]
pub mod testing;
mod thread;
mod time;
mod transaction;
mod turnstile;
mod typed;
mod values;
mod workers;

pub use call::Call;
pub use cursor::Cursor;
pub use database::Database;
pub use engine::dispatch::Cancelled;
pub use error::{Applied, Error, Kind, Result};
pub use executor::Executor;
#[cfg(feature = "derive")]
pub use flatwater_derive::{FromRow, FromSql, ToSql};
pub use flatwater_sqlite::{CheckpointMode, Checkpointed};
pub use inline::limits::{Inline, InlineLimits};
pub use live::{Live, LiveRows};
pub use live_changes::{LiveChange, LiveChanges, RowChanges, UpdatedRow};
pub use live_group::{LiveGroup, LiveGroupChanges};
pub use many::ExecuteMany;
pub use migrations::{ForeignKeyCheck, Migrations};
pub use options::json::JsonOptions;
pub use options::{
    AutoVacuum, Checkpoint, CheckpointLimits, Durability, Fairness, GroupLimits, Journal, Options, SecondCopy,
    TempStore,
};
pub use prepared::Prepared;
pub use rusqlite::types::{Value, ValueRef};
pub use shutdown::shutdown;
pub use snapshot::Snapshot;
pub use statement_event::{RanOn, StatementEvent};
pub use stats::inline::InlineStats;
pub use stats::leases::LeaseStats;
pub use stats::live::LiveStats;
pub use stats::turns::TurnStats;
pub use stats::wal::{WalBlocker, WalStats};
pub use stats::{CallStats, Stats};
pub use stream::RowStream;
pub use transaction::Transaction;
pub use values::column::{Column, ColumnIndex};
pub use values::convert::{FromSql, Rusqlite, ToSql};
pub use values::executed::{BatchResult, Executed};
pub use values::into_params::IntoParams;
#[cfg(feature = "serde_json")]
pub use values::json::Json;
pub use values::params::Params;
pub use values::row::{FromRow, Row, Rows};
pub use values::row_iter::RowIter;
#[cfg(feature = "serde")]
pub use values::serde::Serde;
pub use values::sql::Sql;

/// The rusqlite crate in the version Flatwater uses: for closures, and for the types in the signatures of `ToSql` and
/// `FromSql`.
pub use rusqlite;

/// What the code of the derive macros calls. Not for programs: it may change in any version.
#[doc(hidden)]
pub mod __private {
    pub use crate::values::from_row::{Cell, Cells, Columns, in_two_steps, unknown};
}

#[cfg(test)]
mod growth;
