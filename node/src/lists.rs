//! The lists of rows that a result consists of, on their way to JavaScript: chunk after chunk, list after list.
//!
//! Owns: which rows are next, and the header of their chunk. Runs on the loop's thread. Invariants: each list has a chunk, an empty
//! one too; the rows of a change are those of its two results, so their columns are known; what was taken is given back on the
//! way. Leaves out: the form of the rows (`flatwater-bridge`), and the tokens of what is left (`host`).
//!
//! | result | its lists |
//! |---|---|
//! | rows | 0 |
//! | a batch | -1: what each statement did, `changes, rowid, kind of the rowid, whether it has rows`; then those with rows, each by its number |
//! | live results | each by its number |
//! | a change | 0 inserted, 1 as they were and 2 as they are, 3 deleted; or 4, the full result |

use std::ops::Range;
use std::sync::Arc;

use flatwater::bindings::{ChangedRows, cells, changed_rows, dispose, is_of_write, shared_rows};
use flatwater::live::{Change, LiveRows, RowChanges};
use flatwater::values::RunResult;
use flatwater::{ErrorCode, Rows, ValueRef};
use flatwater_bridge::{Flat, Refused, Text, exact, unreadable};

use crate::failure::{Failure, inexact, too_long};
use crate::reading_as::ReadAs;
use crate::schemas::Schemas;

/// Where the forms of a chunk begin: after `rows, columns, schema, token or -1, list, whether the statement writes, rows before`.
pub(crate) const HEADER: usize = 7;
/// Where the token is.
pub(crate) const TOKEN: usize = 3;

/// What each statement of a batch did, in place of rows.
const EXECUTED: f64 = -1.0;
const EXECUTED_CELLS: usize = 4;
/// So many statements are in a chunk.
const STATEMENTS: usize = 2_048;
const FULL: usize = 4;

/// So many units has the longest string of V8, and a chunk that has more is one row.
const LONGEST: usize = (1 << 29) - 24;

/// A batch of more statements is dropped on another thread.
const MANY: usize = 1_000;

/// No rowid, in place of whether it is a number (0) or an integer of 64 bits (1).
const NO_ROWID: f64 = 2.0;

/// What is left of a result.
pub(crate) struct Lists {
    of: Of,
    list: usize,
    from: usize,
}

enum Of {
    Rows(Arc<Rows>),
    Several(Vec<Arc<Rows>>),
    Change(RowChanges),
    /// `told` of the statements JavaScript knows what they did.
    /// `is_one`: it is the result of a run, which may be a read.
    Batch {
        results: Vec<RunResult>,
        told: usize,
        is_one: bool,
        is_of_write: bool,
    },
}

impl From<Arc<Rows>> for Lists {
    fn from(rows: Arc<Rows>) -> Self {
        Self { of: Of::Rows(rows), list: 0, from: 0 }
    }
}

impl From<Vec<LiveRows>> for Lists {
    fn from(results: Vec<LiveRows>) -> Self {
        Self { of: Of::Several(results.iter().map(shared_rows).collect()), list: 0, from: 0 }
    }
}

impl From<Change> for Lists {
    fn from(change: Change) -> Self {
        match change {
            Change::Full(rows) => Self { of: Of::Rows(shared_rows(&rows)), list: FULL, from: 0 },
            Change::Rows(changes) => Self { of: Of::Change(changes), list: 0, from: 0 },
        }
    }
}

impl From<Vec<RunResult>> for Lists {
    fn from(results: Vec<RunResult>) -> Self {
        Self { of: Of::Batch { results, told: 0, is_one: false, is_of_write: true }, list: 0, from: 0 }
    }
}

impl From<RunResult> for Lists {
    fn from(result: RunResult) -> Self {
        let is_of_write = result.rows.as_ref().is_none_or(is_of_write);
        Self { of: Of::Batch { results: vec![result], told: 0, is_one: true, is_of_write }, list: 0, from: 0 }
    }
}

