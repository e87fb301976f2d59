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
//! - [`Transaction`]: interactive transactions and savepoints
//! - [`Migrations`]: the scripts that bring a database to the schema a program needs
//! - [`Options`]: every setting and its default
//! - [`Error`], [`Kind`]: one error type, with a hint on what to do
//! - [`Call`]: the future that every operation returns; [`wait`](Call::wait) for plain threads

#![forbid(unsafe_code)]

mod call;
mod closures;
mod connection;
mod database;
mod encode;
mod engine;
mod error;
mod events;
mod file;
mod inline;
mod lease;
mod lock;
mod many;
mod migrate;
mod migrations;
mod operations;
mod options;
mod prepared;
mod program;
mod queue;
mod sql;
mod stats;
mod thread;
mod time;
mod transaction;
mod values;
mod workers;

pub use call::Call;
pub use database::Database;
pub use engine::dispatch::Cancelled;
pub use error::{Applied, Error, Kind, Result};
pub use flatwater_sqlite::{CheckpointMode, Checkpointed};
pub use inline::limits::{Inline, InlineLimits};
pub use many::ExecuteMany;
pub use migrations::{ForeignKeyCheck, Migrations};
pub use options::{Checkpoint, CheckpointLimits, Durability, GroupLimits, Journal, Options, SecondCopy, TempStore};
pub use prepared::Prepared;
pub use rusqlite::types::{FromSql, ToSql, Value, ValueRef};
pub use stats::inline::InlineStats;
pub use stats::leases::LeaseStats;
pub use stats::wal::{WalBlocker, WalStats};
pub use stats::{CallStats, Stats};
pub use transaction::Transaction;
pub use values::executed::{BatchResult, Executed};
pub use values::into_params::IntoParams;
pub use values::params::Params;
pub use values::row::{ColumnIndex, FromRow, Row, Rows};

/// The rusqlite crate in the version Flatwater uses: for closures, and for implementing `ToSql` and `FromSql` on your
/// own types.
pub use rusqlite;
