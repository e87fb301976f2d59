//! The differences of a live query's results, as a `Stream`.
//!
//! Owns: what is yielded. Runs on the thread that polls it, and compares nothing there. Invariant: the full result that was
//! yielded last, with the changes of rows that were yielded after it, is the newest result that the stream has taken, in some
//! order. Leaves out: taking results (`live`), comparing them (`workers::live::told`, `values::difference`), the choice of
//! the key (`changes::primary_keys`).

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_core::Stream;

use crate::error::{Error, Result};
use crate::live::{Live, LiveRows};
use crate::values::difference::Difference;
use crate::values::row::{Row, Rows};
use crate::workers::live::told::{PartTold, Told};

/// The differences of a live query's results: a [`Stream`] of `Result<LiveChange>`, made by [`Live::changes`].
/// [`next`](Self::next) needs no other crate.
///
/// The first item is the full result, and each later one is what has changed since the item before. A stream that is not
/// polled keeps the newest result and the one that it has yielded, so a slow consumer gets several changes as one.
///
/// An error of SQLite is an item, as in [`Live`], and the stream goes on with the next full result.
#[must_use = "a live query begins when it is polled"]
#[derive(Debug)]
pub struct LiveChanges(Live);

/// One item of [`LiveChanges`].
#[derive(Debug, Clone)]
pub enum LiveChange {
    /// The full result, which replaces what was yielded before: the first item, the first one after an error, and the first
    /// one with other columns or another key.
    Full(LiveRows),
    /// What has changed since the item before: at least one row, or, in a group, at least one row of one of its queries.
    Rows(RowChanges),
}

/// The rows in which one result differs from the result before. If you store rows by key, apply the deletions
/// first.
///
/// Both results stay in memory until this, and each row that was taken from it, is dropped.
#[derive(Debug, Clone)]
pub struct RowChanges {
    pub(crate) old: Arc<Rows>,
    pub(crate) new: LiveRows,
    pub(crate) difference: Arc<Difference>,
}

/// A row as it was, and the row with the same key as it is.
#[derive(Debug, Clone)]
pub struct UpdatedRow {
    /// The row in the result before.
    pub old: Row<'static>,
    /// The row in the newest result.
    pub new: Row<'static>,
}

impl RowChanges {
    /// The rows whose key is new, in the order of the newest result.
    pub fn inserted(&self) -> impl ExactSizeIterator<Item = Row<'static>> {
        self.difference.inserted.iter().map(|row| Row::of_batch(&self.new.rows, *row))
    }

    /// The rows whose key was there and that have another value, in the order of the result before.
    pub fn updated(&self) -> impl ExactSizeIterator<Item = UpdatedRow> {
        let updated = |(old, new): &_| UpdatedRow {
            old: Row::of_batch(&self.old, *old),
            new: Row::of_batch(&self.new.rows, *new),
        };
        self.difference.updated.iter().map(updated)
    }

    /// The rows whose key is gone, in the order of the result before.
    pub fn deleted(&self) -> impl ExactSizeIterator<Item = Row<'static>> {
        self.difference.deleted.iter().map(|row| Row::of_batch(&self.old, *row))
    }

    /// The whole newest result, with the number of its commit.
    #[must_use]
    pub fn result(&self) -> &LiveRows {
        &self.new
    }
}

