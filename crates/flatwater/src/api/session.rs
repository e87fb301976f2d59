//! The operations that databases, transactions and snapshots share.
//!
//! Owns: their signatures and documentation, and the request of each. Runs on the caller's thread. Invariant: no work
//! runs here; a call begins when it is polled. Leaves out: what only one of them has (`database`, `transaction`), and
//! how a request is served.

use std::sync::Arc;

use crate::api::call::{Call, Read};
use crate::api::execute_many::{CHANGES, ExecuteMany, RETURNED};
use crate::api::json_call::JsonCall;
use crate::api::statement::Statement;
use crate::api::stream::{Batches, RowStream};
use crate::engine::caller::Caller;
use crate::queue::ticket::CallOptions;
use crate::workers::work::{Wanted, Work};
use flatwater_base::error::location::OPTIONAL_ROW;
use flatwater_base::error::{Error, Result};
use flatwater_base::values::outcome::{decode_first_column, decode_rows};
use flatwater_base::values::{BatchStatements, ExecuteResult, FromRow, FromSql, IntoParams, Row, Rows, RunResult};
use flatwater_sql::statement_info::StatementInfo;

/// The operations that a [`Database`](crate::Database), a [`Transaction`](crate::Transaction), a
/// [`Snapshot`](crate::Snapshot) and a [`Connection`](crate::Connection) share: each of them derefs to it. A function that takes a `&Session` can be called with
/// each:
///
/// ```no_run
/// use flatwater::{Database, Result, Session};
///
/// async fn balance(of: &Session, account: i64) -> Result<Option<i64>> {
///     of.query_optional_value("SELECT cents FROM accounts WHERE id = ?", (account,)).await
/// }
///
/// # async fn example(db: Database) -> Result<()> {
/// let now = balance(&db, 1).await?;
/// let in_transaction = db.transaction(async |tx| balance(tx, 1).await).await?;
/// # Ok(()) }
/// ```
///
/// In a transaction, reads see the transaction's own writes, and a statement that fails changes nothing, unless it says
/// `OR FAIL`. After the end of the transaction each call fails with `Misuse`, which names the reason. In a snapshot, a
/// statement that writes fails with `Misuse`. After a limit ended the transaction or the snapshot, each
/// call fails with `Expired`, or `SnapshotTooOld`.
///
/// SQL is a text, an [`Sql`](crate::Sql) with its values, or a [`Prepared`](crate::Prepared): see [`Statement`].
pub struct Session(pub(crate) Caller);

impl Session {
    /// Runs one statement that returns no rows.
    ///
    /// The call completes when the write is committed. Other writes that arrive at the same time may share the commit;
    /// each write keeps its own result. If the call is dropped while it waits, the write does not happen; if it is
    /// dropped while the write runs, the write is rolled back, unless it shares its commit or the commit has begun.
    ///
    /// # Errors
    /// `Constraint` or `Sql` from SQLite; `Misuse` for more than one statement, for parameters that do not match the
    /// statement, or for a statement that returns rows; `Busy`, `Full`, `Io`, `Closed`; `CommitUnknown` if the outcome
    /// cannot be known.
    pub fn execute(&self, sql: impl Statement, params: impl IntoParams) -> Call<ExecuteResult> {
        let work = self.0.bind(&sql, params).map(|(text, params)| Work::execute(text, params));
        self.call("execute", work, |answer, _| answer.executed())
    }

    /// Runs any one statement, and returns its rows, if it returns rows, and what it changed. For programs that do not know
    /// what the statement is, such as consoles and adapters.
    ///
    /// A statement that reads runs as a [`query`](Self::query) does, one that writes as [`execute`](Self::execute) does.
    ///
    /// # Errors
    /// As [`execute`](Self::execute), but for a statement that returns rows.
    pub fn run(&self, sql: impl Statement, params: impl IntoParams) -> Call<RunResult> {
        self.call("run", self.read(&sql, params, Wanted::Ran), |answer, _| answer.ran())
    }

