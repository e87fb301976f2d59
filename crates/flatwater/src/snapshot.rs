//! Several reads of one point in time.
//!
//! Owns: the caller's side of a snapshot; its methods run on the caller's thread. Invariant: a snapshot that goes out of
//! scope ends, and gives its reader back. Leaves out: serving it, which the readers do, or the writer in a database with
//! one connection.

use std::sync::Arc;

use crate::values::convert::FromSql;

use crate::call::Call;
use crate::cursor::Cursor;
use crate::engine::dispatch::Caller;
use crate::error::Result;
use crate::operations::Operations;
use crate::queue::ticket::CallOptions;
use crate::stream::RowStream;
use crate::values::into_params::IntoParams;
use crate::values::row::{FromRow, Row, Rows};
use crate::workers::answer::Answer;
use crate::workers::open_read::SnapshotGuard;
use crate::workers::session::{Inside, TransactionGuard};

/// One point in time of the database, which any number of reads see, whatever is committed meanwhile.
///
/// It holds a reader and its read transaction until it is dropped, for
/// [`Options::snapshot_age`](crate::Options::snapshot_age) at most: while it is open the WAL cannot start over. Its
/// reads run one after the other. They only read.
///
/// In a database with one connection ([`Stats::one_connection`](crate::Stats::one_connection)) writes wait until the
/// snapshot ends, as for a transaction, and it ends if it is not used for
/// [`Options::transaction_idle`](crate::Options::transaction_idle).
#[must_use = "a snapshot ends when it is dropped"]
pub struct Snapshot {
    /// Dropped before the handle to the database.
    _guard: Guard,
    pub(crate) operations: Operations,
}

/// What ends the snapshot when it is dropped.
#[allow(dead_code, reason = "the drop of each is what counts")]
enum Guard {
    Reader(SnapshotGuard),
    Transaction(TransactionGuard),
}

impl Snapshot {
    pub(crate) fn new(caller: &Caller, answer: Answer) -> Result<Self> {
        let options = CallOptions { read_only: true, ..caller.options };
        let caller = Caller { options, ..caller.clone() };
        let (caller, guard) = match answer {
            Answer::Snapshot(guard) => (Caller { open_read: Some(guard.at.clone()), ..caller }, Guard::Reader(guard)),
            answer => {
                let guard = answer.transaction()?;
                let inside = Arc::new(Inside { session: guard.0.clone(), savepoints: Vec::new() });
                (Caller { inside: Some(inside), ..caller }, Guard::Transaction(guard))
            }
        };
        Ok(Self { operations: Operations(caller), _guard: guard })
    }

    /// Runs one statement and returns all its rows.
    ///
    /// # Errors
    /// As [`Database::query`](crate::Database::query); `Misuse` for a statement that writes; `SnapshotTooOld` if the
    /// snapshot was ended.
    pub fn query(&self, sql: &str, params: impl IntoParams) -> Call<Rows> {
        self.operations.query(sql, params)
    }

    /// Runs one statement and returns its first row, or `None` if there is no row.
    ///
    /// # Errors
    /// As [`query`](Self::query).
    pub fn query_one(&self, sql: &str, params: impl IntoParams) -> Call<Option<Row<'static>>> {
        self.operations.query_one(sql, params)
    }

    /// Runs one statement and returns the first value of its first row, or `None` if there is no row.
    ///
    /// # Errors
    /// As [`query`](Self::query); `Misuse` if the value cannot be read as a `T`.
    pub fn query_value<T: FromSql>(&self, sql: &str, params: impl IntoParams) -> Call<Option<T>> {
        self.operations.query_value(sql, params)
    }

    /// Runs one statement and returns every row as a `T`, such as a tuple.
    ///
    /// # Errors
    /// As [`query`](Self::query); `Misuse` if a row cannot be read as a `T`.
    pub fn query_as<T>(&self, sql: &str, params: impl IntoParams) -> Call<Vec<T>>
    where
        T: FromRow + Send + 'static,
    {
        self.operations.query_as(sql, params)
    }

    /// Runs one statement and returns its first row as a `T`.
    ///
    /// # Errors
    /// As [`Database::query_one_as`](crate::Database::query_one_as), and [`query`](Self::query).
    pub fn query_one_as<T: FromRow>(&self, sql: &str, params: impl IntoParams) -> Call<T> {
        self.operations.query_one_as(sql, params)
    }

    /// Runs one statement and returns its first row as a `T`, or `None` if there is no row.
    ///
    /// # Errors
    /// As [`query`](Self::query); `Misuse` if the row cannot be read as a `T`.
    pub fn query_optional_as<T: FromRow>(&self, sql: &str, params: impl IntoParams) -> Call<Option<T>> {
        self.operations.query_optional_as(sql, params)
    }

    /// Runs one statement and returns the first value of every row.
    ///
    /// # Errors
    /// As [`query`](Self::query); `Misuse` if a value cannot be read as a `T`.
    pub fn query_values<T>(&self, sql: &str, params: impl IntoParams) -> Call<Vec<T>>
    where
        T: FromSql + Send + 'static,
    {
        self.operations.query_values(sql, params)
    }

    /// Runs one statement and returns all its rows as JSON.
    ///
    /// # Errors
    /// As [`Database::query_json`](crate::Database::query_json), and [`query`](Self::query).
    pub fn query_json(&self, sql: &str, params: impl IntoParams) -> Call<String> {
        self.operations.query_json(sql, params)
    }

    /// Runs one statement and returns its rows one by one, in bounded memory. Several streams of one snapshot may be
    /// open at once.
    pub fn stream(&self, sql: &str, params: impl IntoParams) -> RowStream {
        RowStream::new(self.operations.cursor("stream", sql, params))
    }

    /// Runs one statement and returns its rows one by one, each as a `T`.
    pub fn stream_as<T: FromRow>(&self, sql: &str, params: impl IntoParams) -> RowStream<T> {
        RowStream::typed(self.operations.cursor("stream_as", sql, params))
    }

    /// Runs one statement and returns its rows in batches.
    pub fn cursor(&self, sql: &str, params: impl IntoParams) -> Cursor {
        self.operations.cursor("cursor", sql, params)
    }
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Snapshot").finish_non_exhaustive()
    }
}