impl Live {
    /// Yields what has changed in the result, row by row, instead of the result: rows that were inserted, updated and
    /// deleted, as seen by the query. The pace set by [`debounce`](Self::debounce) and [`throttle`](Self::throttle) holds.
    ///
    /// Rows are told apart by their key: the result columns that return a table's primary key, or its rowid,
    /// unchanged. A join may have the keys of several tables; then all of them together are the key. A row
    /// that gets another key is deleted and inserted. Keys are compared by type and value: 1 and 1.0 differ, and so do 'a'
    /// and 'A' in a column with NOCASE. NULL is a key like another. The order of rows is not compared.
    ///
    /// Results are compared on the thread that ran the query, which takes a time that grows with the number of rows. A stream
    /// that was polled before begins anew, with the full result.
    ///
    /// ```no_run
    /// use std::collections::HashMap;
    ///
    /// use flatwater::LiveChange;
    ///
    /// # async fn example(db: flatwater::Database) -> flatwater::Result<()> {
    /// let mut open: HashMap<i64, String> = HashMap::new();
    /// let mut changes = db.live("SELECT id, title FROM todos WHERE NOT done", ()).changes();
    /// while let Some(change) = changes.next().await {
    ///     match change? {
    ///         LiveChange::Full(rows) => open = rows.read()?.into_iter().collect(),
    ///         LiveChange::Rows(rows) => {
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
    /// The key is found by the [origin](crate::Column::origin_name) of columns, which a SQLite other than the bundled
    /// one reports with the feature `column_metadata`.
    pub fn changes(self) -> LiveChanges {
        LiveChanges(self.with_differences())
    }
}

impl LiveChanges {
    /// Returns the next change, or `None` when the stream is over. If the future is dropped, no change is lost.
    ///
    /// # Errors
    /// As [`Live::next`]. `Misuse` if the result has no key: the stream is over then. `Misuse` if two rows of a result have
    /// the same key, such as those of a join that repeats the rows of a table: the stream yields this error once, and
    /// the next result whose keys are unique in full.
    #[allow(clippy::should_implement_trait, reason = "this is the name that users of streams know")]
    pub async fn next(&mut self) -> Option<Result<LiveChange>> {
        poll_fn(|context| self.poll_change(context)).await
    }

    fn poll_change(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<LiveChange>>> {
        let first = |mut parts: Vec<LiveChange>| parts.pop().ok_or_else(Error::closed);
        poll_changes(&mut self.0, context).map(|changes| changes.map(|changes| changes.and_then(first)))
    }
}

/// Returns the next changes in the results of all statements.
pub(crate) fn poll_changes(live: &mut Live, context: &mut Context<'_>) -> Poll<Option<Result<Vec<LiveChange>>>> {
    let taken = ready!(live.poll_told(context));
    let changes = taken.map(|taken| match taken? {
        (parts, Told::All) => Ok(parts.into_iter().map(LiveChange::Full).collect()),
        (parts, Told::Changes(told)) => Ok(parts.into_iter().zip(&*told).map(change).collect()),
        (parts, Told::Repeated(at, key)) => Err(repeated(&parts[at], &key)),
        (parts, Told::NoKey(at)) => {
            live.end();
            Err(no_key(&parts[at]))
        }
    });
    Poll::Ready(changes)
}

fn change((new, told): (LiveRows, &PartTold)) -> LiveChange {
    match told {
        PartTold::Full => LiveChange::Full(new),
        PartTold::Difference(old, difference) => {
            LiveChange::Rows(RowChanges { old: old.clone(), new, difference: difference.clone() })
        }
    }
}

#[cold]
fn no_key(result: &LiveRows) -> Error {
    let error = Error::misuse("the rows of this result have no key, so there are no changes of single rows");
    let hint = match &*result.keys.listed() {
        "" => "read a table that has a primary key, and select it".into(),
        keys => format!("select the primary key as it is, and group by it in an aggregate: {keys}"),
    };
    result.explain(error.with_hint(hint).in_operation("live"))
}

#[cold]
fn repeated(result: &LiveRows, key: &[usize]) -> Error {
    let names: Vec<&str> = key.iter().map(|column| &*result.names[*column]).collect();
    let error = Error::misuse(format!("two rows of the result have the same key ({})", names.join(", ")));
    let keys = result.keys.listed();
    let hint = format!("select the key of each table of a join: {keys}; the rowid, if a primary key has NULLs");
    result.explain(error.with_hint(hint).in_operation("live"))
}

impl Stream for LiveChanges {
    type Item = Result<LiveChange>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<LiveChange>>> {
        self.get_mut().poll_change(context)
    }
}
