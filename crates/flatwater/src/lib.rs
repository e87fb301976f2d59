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
//! - [`Error`], [`ErrorKind`], [`ErrorCode`]: one error type, with a hint on what to do
//! - [`Call`]: the future that every operation returns; [`wait`](Call::wait) for plain threads
//!
//! The modules [`options`], [`values`], [`live`], [`stats`], [`events`], [`calls`] and [`process`] have the other
//! names.

#![forbid(unsafe_code)]

mod api;
#[doc(hidden)]
pub mod bindings;
mod connection;
mod engine;
pub mod events;
mod file;
mod lease;
mod migrations;
pub mod options;
mod queue;
pub mod stats;
mod turnstile;
mod workers;

pub use api::call::Call;
pub use api::connection::{Connection, ConnectionOptions};
pub use api::database::Database;
pub use api::live::Live;
pub use api::prepared::Prepared;
pub use api::session::Session;
pub use api::sql::Sql;
pub use api::statement::Statement;
#[cfg(feature = "testing")]
pub use api::testing;
pub use api::transaction::{Snapshot, Transaction};
#[doc(inline)]
pub use flatwater_base::error::constraint::{Constraint, ConstraintKind};
pub use flatwater_base::error::{Error, ErrorCode, ErrorKind, Result};
#[doc(inline)]
pub use flatwater_base::values::{FromRow, FromSql, Params, Row, Rows, ToSql};
pub use flatwater_base::{named, params};
#[cfg(feature = "derive")]
pub use flatwater_derive::{FromRow, FromSql, ToSql, migrations};
#[cfg(feature = "macros")]
pub use flatwater_macros::{query, query_as, query_file, query_file_as, query_value};
pub use migrations::Migrations;
pub use options::Options;
pub use rusqlite::types::{Value, ValueRef};

/// The input and output of statements: values, parameters, rows.
pub mod values {
    #[cfg(feature = "serde_json")]
    #[doc(inline)]
    pub use flatwater_base::values::Json;
    #[cfg(feature = "serde")]
    #[doc(inline)]
    pub use flatwater_base::values::Serde;
    #[doc(inline)]
    pub use flatwater_base::values::{Column, ColumnIndex, ExecuteResult, IntoParams, RowIter, RunResult, Rusqlite};
}

/// Types that the operations return and take beyond values: batches, streams, rows of parameters, outcomes of calls.
pub mod calls {
    pub use crate::api::backup_call::{BackupCall, BackupProgress};
    pub use crate::api::blob::{Blob, BlobTable};
    #[cfg(feature = "macros")]
    pub use crate::api::checked::{Checked, CheckedExecute, CheckedLive};
    pub use crate::api::closures::Functions;
    pub use crate::api::execute_many::ExecuteMany;
    pub use crate::api::integrity_check::IntegrityCheck;
    pub use crate::api::json_call::JsonCall;
    pub use crate::api::stream::{Batches, RowStream};
    pub use crate::api::transaction_call::TransactionCall;
    pub use crate::engine::opening::CancelOutcome;
    pub use crate::migrations::ForeignKeyCheck;
    #[doc(inline)]
    pub use flatwater_base::error::TimeoutEffect;
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

/// Called by the code of the macros. Not for programs: it may change in any version.
#[doc(hidden)]
pub mod __private {
    #[cfg(feature = "macros")]
    pub use crate::api::checked::CheckedRow;
    #[cfg(feature = "macros")]
    pub use crate::api::checked_values::{Blobs, Bound, Numbers, OfAnyClass, OfKnownClass, Texts};
    pub use flatwater_base::values::from_row::{Cell, Cells, Columns, in_two_steps, unknown};
}

#[cfg(all(test, debug_assertions))]
mod growth_tests;
