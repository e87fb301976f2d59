//! What a database, a transaction and a snapshot have in common, as a trait.
//!
//! Owns: the trait. Runs on the caller's thread; no work runs here. Invariant: a method does what the method of the same
//! name does on the type itself. Leaves out: what only one of them has.

use crate::call::Call;
use crate::cursor::Cursor;
use crate::database::Database;
use crate::many::ExecuteMany;
use crate::snapshot::Snapshot;
use crate::stream::RowStream;
use crate::transaction::Transaction;
use crate::values::convert::FromSql;
use crate::values::executed::{BatchResult, Executed};
use crate::values::into_params::IntoParams;
use crate::values::row::{FromRow, Row, Rows};

/// The only types that have it are this crate's.
pub(crate) mod sealed {
    use crate::operations::Operations;

    /// Its operations, which no other crate can see.
    pub struct Of<'a>(pub(crate) &'a Operations);

    pub trait Runs {
        #[doc(hidden)]
        fn runs(&self) -> Of<'_>;
    }
}

/// The operations that a [`Database`], a [`Transaction`] and a [`Snapshot`] share. A function that takes one of them by this trait
/// can be called with each:
///
/// ```no_run
/// use flatwater::{Database, Executor, Result};
///
/// async fn balance(of: &impl Executor, account: i64) -> Result<Option<i64>> {
///     of.query_value("SELECT cents FROM accounts WHERE id = ?", (account,)).await
/// }
///
/// # async fn example(db: Database) -> Result<()> {
/// let now = balance(&db, 1).await?;
/// let in_transaction = db.transaction(async |tx| balance(tx, 1).await).await?;
/// # Ok(()) }
/// ```
///
/// Each type has methods of the same names, which need no `use`; their documentation is at [`Database`]. A write in a
/// snapshot is `Misuse`.
pub trait Executor: sealed::Runs + Send + Sync {
    /// See [`Database::execute`].
    fn execute(&self, sql: &str, params: impl IntoParams) -> Call<Executed> {
        self.runs().0.execute(sql, params)
    }

    /// See [`Database::execute_many`].
    fn execute_many<I>(&self, sql: &str, rows: I) -> ExecuteMany<I::IntoIter>
    where
        I: IntoIterator,
        I::Item: IntoParams,
    {
        ExecuteMany::new(self.runs().0, self.runs().0.text(sql), rows.into_iter())
    }

    /// See [`Database::batch`].
    fn batch<'s, I, P>(&self, statements: I) -> Call<Vec<BatchResult>>
    where
        I: IntoIterator<Item = (&'s str, P)>,
        P: IntoParams,
    {
        self.runs().0.batch(statements)
    }

    /// See [`Database::execute_script`].
    fn execute_script(&self, sql: &str) -> Call<()> {
        self.runs().0.execute_script(sql)
    }

    /// See [`Database::query`].
    fn query(&self, sql: &str, params: impl IntoParams) -> Call<Rows> {
        self.runs().0.query(sql, params)
    }

    /// See [`Database::query_one`].
    fn query_one(&self, sql: &str, params: impl IntoParams) -> Call<Option<Row<'static>>> {
        self.runs().0.query_one(sql, params)
    }

    /// See [`Database::query_value`].
    fn query_value<T: FromSql>(&self, sql: &str, params: impl IntoParams) -> Call<Option<T>> {
        self.runs().0.query_value(sql, params)
    }

    /// See [`Database::query_values`].
    fn query_values<T>(&self, sql: &str, params: impl IntoParams) -> Call<Vec<T>>
    where
        T: FromSql + Send + 'static,
    {
        self.runs().0.query_values(sql, params)
    }

    /// See [`Database::query_as`].
    fn query_as<T>(&self, sql: &str, params: impl IntoParams) -> Call<Vec<T>>
    where
        T: FromRow + Send + 'static,
    {
        self.runs().0.query_as(sql, params)
    }

    /// See [`Database::query_one_as`].
    fn query_one_as<T: FromRow>(&self, sql: &str, params: impl IntoParams) -> Call<T> {
        self.runs().0.query_one_as(sql, params)
    }

    /// See [`Database::query_optional_as`].
    fn query_optional_as<T: FromRow>(&self, sql: &str, params: impl IntoParams) -> Call<Option<T>> {
        self.runs().0.query_optional_as(sql, params)
    }

    /// See [`Database::query_json`].
    fn query_json(&self, sql: &str, params: impl IntoParams) -> Call<String> {
        self.runs().0.query_json(sql, params)
    }

    /// See [`Database::stream`].
    fn stream(&self, sql: &str, params: impl IntoParams) -> RowStream {
        RowStream::new(self.runs().0.cursor("stream", sql, params))
    }

    /// See [`Database::stream_as`].
    fn stream_as<T: FromRow>(&self, sql: &str, params: impl IntoParams) -> RowStream<T> {
        RowStream::typed(self.runs().0.cursor("stream_as", sql, params))
    }

    /// Returns true for a [`Transaction`] that is not over; false for a database or a snapshot. Does not block.
    fn in_transaction(&self) -> bool {
        self.runs().0.in_transaction()
    }

    /// See [`Database::cursor`].
    fn cursor(&self, sql: &str, params: impl IntoParams) -> Cursor {
        self.runs().0.cursor("cursor", sql, params)
    }
}

macro_rules! executors {
    ($($type:ty)+) => {
        $(
            impl sealed::Runs for $type {
                fn runs(&self) -> sealed::Of<'_> {
                    sealed::Of(&self.operations)
                }
            }

            impl Executor for $type {}
        )+
    };
}

executors!(Database Transaction<'_> Snapshot);
