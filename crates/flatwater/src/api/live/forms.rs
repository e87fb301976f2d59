//! What a live query yields: results or changes, of one query or of a group whose results are of one snapshot, or
//! values of the caller's type.
//!
//! Owns: these forms, the calls that choose one, and on which thread values are made. Runs on the thread that polls it,
//! and makes many values on a thread of their own. Invariants: all results of one item are of one point in time, for
//! the group is one live query of several statements; a result whose values were not yielded yet is yielded by the next
//! call. Leaves out: everything else (`live`).

pub(crate) use sealed::{Form, IsQueries};

use super::row_changes::{Change, changes};
use super::{Live, LiveRows, Results};
use crate::api::database::Database;
use crate::api::session::Session;
use crate::api::statement::Statement;
use crate::connection::learn::live_query::LivePart;
use crate::queue::reply::{reply, wake};
use crate::workers::outbox::FEW;
use flatwater_base::error::{Error, Result};
use flatwater_base::thread::background;
use flatwater_base::values::outcome::decode_rows;
use flatwater_base::values::{FromRow, IntoParams};

impl Database {
    /// Runs several queries in one snapshot, and all of them again whenever the result of one changed. So a list and
    /// its count never disagree. The queries begin with the first poll.
    ///
    /// The queries are a tuple of up to eight, an array or a `Vec`, each with its parameters; the results have the same form.
    ///
    /// ```no_run
    /// # async fn example(db: flatwater::Database) -> flatwater::Result<()> {
    /// let mut page = db.live_group((
    ///     ("SELECT id, title FROM todos ORDER BY id LIMIT ?", (20,)),
    ///     ("SELECT count(*) FROM todos", ()),
    /// ));
    /// while let Some(results) = page.next().await {
    ///     let (todos, count) = results?;
    ///     println!("{} of {}", todos.len(), count.read::<(i64,)>()?[0].0);
    /// }
    /// # Ok(()) }
    /// ```
    pub fn live_group<Q: LiveQueries>(&self, queries: Q) -> Live<Q::Results> {
        group_of(&self.session, queries)
    }
}

/// Makes a live query of several.
pub fn group_of<Q: LiveQueries>(session: &Session, queries: Q) -> Live<Q::Results> {
    let results = Results::new(session, queries.parts(session));
    Live::of(results, |_, (parts, _)| Q::Results::of_parts(parts))
}

impl<T: LiveResult> Live<T> {
    /// Yields what has changed in the result, row by row, instead of the result: rows that were inserted, updated and
    /// deleted, as seen by the query. [`debounce`](Self::debounce) and [`throttle`](Self::throttle) still apply.
    ///
    /// Rows are identified by their key: the result columns that return a table's primary key, or its rowid, unchanged.
    /// A join may have the keys of several tables; then all of them together are the key. A row that gets another key
    /// is deleted and inserted. Keys are compared by type and value: 1 and 1.0 differ, and so do 'a' and 'A' in a
    /// column with NOCASE. NULL is a key value like any other. The order of rows is not compared.
    ///
    /// The thread that ran the query compares the results, in a time proportional to the number of rows. A stream that
    /// was polled before starts again with the full result.
    ///
    /// ```no_run
    /// use std::collections::HashMap;
    ///
    /// use flatwater::live::Change;
    ///
    /// # async fn example(db: flatwater::Database) -> flatwater::Result<()> {
    /// let mut open: HashMap<i64, String> = HashMap::new();
    /// let mut changes = db.live("SELECT id, title FROM todos WHERE NOT done", ()).changes();
    /// while let Some(change) = changes.next().await {
    ///     match change? {
    ///         Change::Full(rows) => open = rows.read()?.into_iter().collect(),
    ///         Change::Rows(rows) => {
    ///             for row in rows.deleted() {
    ///                 open.remove(&row.get("id")?);
    ///             }
    ///             for row in rows.inserted().chain(rows.updated().map(|row| row.new)) {
    ///                 let (id, title) = row.read()?;
    ///                 open.insert(id, title);
    ///             }
    ///         }
    ///     }
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// The key is found by the [origin](crate::values::Column::origin_name) of columns, which a SQLite other than the bundled
    /// one reports with the feature `column_metadata`.
    ///
    /// For a [group](Database::live_group), the first item has the full result of each query, and each later item the
    /// changed rows of each, none for a query whose result stayed the same. Each query needs a key.
    pub fn changes(self) -> Live<T::Changes> {
        Live::of(self.results.with_differences(), |results, taken| {
            changes(results, taken).and_then(T::Changes::of_parts)
        })
    }
}

/// The queries of a group: a tuple of up to eight, an array or a `Vec` of SQL with parameters.
pub trait LiveQueries: IsQueries {
    /// The results, in the same form.
    type Results: LiveResult;
}

/// What a live query yields: [`LiveRows`], or for a group a tuple, an array or a `Vec` of them.
pub trait LiveResult: Form<LiveRows> {
    /// The changes, in the same form.
    type Changes: Form<Change>;
}

mod sealed {
    use super::{LivePart, Result, Session};

    pub trait IsQueries {
        #[doc(hidden)]
        #[allow(private_interfaces, reason = "other crates cannot name the trait")]
        fn parts(self, session: &Session) -> Result<Box<[LivePart]>>;
    }