impl Lists {
    /// Puts the next chunk into the cells, but for its token. Returns false if it has no text.
    pub(crate) fn next(
        &mut self,
        flat: &mut Flat,
        schemas: &mut Schemas,
        read_as: &ReadAs,
        cells: &mut [f64],
    ) -> Result<bool, Failure> {
        if let Some(count) = self.tell_executed(cells) {
            cells[..HEADER].copy_from_slice(&[count as f64, 0.0, 0.0, -1.0, EXECUTED, 1.0, 0.0]);
            return Ok(false);
        }
        let Some((rows, positions)) = self.current() else {
            cells[..HEADER].copy_from_slice(&[0.0, 0.0, 0.0, -1.0, EXECUTED, 0.0, 0.0]);
            return Ok(false);
        };
        let columns = rows.columns().len();
        let left = positions.len();
        let first = positions.clone().next().unwrap_or(0);
        let meanings = read_as.meanings(schemas, rows).map_err(|failure| self.of_rows(rows, failure))?;
        let encoded = match cells.get_mut(HEADER + columns..) {
            Some(room) => flat.encode(rows, positions, read_as.integers, &meanings, room),
            None => Err(Refused::Wide),
        };
        let count = encoded.map_err(|refused| self.refusal(rows, refused, read_as.before))?;
        if units(flat) > LONGEST {
            return Err(self.of_rows(rows, too_long(longest(rows, first))));
        }
        let is_write = f64::from(u8::from(is_of_write(rows)));
        let before = (read_as.before + first) as f64;
        let header = [count as f64, columns as f64, schemas.number(rows), -1.0, self.list as f64, is_write, before];
        cells[..HEADER].copy_from_slice(&header);
        for (cell, form) in cells[HEADER..].iter_mut().zip(flat.forms()) {
            *cell = f64::from(*form as u8);
        }
        self.from += count;
        if count == left {
            self.next_list();
        }
        Ok(true)
    }

