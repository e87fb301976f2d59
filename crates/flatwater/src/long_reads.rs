//! Reads that last: streams, cursors and snapshots of a database.
//!
//! Owns: their documentation and signatures. Runs on the caller's thread; no work runs here. Leaves out: making the
//! requests (`operations`), and the caller's side of each (`stream`, `cursor`, `snapshot`).

use crate::call::Call;
use crate::cursor::Cursor;
use crate::database::Database;
use crate::error::Error;
use crate::snapshot::Snapshot;
use crate::stream::RowStream;
use crate::values::into_params::IntoParams;
use crate::values::row::FromRow;
use crate::workers::request::Work;

impl Database {
    /// Runs one statement and returns its rows one by one, as a [`Stream`](futures_core::Stream): all of one point in
    /// time, and in bounded memory, whatever the size of the result. Nothing begins before the first poll.
    ///
    /// The stream holds a reader beyond those that other reads use
    /// ([`Options::extra_readers`](crate::Options::extra_readers)). Dropping it gives the reader back. A stream whose
    /// rows are not fetched for [`Options::stream_idle`](crate::Options::stream_idle) ends with `Timeout`. In a
    /// database with one connection, and for a statement that writes (RETURNING), the whole result is read first.
    ///
    /// ```no_run
    /// # async fn example(db: flatwater::Database) -> flatwater::Result<()> {
    /// let mut rows = db.stream("SELECT id, name FROM users", ());
    /// while let Some(row) = rows.next().await {
    ///     let name: String = row?.get("name")?;
    ///     println!("{name}");
    /// }
    /// # Ok(()) }
    /// ```
    pub fn stream(&self, sql: &str, params: impl IntoParams) -> RowStream {
        RowStream::new(self.operations.cursor("stream", sql, params))
    }

    /// The same as [`stream`](Self::stream), with each row as a `T`, such as a tuple.
    pub fn stream_as<T: FromRow>(&self, sql: &str, params: impl IntoParams) -> RowStream<T> {
        RowStream::typed(self.operations.cursor("stream_as", sql, params))
    }

    /// The same as [`stream`](Self::stream), with the rows in batches.
    pub fn cursor(&self, sql: &str, params: impl IntoParams) -> Cursor {
        self.operations.cursor("cursor", sql, params)
    }

    /// Opens a snapshot: several reads of one point in time, which is that of this call.
    ///
    /// ```no_run
    /// # async fn example(db: flatwater::Database) -> flatwater::Result<()> {
    /// let snapshot = db.snapshot().await?;
    /// let total: Option<i64> = snapshot.query_value("SELECT sum(cents) FROM accounts", ()).await?;
    /// let accounts = snapshot.query("SELECT id, cents FROM accounts", ()).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// `Timeout`, `Closed`, `Io`. If all [`Options::extra_readers`](crate::Options::extra_readers) are held, the call
    /// waits.
    pub fn snapshot(&self) -> Call<Snapshot> {
        self.operations.call("snapshot", Ok(Work::Snapshot), |answer, caller| {
            caller.map(|caller| Snapshot::new(caller, answer)).unwrap_or_else(|| Err(Error::closed()))
        })
    }
}
