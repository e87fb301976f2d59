//! The rows of a result one by one, as a `Stream`.
//!
//! Owns: the batch whose rows are being yielded. Runs on the thread that polls it, and never blocks there. Invariant: rows
//! come in the order of the result; after an error there are none. Leaves out: fetching batches (`cursor`).

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;

use crate::cursor::Cursor;
use crate::error::Result;
use crate::values::row::{FromRow, Row, Rows};

/// The rows of a query, one by one: a [`Stream`] of `Result<T>`. [`next`](Self::next) needs no other crate.
///
/// All rows are of one point in time. Dropping the stream at any point gives its reader back. See [`Cursor`] for how the
/// rows are fetched, and which errors occur.
#[must_use = "a stream begins when it is polled"]
pub struct RowStream<T = Row<'static>> {
    cursor: Cursor,
    batch: Arc<Rows>,
    /// The next row of the batch.
    next: usize,
    read: fn(&Arc<Rows>, usize) -> Result<T>,
    is_over: bool,
}

impl RowStream {
    pub(crate) fn new(cursor: Cursor) -> Self {
        Self::reading(cursor, |batch, row| Ok(Row::of_batch(batch, row)))
    }
}

impl<T: FromRow> RowStream<T> {
    pub(crate) fn typed(cursor: Cursor) -> Self {
        Self::reading(cursor, |batch, row| T::from_row(&Row::of(batch, row)))
    }
}

impl<T> RowStream<T> {
    fn reading(cursor: Cursor, read: fn(&Arc<Rows>, usize) -> Result<T>) -> Self {
        Self { cursor, batch: Arc::default(), next: 0, read, is_over: false }
    }

    /// Returns the next row, or `None` after the last. If the future is dropped, no row is lost.
    ///
    /// # Errors
    /// As [`Cursor::next_batch`]; `Misuse` if a row cannot be read as a `T`.
    #[allow(clippy::should_implement_trait, reason = "this is the name that users of streams know")]
    pub async fn next(&mut self) -> Option<Result<T>> {
        poll_fn(|context| self.poll_row(context)).await
    }

    fn poll_row(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<T>>> {
        if self.next >= self.batch.len() {
            if self.is_over {
                return Poll::Ready(None);
            }
            let Poll::Ready(fetched) = self.cursor.poll_batch(context) else { return Poll::Pending };
            match fetched {
                Ok(Some(rows)) => (self.batch, self.next) = (Arc::new(rows), 0),
                Ok(None) => return self.end(None),
                Err(error) => return self.end(Some(Err(error))),
            }
        }
        let row = (self.read)(&self.batch, self.next);
        self.next += 1;
        Poll::Ready(Some(row))
    }

    fn end(&mut self, last: Option<Result<T>>) -> Poll<Option<Result<T>>> {
        (self.batch, self.next, self.is_over) = (Arc::default(), 0, true);
        Poll::Ready(last)
    }
}

impl<T> Stream for RowStream<T> {
    type Item = Result<T>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<T>>> {
        self.get_mut().poll_row(context)
    }
}

impl<T> std::fmt::Debug for RowStream<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RowStream").finish_non_exhaustive()
    }
}