    /// Runs one statement once per row of parameters, all or nothing, and returns the number of rows it changed.
    ///
    /// The rows are taken from the iterator while the future is polled, in slices of half a millisecond, between which
    /// other tasks run. The call takes its place in the queue when it has the last row. Dropping the future before that
    /// leaves the database unchanged.
    ///
    /// # Errors
    /// As [`execute`](Self::execute); if one row fails, all rows are undone. `Misuse` for an [`Sql`](crate::Sql) that has
    /// values. For a statement that returns rows there is [`query_many`](Self::query_many).
    pub fn execute_many<I: IntoIterator<Item: IntoParams>>(
        &self,
        sql: impl Statement,
        rows: I,
    ) -> ExecuteMany<I::IntoIter> {
        ExecuteMany::new(CHANGES, &self.0, self.0.only_text(&sql), rows.into_iter())
    }

    /// Runs one statement that returns rows once per row of parameters, all or nothing, and returns the rows of all its
    /// runs, in the order of the parameters: those that `INSERT ... RETURNING` has made.
    ///
    /// The parameters are taken as those of [`execute_many`](Self::execute_many) are. The statement runs in a write
    /// transaction, also if it only reads.
    ///
    /// # Errors
    /// As [`execute_many`](Self::execute_many); `Misuse` for a statement that returns no rows. If the rows have more
    /// bytes than [`Tuning::result_limit`](crate::options::Tuning::result_limit) together, nothing is changed.
    pub fn query_many<I: IntoIterator<Item: IntoParams>>(
        &self,
        sql: impl Statement,
        rows: I,
    ) -> ExecuteMany<I::IntoIter, Rows> {
        ExecuteMany::new(RETURNED, &self.0, self.0.only_text(&sql), rows.into_iter())
    }

    /// Runs several statements with their parameters, all or nothing, in one request. Returns one result per statement,
    /// with the rows of those statements that return rows.
    ///
    /// Unlike a [`transaction`](crate::Database::transaction), a batch does not make other writes wait for its caller, and a
    /// short batch can share a commit with other writes.
    ///
    /// # Errors
    /// As [`execute`](Self::execute); if one statement fails, all statements are undone.
    pub fn batch<I, S: Statement, P: IntoParams>(&self, statements: I) -> Call<Vec<RunResult>>
    where
        I: IntoIterator<Item = (S, P)>,
    {
        batch(self, self.0.bind_each(statements))
    }

    /// Runs several statements without parameters, separated by semicolons, all or nothing. Any rows they return are
    /// discarded.
    ///
    /// A script that begins with BEGIN, or with PRAGMAs and BEGIN, and ends with COMMIT is treated as the dump of a
    /// database, as the `sqlite3` shell writes it, and is still one transaction. Unless it changes existing rows,
    /// foreign keys are off while it runs, and are checked before the commit.
    ///
    /// # Errors
    /// As [`execute`](Self::execute); if one statement fails, all statements are undone. `Constraint` if a dump leaves a row
    /// without its parent. `Misuse` for an [`Sql`](crate::Sql) that has values.
    pub fn execute_script(&self, sql: impl Statement) -> Call<()> {
        self.call("execute_script", self.0.only_text(&sql).map(Work::script), |answer, _| answer.done())
    }

    /// Runs one statement and returns all its rows. A write is allowed here if it has a RETURNING clause.
    ///
    /// A read sees every write that completed before the read began. If the call is dropped, a running read is
    /// interrupted.
    ///
    /// # Errors
    /// As [`execute`](Self::execute); `Misuse` for a statement that returns no rows.
    pub fn query(&self, sql: impl Statement, params: impl IntoParams) -> Call<Rows> {
        self.call("query", self.read(&sql, params, Wanted::All), |answer, _| answer.rows())
    }

