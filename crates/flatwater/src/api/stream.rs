//! The rows of a result one by one, as a `Stream`.
//!
//! Owns: the batch whose rows are being yielded. Runs on the thread that polls it, and never blocks there. Invariant:
//! rows come in the order of the result; after an error of a fetch there are none, after one of reading a row the next
//! follows. Leaves out: fetching batches (`batches`).

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use futures_core::Stream;

use crate::api::batches::Batches;
use crate::error::location::{after_rows, at_row};
use crate::error::{Error, Result};
use crate::inline::pause::Pause;
use crate::values::from_row::{Cells, Found, FromRow};
use crate::values::row::{Row, Rows};

/// The rows of a query, one by one: a [`Stream`] of `Result<T>`. [`next`](Self::next) needs no other crate.
///
/// All rows are of one point in time. Dropping the stream at any point gives its reader back. See [`Batches`] for how
/// the rows are fetched, and which errors occur.
#[must_use = "a stream begins when it is polled"]
pub struct RowStream<T = Row<'static>> {
    batches: Batches,
    batch: Arc<Rows>,
    /// The next row of the batch.
    next: usize,
    /// The rows of the batches before.
    before: usize,
    /// The columns of `T` in the batch.
    found: Vec<Found>,
    form: Form<T>,
    pause: Pause,
    is_over: bool,
}

/// After so many rows of a batch the database is told that they are used, and other tasks get their turn if it is due.
const TOUCHES: usize = 64;

/// How a row becomes a `T`.
struct Form<T> {
    find: fn(&Rows) -> Result<Vec<Found>>,
    read: fn(&Arc<Rows>, usize, &[Found]) -> Result<T>,
}

impl RowStream {
    pub(crate) fn new(batches: Batches) -> Self {
        Self::reading(batches, Form { find: |_| Ok(Vec::new()), read: |batch, row, _| Ok(Row::of_batch(batch, row)) })
    }
}

impl<T: FromRow> RowStream<T> {
    pub(crate) fn typed(batches: Batches) -> Self {
        let read = |batch: &Arc<Rows>, row, found: &[Found]| T::from_cells(&mut Cells::of(&Row::of(batch, row), found));
        Self::reading(batches, Form { find: Rows::find::<T>, read })
    }
}

impl<T> RowStream<T> {
    fn reading(batches: Batches, form: Form<T>) -> Self {
        let (batch, pause) = (Arc::default(), Pause::default());
        Self { batches, batch, next: 0, before: 0, found: Vec::new(), form, pause, is_over: false }
    }

    /// Returns the next row, or `None` after the last. If the future is dropped, no row is lost.
    ///
    /// # Errors
    /// As [`Batches::next`]; `Misuse` if a row cannot be read as a `T`, after which the next row follows, or if the columns
    /// do not fit `T`, after which the stream ends.
    #[allow(clippy::should_implement_trait, reason = "this is the name that users of streams know")]
    pub async fn next(&mut self) -> Option<Result<T>> {
        poll_fn(|context| self.poll_row(context)).await
    }

    fn poll_row(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<T>>> {
        let is_read = self.next >= self.batch.len();
        if is_read && self.batches.unbegun().is_none() || !is_read && self.next.is_multiple_of(TOUCHES) {
            ready!(self.pause.poll(Instant::now(), context));
        }
        if is_read {
            if self.is_over {
                return Poll::Ready(None);
            }
            let Poll::Ready(fetched) = self.batches.poll_batch(context) else { return Poll::Pending };
            match fetched {
                Ok(Some(rows)) => match (self.form.find)(&rows) {
                    Ok(found) => self.begin(rows, found),
                    Err(error) => return self.end(Some(Err(error))),
                },
                Ok(None) => return self.end(None),
                Err(error) => return self.end(Some(Err(error))),
            }
        }
        let row = (self.form.read)(&self.batch, self.next, &self.found);
        self.next += 1;
        if self.next.is_multiple_of(TOUCHES) {
            self.batches.touch();
        }
        let explain = |error: Error| self.batch.explain(after_rows(at_row(error, self.next - 1), self.before));
        Poll::Ready(Some(row.map_err(explain)))
    }

    fn begin(&mut self, rows: Rows, found: Vec<Found>) {
        self.before += self.batch.len();
        (self.batch, self.next, self.found) = (Arc::new(rows), 0, found);
    }

    fn end(&mut self, last: Option<Result<T>>) -> Poll<Option<Result<T>>> {
        (self.batch, self.next, self.is_over) = (Arc::default(), 0, true);
        self.batches.give_up();
        Poll::Ready(last)
    }
}

impl<T> Stream for RowStream<T> {
    type Item = Result<T>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<T>>> {
        self.get_mut().poll_row(context)
    }
}

opaque!(RowStream<T>);