    /// What is made of something of each statement: that of the only one, a tuple, an array or a `Vec`.
    pub trait Form<Part>: Sized {
        #[doc(hidden)]
        fn of_parts(parts: Vec<Part>) -> Result<Self>;
    }
}

impl<Part> Form<Part> for Part {
    fn of_parts(mut parts: Vec<Part>) -> Result<Self> {
        parts.pop().ok_or_else(Error::closed)
    }
}

impl<Part> Form<Part> for Vec<Part> {
    fn of_parts(parts: Vec<Part>) -> Result<Self> {
        Ok(parts)
    }
}

impl<Part, const N: usize> Form<Part> for [Part; N] {
    fn of_parts(parts: Vec<Part>) -> Result<Self> {
        parts.try_into().map_err(|_| Error::closed())
    }
}

impl LiveResult for LiveRows {
    type Changes = Change;
}

impl LiveResult for Vec<LiveRows> {
    type Changes = Vec<Change>;
}

impl<const N: usize> LiveResult for [LiveRows; N] {
    type Changes = [Change; N];
}

fn parts<S: Statement, P: IntoParams>(
    queries: impl IntoIterator<Item = (S, P)>,
    session: &Session,
) -> Result<Box<[LivePart]>> {
    queries.into_iter().map(|(sql, params)| session.live_part(&sql, params)).collect()
}

impl<S: Statement, P: IntoParams> IsQueries for Vec<(S, P)> {
    #[allow(private_interfaces, reason = "other crates cannot name the trait")]
    fn parts(self, session: &Session) -> Result<Box<[LivePart]>> {
        parts(self, session)
    }
}

impl<S: Statement, P: IntoParams> LiveQueries for Vec<(S, P)> {
    type Results = Vec<LiveRows>;
}

impl<S: Statement, P: IntoParams, const N: usize> IsQueries for [(S, P); N] {
    #[allow(private_interfaces, reason = "other crates cannot name the trait")]
    fn parts(self, session: &Session) -> Result<Box<[LivePart]>> {
        parts(self, session)
    }
}

impl<S: Statement, P: IntoParams, const N: usize> LiveQueries for [(S, P); N] {
    type Results = [LiveRows; N];
}

macro_rules! tuples {
    ($(($($sql:ident $params:ident $at:tt),+))+) => {
        $(
            impl<$($sql: Statement, $params: IntoParams),+> IsQueries for ($(($sql, $params),)+) {
                #[allow(private_interfaces, reason = "other crates cannot name the trait")]
                fn parts(self, session: &Session) -> Result<Box<[LivePart]>> {
                    Ok(Box::from([$(session.live_part(&self.$at.0, self.$at.1)?),+]))
                }
            }

            impl<$($sql: Statement, $params: IntoParams),+> LiveQueries for ($(($sql, $params),)+) {
                type Results = ($(tuples!(@each $sql LiveRows),)+);
            }

            impl<Part> Form<Part> for ($(tuples!(@each $sql Part),)+) {
                fn of_parts(parts: Vec<Part>) -> Result<Self> {
                    let mut parts = parts.into_iter();
                    Ok(($(tuples!(@next $sql parts),)+))
                }
            }

            impl LiveResult for ($(tuples!(@each $sql LiveRows),)+) {
                type Changes = ($(tuples!(@each $sql Change),)+);
            }
        )+
    };
    (@each $any:ident $type:ident) => { $type };
    (@next $any:ident $parts:ident) => { $parts.next().ok_or_else(Error::closed)? };
}

tuples! {
    (A P 0)
    (A P 0, B Q 1)
    (A P 0, B Q 1, C R 2)
    (A P 0, B Q 1, C R 2, D S 3)
    (A P 0, B Q 1, C R 2, D S 3, E T 4)
    (A P 0, B Q 1, C R 2, D S 3, E T 4, F U 5)
    (A P 0, B Q 1, C R 2, D S 3, E T 4, F U 5, G V 6)
    (A P 0, B Q 1, C R 2, D S 3, E T 4, F U 5, G V 6, H W 7)
}

impl Live {
    /// The same as [`next`](Self::next), with each row as a `T`. More than 256 rows are read as `T` on a separate
    /// thread. If `T` panics, the call does.
    ///
    /// # Errors
    /// As [`next`](Self::next); `Decode` if a row cannot be read as a `T`.
    pub async fn next_as<T: FromRow + Send + 'static>(&mut self) -> Option<Result<Vec<T>>> {
        let rows = match self.next().await? {
            Ok(rows) => rows,
            Err(error) => return Some(Err(error)),
        };
        let read = if rows.len() > FEW {
            self.results.unread = Some(rows.clone());
            let read = read_elsewhere(&rows).await;
            self.results.unread = None;
            read
        } else {
            rows.read()
        };
        Some(read.map_err(|error| error.in_operation("live")))
    }
}

/// Reads every row on another thread, or here if none can be started.
async fn read_elsewhere<T: FromRow + Send + 'static>(rows: &LiveRows) -> Result<Vec<T>> {
    let (promise, reply) = reply();
    let shared = rows.rows.clone();
    let read = move || {
        // The values of a call that was dropped are dropped here; their code may panic.
        if let Ok(waker) = promise.fill(decode_rows::<T>(&shared)) {
            wake(waker);
        }
    };
    background::run("fw-decode", read, || {});
    // Without a thread there is no reply.
    match reply.await {
        Some(decoded) => decoded.get(),
        None => rows.read(),
    }
}
