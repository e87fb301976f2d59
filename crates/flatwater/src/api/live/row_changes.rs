//! The differences of a live query's results.
//!
//! Owns: what is yielded. Runs on the thread that polls it, and compares nothing there. Invariant: the full result that was
//! yielded last, with the changes of rows that were yielded after it, is the newest result that the stream has taken, in some
//! order. Leaves out: taking results (`live`), comparing them (`workers::live::diff`, `values::difference`), the choice of
//! the key (`dependencies::tables`).

use std::sync::Arc;

use super::{LiveRows, Results, StreamState, Taken};
use crate::workers::live::diff::{PartUpdate, Update};
use flatwater_base::error::{Error, ErrorCode, Result};
use flatwater_base::values::difference::Difference;
use flatwater_base::values::{Row, Rows};

/// One item of [`Live::changes`](super::Live::changes).
#[derive(Debug, Clone)]
pub enum Change {
    /// The full result, which replaces what was yielded before: the first item, the first one after an error, and the first
    /// one with other columns or another key.
    Full(LiveRows),
    /// What has changed since the item before. Never empty; in a group, at least one query has changed rows.
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

/// The old and the new version of a row.
#[derive(Debug, Clone)]
#[non_exhaustive]
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

    /// The rows present in both results with different values, in the order of the result before.
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

/// Returns the changes in the results of all statements.
pub(super) fn changes(results: &mut Results, taken: Taken) -> Result<Vec<Change>> {
    match taken {
        (parts, Update::All) => Ok(parts.into_iter().map(Change::Full).collect()),
        (parts, Update::Changes(update)) => Ok(parts.into_iter().zip(&*update).map(change).collect()),
        (parts, Update::Repeated(at, key)) => Err(repeated(&parts[at], &key)),
        (parts, Update::NoKey(at)) => {
            // The stream ends, and leaves the query.
            results.state = StreamState::Over;
            Err(no_key(&parts[at]))
        }
    }
}

fn change((new, update): (LiveRows, &PartUpdate)) -> Change {
    match update {
        PartUpdate::Full => Change::Full(new),
        PartUpdate::Difference(old, difference) => {
            Change::Rows(RowChanges { old: old.clone(), new, difference: difference.clone() })
        }
    }
}

#[cold]
fn no_key(result: &LiveRows) -> Error {
    let error =
        Error::new(ErrorCode::NoRowKey, "the rows of this result have no key, so there are no changes of single rows");
    let hint = match &*result.keys.listed() {
        "" => "read a table that has a primary key, and select it".into(),
        keys => format!("select the primary key as it is, and group by it in an aggregate: {keys}"),
    };
    result.explain(error.with_hint(hint).in_operation("live"))
}

#[cold]
fn repeated(result: &LiveRows, key: &[usize]) -> Error {
    let names: Vec<&str> = key.iter().map(|column| &*result.names[*column]).collect();
    let error =
        Error::new(ErrorCode::NoRowKey, format!("two rows of the result have the same key ({})", names.join(", ")));
    let keys = result.keys.listed();
    let hint = format!("select the key of each table of a join: {keys}; the rowid, if a primary key has NULLs");
    result.explain(error.with_hint(hint).in_operation("live"))
}
