//! SQLite for async Rust: as fast as calling it directly, and it never stalls your event loop.
//!
//! ```
//! # async fn example() -> flatwater::Result<()> {
//! let db = flatwater::Database::open(":memory:").await?;
//! db.execute("CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT NOT NULL)", ()).await?;
//! db.execute("INSERT INTO users (name) VALUES (?)", ("Ada",)).await?;
//! let name: String = db.query_value("SELECT name FROM users WHERE id = ?", (1,)).await?;
//! assert_eq!(name, "Ada");
//! # Ok(()) }
//! ```
//!
//! One writer and several readers serve any number of callers in one process. Writes that arrive together share one
//! commit, yet each keeps its own result and its own error. The futures do not depend on any async runtime.
//!
//! - [`Database`]: open, transactions, closures on rusqlite's connection, backups, live queries
//! - [`Prepared`]: a statement whose SQL was looked up once, for hot loops
//! - [`Sql`]: SQL that is built at run time, with bound values
//! - [`Row`], [`Rows`], [`FromRow`]: results, and reading them as types
//! - [`Transaction`]: interactive transactions and savepoints
//! - [`Session`]: the operations, which a database, a transaction and a [`Snapshot`] share
//! - [`Migrations`]: the scripts that bring a database to the schema a program needs
//! - [`Options`]: every setting and its default
//! - [`Error`], [`ErrorKind`]: one error type, with a hint on what to do
//! - [`Call`]: the future that every operation returns; [`wait`](Call::wait) for plain threads
//!
//! The modules [`options`], [`values`], [`live`], [`stats`], [`events`], [`calls`] and [`process`] have the other
//! names.

#![forbid(unsafe_code)]

mod api;
#[doc(hidden)]
pub mod bindings;
mod busy_handler;
mod bytecode;
mod connection;
mod dependencies;
mod encode;
mod engine;
mod error;
pub mod events;
mod file;
mod growth_counter;
mod inline;
mod lease;
mod migrations;
pub mod options;
mod queue;
mod sql;
pub mod stats;
mod thread;
mod time;
mod turnstile;
pub mod values;
mod workers;

pub use api::call::Call;
pub use api::connection::{Connection, ConnectionOptions};
pub use api::database::Database;
pub use api::live::Live;
pub use api::prepared::Prepared;
pub use api::session::Session;
pub use api::statement::Statement;
#[cfg(feature = "testing")]
pub use api::testing;
pub use api::transaction::{Snapshot, Transaction};
pub use error::{Error, ErrorKind, Result};
#[cfg(feature = "derive")]
pub use flatwater_derive::{FromRow, FromSql, ToSql};
pub use migrations::Migrations;
pub use options::Options;
pub use rusqlite::types::{Value, ValueRef};
pub use values::convert::{FromSql, ToSql};
pub use values::from_row::FromRow;
pub use values::params::Params;
pub use values::row::{Row, Rows};
pub use values::sql::Sql;

/// Types that the operations return and take beyond values: batches, streams, rows of parameters, outcomes of calls.
pub mod calls {
    pub use crate::api::blob::{Blob, BlobTable};
    pub use crate::api::closures::Functions;
    pub use crate::api::execute_many::ExecuteMany;
    pub use crate::api::integrity_check::IntegrityCheck;
    pub use crate::api::stream::{Batches, RowStream};
    pub use crate::engine::opening::CancelOutcome;
    pub use crate::error::TimeoutEffect;
    pub use crate::migrations::ForeignKeyCheck;
    pub use flatwater_sqlite::{CheckpointInfo, CheckpointMode};
}

/// What concerns all databases of the process: how many may have connections, and closing all of them.
pub mod process {
    pub use crate::api::open::{close_all, set_max_open};
}

/// The types that a live query yields.
pub mod live {
    pub use crate::api::live::forms::{LiveQueries, LiveResult};
    pub use crate::api::live::row_changes::{Change, RowChanges, UpdatedRow};
    pub use crate::api::live::{Live, LiveRows};
}

/// The rusqlite crate in the version Flatwater uses: for closures, and for [`Value`] and [`ValueRef`], which are its types.
///
/// It is a part of this crate's API: a version of Flatwater that uses another incompatible version of rusqlite is itself an
/// incompatible version. Use it by this path, so that the program has one rusqlite.
pub use rusqlite;

/// Called by the code of the derive macros. Not for programs: it may change in any version.
#[doc(hidden)]
pub mod __private {
    pub use crate::values::from_row::{Cell, Cells, Columns, in_two_steps, unknown};
}

#[cfg(test)]
mod growth_tests;