    /// True if the statements, or some of them, may have written.
    pub(crate) fn is_of_write(&self) -> bool {
        match &self.of {
            Of::Rows(rows) => is_of_write(rows),
            Of::Batch { is_of_write, .. } => *is_of_write,
            Of::Several(_) | Of::Change(_) => false,
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        match &self.of {
            Of::Batch { results, told, .. } => *told == results.len() && self.current().is_none(),
            _ => self.current().is_none(),
        }
    }

    /// How many rows there are, if they are those of one result.
    pub(crate) fn rows(&self) -> usize {
        if let Of::Rows(rows) = &self.of { rows.len() } else { 0 }
    }

    /// The rows of the list, and the positions of those that are left.
    fn current(&self) -> Option<(&Rows, Positions<'_>)> {
        let all = |rows: &Rows| Positions::All(self.from..rows.len());
        match &self.of {
            Of::Rows(rows) => matches!(self.list, 0 | FULL).then(|| (&**rows, all(rows))),
            Of::Several(lists) => lists.get(self.list).map(|rows| (&**rows, all(rows))),
            Of::Batch { results, .. } => {
                results.get(self.list).and_then(|result| result.rows.as_ref()).map(|rows| (rows, all(rows)))
            }
            Of::Change(changes) => {
                let ChangedRows { old, new, inserted, updated, deleted } = changed_rows(changes);
                match self.list {
                    0 => Some((new, Positions::Some(&inserted[self.from..]))),
                    1 => Some((old, Positions::Before(&updated[self.from..]))),
                    2 => Some((new, Positions::Now(&updated[self.from..]))),
                    3 => Some((old, Positions::Some(&deleted[self.from..]))),
                    _ => None,
                }
            }
        }
    }

    fn next_list(&mut self) {
        self.from = 0;
        match &mut self.of {
            Of::Rows(_) => self.list = FULL + 1,
            Of::Several(_) | Of::Change(_) => self.list += 1,
            Of::Batch { results, .. } => {
                results[self.list].rows = None;
                self.list = with_rows(results, self.list + 1);
            }
        }
    }

    /// Puts what the next statements of a batch did into the cells, and returns their number.
    fn tell_executed(&mut self, cells: &mut [f64]) -> Option<usize> {
        let Of::Batch { results, told, .. } = &mut self.of else { return None };
        let next = results.get(*told..).filter(|next| !next.is_empty())?;
        let count = next.len().min(STATEMENTS);
        for (result, cells) in next.iter().zip(cells[HEADER..].chunks_exact_mut(EXECUTED_CELLS)).take(count) {
            let [changes, rowid, kind] = executed_numbers(result.changes, result.last_insert_rowid);
            cells.copy_from_slice(&[changes, rowid, kind, f64::from(u8::from(result.rows.is_some()))]);
        }
        *told += count;
        if *told == results.len() {
            self.list = with_rows(results, 0);
        }
        Some(count)
    }

    /// By the time that a row is refused, a statement that writes has been executed.
    fn refusal(&self, rows: &Rows, refused: Refused, before: usize) -> Failure {
        let failure = match refused {
            Refused::Inexact { column } => inexact(rows.columns().nth(column).unwrap_or_default()),
            Refused::Unreadable { row, column, meaning, why } => {
                return unreadable(rows, (row, column), before, meaning, why).into();
            }
            Refused::Wide => Failure::refused(ErrorCode::Unsupported, "the result has too many columns", None),
        };
        self.of_rows(rows, failure)
    }

    fn of_rows(&self, rows: &Rows, failure: Failure) -> Failure {
        match &self.of {
            Of::Batch { is_one: false, .. } => failure.at("statement", self.list).applied(),
            _ if is_of_write(rows) => failure.applied(),
            _ => failure,
        }
    }
}

impl Drop for Lists {
    fn drop(&mut self) {
        if let Of::Batch { results, .. } = &mut self.of
            && results.len().saturating_sub(self.list) > MANY
        {
            dispose(std::mem::take(results));
        }
    }
}

fn units(flat: &Flat) -> usize {
    match flat.text() {
        Text::Ascii(text) => text.len(),
        Text::Wide(text) => text.len(),
    }
}

/// The column of the longest text of a row.
fn longest(rows: &Rows, row: usize) -> &str {
    let length = |value: ValueRef<'_>| if let ValueRef::Text(text) = value { text.len() } else { 0 };
    let column = cells(rows, row).map(length).enumerate().max_by_key(|(_, length)| *length);
    column.and_then(|(column, _)| rows.columns().nth(column)).unwrap_or_default()
}

/// The first statement from this one on that has rows; otherwise their number.
fn with_rows(results: &[RunResult], from: usize) -> usize {
    let found = results[from..].iter().position(|result| result.rows.is_some());
    found.map_or(results.len(), |at| from + at)
}

/// The positions of rows in a result.
#[derive(Clone)]
enum Positions<'a> {
    All(Range<usize>),
    Some(&'a [usize]),
    Before(&'a [(usize, usize)]),
    Now(&'a [(usize, usize)]),
}

impl Iterator for Positions<'_> {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        match self {
            Self::All(range) => range.next(),
            Self::Some(positions) => positions.split_off_first().copied(),
            Self::Before(pairs) => pairs.split_off_first().map(|(before, _)| *before),
            Self::Now(pairs) => pairs.split_off_first().map(|(_, now)| *now),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = match self {
            Self::All(range) => range.len(),
            Self::Some(positions) => positions.len(),
            Self::Before(pairs) | Self::Now(pairs) => pairs.len(),
        };
        (left, Some(left))
    }
}

impl ExactSizeIterator for Positions<'_> {}

pub(crate) fn executed_numbers(changes: u64, last_insert_rowid: Option<i64>) -> [f64; 3] {
    let changes = changes as f64;
    match last_insert_rowid.map(|rowid| (rowid, exact(rowid))) {
        None => [changes, 0.0, NO_ROWID],
        Some((_, Some(rowid))) => [changes, rowid, 0.0],
        Some((rowid, None)) => [changes, f64::from_bits(rowid.cast_unsigned()), 1.0],
    }
}