    /// Runs one statement and returns its first row. Further rows are ignored. If no row is a valid answer, use
    /// [`query_optional`](Self::query_optional).
    ///
    /// # Errors
    /// As [`query`](Self::query); `RowNotFound` if there is no row. If the statement writes, its changes are committed even
    /// when this error is returned.
    #[doc(alias = "fetch_one")]
    pub fn query_one(&self, sql: impl Statement, params: impl IntoParams) -> Call<Row<'static>> {
        self.call("query_one", self.read(&sql, params, Wanted::First), |answer, _| {
            let rows = answer.needed_rows(OPTIONAL_ROW).map_err(|error| error.in_operation("query_one"))?;
            rows.into_first().ok_or_else(Error::closed)
        })
    }

    /// Runs one statement and returns its first row, or `None` if there is no row. Further rows are ignored.
    ///
    /// # Errors
    /// As [`query`](Self::query).
    #[doc(alias = "fetch_optional")]
    pub fn query_optional(&self, sql: impl Statement, params: impl IntoParams) -> Call<Option<Row<'static>>> {
        self.call("query_optional", self.read(&sql, params, Wanted::First), |answer, _| answer.first_row())
    }

    /// Runs one statement and returns the first value of its first row. A value that may be NULL, such as the `sum` of no
    /// rows, is read as an `Option`. If no row is a valid answer, use
    /// [`query_optional_value`](Self::query_optional_value).
    ///
    /// # Errors
    /// As [`query_one`](Self::query_one); `Decode` if the value cannot be read as a `T`.
    #[doc(alias = "query_scalar")]
    pub fn query_value<T: FromSql>(&self, sql: impl Statement, params: impl IntoParams) -> Call<T> {
        self.call("query_value", self.read(&sql, params, Wanted::First), |answer, _| {
            answer.rows().and_then(|rows| rows.read_value()).map_err(|error| error.in_operation("query_value"))
        })
    }

    /// Runs one statement and returns the first value of its first row, or `None` if there is no row. To tell no row from
    /// NULL, read an `Option`: NULL is then `Some(None)`.
    ///
    /// # Errors
    /// As [`query`](Self::query); `Decode` if the value cannot be read as a `T`.
    pub fn query_optional_value<T: FromSql>(&self, sql: impl Statement, params: impl IntoParams) -> Call<Option<T>> {
        self.call("query_optional_value", self.read(&sql, params, Wanted::First), |answer, _| {
            let value = answer.rows().and_then(|rows| rows.read_optional_value());
            value.map_err(|error| error.in_operation("query_optional_value"))
        })
    }

    /// Runs one statement and returns the first value of every row. Values that may be NULL are read as an `Option`.
    ///
    /// More than 256 rows are read as `T` on one of the database's threads. If `T` panics, the call does.
    ///
    /// # Errors
    /// As [`query`](Self::query); `Decode` if a value cannot be read as a `T`.
    pub fn query_values<T>(&self, sql: impl Statement, params: impl IntoParams) -> Call<Vec<T>>
    where
        T: FromSql + Send + 'static,
    {
        let work = self.read(&sql, params, Wanted::Decoded(decode_first_column::<T>));
        self.call("query_values", work, |answer, _| {
            answer.decoded(Rows::read_first_column).map_err(|error| error.in_operation("query_values"))
        })
    }

    /// Runs one statement and returns every row as a `T`, such as a tuple.
    ///
    /// More than 256 rows are read as `T` on one of the database's threads. If `T` panics, the call does.
    ///
    /// # Errors
    /// As [`query`](Self::query); `Decode` if a row cannot be read as a `T`.
    pub fn query_as<T>(&self, sql: impl Statement, params: impl IntoParams) -> Call<Vec<T>>
    where
        T: FromRow + Send + 'static,
    {
        let work = self.read(&sql, params, Wanted::Decoded(decode_rows::<T>));
        self.call("query_as", work, |answer, _| {
            answer.decoded(Rows::read).map_err(|error| error.in_operation("query_as"))
        })
    }

    /// Runs one statement and returns its first row as a `T`. Further rows are ignored. If no row is a valid answer, use
    /// [`query_optional_as`](Self::query_optional_as).
    ///
    /// # Errors
    /// As [`query_one`](Self::query_one); `Decode` if the row cannot be read as a `T`.
    pub fn query_one_as<T: FromRow>(&self, sql: impl Statement, params: impl IntoParams) -> Call<T> {
        self.call("query_one_as", self.read(&sql, params, Wanted::First), |answer, _| {
            answer.rows()?.read_one().map_err(|error| error.in_operation("query_one_as"))
        })
    }

    /// Runs one statement and returns its first row as a `T`, or `None` if there is no row. Further rows are ignored.
    ///
    /// # Errors
    /// As [`query`](Self::query); `Decode` if the row cannot be read as a `T`.
    pub fn query_optional_as<T: FromRow>(&self, sql: impl Statement, params: impl IntoParams) -> Call<Option<T>> {
        self.call("query_optional_as", self.read(&sql, params, Wanted::First), |answer, _| {
            answer.rows()?.read_first().map_err(|error| error.in_operation("query_optional_as"))
        })
    }

    /// Runs one statement and returns all its rows as JSON: an array of objects. The thread that runs the statement
    /// writes it straight from SQLite's values; no intermediate rows are allocated.
    ///
    /// INTEGER and REAL are numbers, TEXT is a string, a BLOB is a string in Base64, NULL and infinity are `null`.
    /// The methods of the [call](JsonCall) make other choices. A write is allowed here if it has a RETURNING clause. If
    /// the call is dropped, a running read is interrupted.
    ///
    /// # Errors
    /// As [`query`](Self::query); `Misuse` if two columns have the same name, before the statement runs; `Decode` if a
    /// TEXT is not UTF-8. In the second case a write is still committed, as it is if [`query_as`](Self::query_as) cannot read a
    /// row.
    pub fn query_json(&self, sql: impl Statement, params: impl IntoParams) -> JsonCall {
        let work = self.read(&sql, params, Wanted::Json(Arc::default()));
        JsonCall(
            self.call("query_json", work, |answer, _| answer.json().map_err(|error| error.in_operation("query_json"))),
        )
    }

    /// Runs one statement and returns its rows one by one, as a [`Stream`](futures_core::Stream): all of one point in
    /// time, and in bounded memory, for a result of any size. The statement begins with the first poll.
    ///
    /// The stream holds a reader beyond those that other reads use
    /// ([`Tuning::extra_readers`](crate::options::Tuning::extra_readers)). Dropping it gives the reader back. A stream whose
    /// rows are not fetched for [`Tuning::stream_idle`](crate::options::Tuning::stream_idle) ends with `Expired`. In a
    /// database with one connection, in a transaction, and for a statement that writes (RETURNING), the stream reads
    /// the whole result first.
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
    pub fn stream(&self, sql: impl Statement, params: impl IntoParams) -> RowStream {
        RowStream::new(in_batches(self, "stream", &sql, params))
    }

    /// The same as [`stream`](Self::stream), with each row as a `T`, such as a tuple.
    pub fn stream_as<T: FromRow>(&self, sql: impl Statement, params: impl IntoParams) -> RowStream<T> {
        RowStream::typed(in_batches(self, "stream_as", &sql, params))
    }

    /// The same as [`stream`](Self::stream), with the rows in batches.
    #[doc(alias = "cursor")]
    pub fn batches(&self, sql: impl Statement, params: impl IntoParams) -> Batches {
        in_batches(self, "batches", &sql, params)
    }

    /// Returns true for a transaction that is not over, and for a connection on which one is open; false for a database
    /// and a snapshot. A transaction may end before `commit` or `rollback` is called: see
    /// [`Transaction`](crate::Transaction). Does not block.
    #[must_use]
    pub fn in_transaction(&self) -> bool {
        if let Some(kept) = &self.0.kept {
            return kept.in_transaction();
        }
        // In a database with one connection a snapshot is a transaction of the writer. In a forked process the lock may be
        // held by a thread that is not there.
        let Some(inside) = &self.0.inside else { return false };
        !self.0.options.read_only && !self.0.handle.is_inherited() && inside.transaction.is_open()
    }

    pub(crate) fn call<T, E: From<Error>>(
        &self,
        operation: &'static str,
        work: Result<Work>,
        read: Read<T, E>,
    ) -> Call<T, E> {
        Call::new(self.0.now(), operation, work, read)
    }

    pub(crate) fn read(&self, sql: &impl Statement, params: impl IntoParams, wanted: Wanted) -> Result<Work> {
        self.0.bind(sql, params).map(|(text, params)| Work::query(text, params, wanted))
    }

    /// Another handle to the same. Not `Clone`: the outer transaction is not used while a nested one is open.
    pub(crate) fn share(&self) -> Self {
        Self(self.0.clone())
    }
}

fn in_batches(on: &Session, operation: &'static str, sql: &impl Statement, params: impl IntoParams) -> Batches {
    Batches::new(&on.0.now(), operation, on.read(sql, params, Wanted::Batches))
}

/// Runs the statements of a batch.
pub(crate) fn batch(on: &Session, statements: Result<BatchStatements<Arc<StatementInfo>>>) -> Call<Vec<RunResult>> {
    on.call("batch", statements.map(Work::batch), |answer, _| answer.batch())
}

/// The same, whose calls have other options.
pub(crate) fn with_options(of: &Session, set: impl FnOnce(&mut CallOptions)) -> Session {
    let mut caller = of.0.clone();
    set(&mut caller.options);
    Session(caller)
}
