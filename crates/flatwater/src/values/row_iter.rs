//! Iterating over the rows of a result, by reference or owned.
//!
//! Owns: the iterator. Runs on the caller's thread. Invariant: an owned row keeps the whole result alive. Leaves out:
//! reading a row.

use std::ops::Range;
use std::sync::Arc;

use super::row::{Row, Rows, Source};

impl Rows {
    /// The rows in order.
    #[must_use]
    pub fn iter(&self) -> RowIter<'_> {
        RowIter::new(Source::Borrowed(self), self.len())
    }
}

impl<'a> IntoIterator for &'a Rows {
    type Item = Row<'a>;
    type IntoIter = RowIter<'a>;

    fn into_iter(self) -> RowIter<'a> {
        self.iter()
    }
}

/// The rows keep the whole result in memory until the last of them is dropped.
impl IntoIterator for Rows {
    type Item = Row<'static>;
    type IntoIter = RowIter<'static>;

    fn into_iter(self) -> RowIter<'static> {
        let length = self.len();
        RowIter::new(Source::Shared(Arc::new(self)), length)
    }
}

/// The rows of a result in order; made by [`Rows::iter`] and by iterating over [`Rows`].
#[derive(Debug, Clone)]
pub struct RowIter<'a> {
    rows: Source<'a>,
    left: Range<usize>,
}

impl<'a> RowIter<'a> {
    fn new(rows: Source<'a>, length: usize) -> Self {
        Self { rows, left: 0..length }
    }

    #[inline]
    fn row(&self, index: usize) -> Row<'a> {
        Row { rows: self.rows.clone(), index }
    }
}

impl<'a> Iterator for RowIter<'a> {
    type Item = Row<'a>;

    #[inline]
    fn next(&mut self) -> Option<Row<'a>> {
        self.left.next().map(|index| self.row(index))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.left.size_hint()
    }

    fn nth(&mut self, n: usize) -> Option<Row<'a>> {
        self.left.nth(n).map(|index| self.row(index))
    }
}

impl DoubleEndedIterator for RowIter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.left.next_back().map(|index| self.row(index))
    }
}

impl ExactSizeIterator for RowIter<'_> {}
impl std::iter::FusedIterator for RowIter<'_> {}
