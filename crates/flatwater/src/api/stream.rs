//! A result that is fetched in batches, and its rows one by one, as a `Stream`.
//!
//! Owns: the fetches, one of which is under way while the caller uses the batch before, and the batch whose rows are being yielded. Runs
//! on the thread that polls it, and never blocks there. Invariants: at most two batches are in memory; a dropped future of `next`
//! loses no rows; what is dropped gives its reader back; rows come in the order of the result; after an error of a fetch there are
//! none, after one of reading a row the next follows. Leaves out: fetching, which the readers do.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use futures_core::Stream;

use crate::api::call::Call;
use crate::api::report::{Collection, is_heard};
use crate::engine::caller::Caller;
use crate::workers::kept::CursorGuard;
use crate::workers::work::{self, Work};
use flatwater_base::error::location::{after_rows, at_row};
use flatwater_base::error::{Error, ErrorCode, Result};
use flatwater_base::inline::budget::Pause;
use flatwater_base::values::from_row::{Cells, Found};
use flatwater_base::values::{FromRow, Row, Rows};

/// A part of a result: its rows; who holds the rest, in the first part, if a reader does; and whether there is more.
type Batch = (Rows, Option<CursorGuard>, bool);

/// The next part of a result.
enum Next {
    /// It is under way, or was not begun yet.
    Fetching(Call<Batch>),
    Fetched(Result<Batch>),
    Nothing,
    /// A panic, such as that of a waker, ended a poll: what was under way is lost.
    Lost,
}

/// A result that is fetched in batches, from one point in time, in bounded memory.
/// [`Session::stream`](crate::Session::stream) yields its
/// rows one by one.
///
/// The query begins when it is first polled. It holds a reader until the last batch was fetched, the result is dropped,
/// or no batch was fetched for [`Tuning::stream_idle`](crate::options::Tuning::stream_idle).
#[must_use = "the query begins when the first batch is fetched"]
pub struct Batches {
    next: Next,
    rest: Option<CursorGuard>,
    /// The last part, if it had no rows: what is known of a result without any.
    pub(crate) empty: Option<Rows>,
    pause: Pause,
    /// Present until all is fetched, if someone listens. Dropped after what is reported into it.
    collection: Option<Arc<Collection>>,
    /// Dropped last: it may be the last handle to the database.
    caller: Caller,
}

impl Batches {
    pub(crate) fn new(caller: &Caller, operation: &'static str, work: Result<Work>) -> Self {
        let collection = is_heard(caller).then(Arc::default);
        let first = fetch(caller, operation, work, &collection);
        Self {
            caller: caller.clone(),
            next: Next::Fetching(first),
            rest: None,
            empty: None,
            pause: Pause::default(),
            collection,
        }
    }

    /// Returns the next rows, at least one, or `None` after the last. The first batch has at most 1,024 rows, and a
    /// later one at most 32,768 values or about 256 KiB of texts and blobs. The next batch is fetched meanwhile.
    ///
    /// If the future is dropped, no rows are lost: the next call continues.
    ///
    /// # Errors
    /// As [`Session::query`](crate::Session::query); `Expired` if no batch was fetched for
    /// [`Tuning::stream_idle`](crate::options::Tuning::stream_idle); `SnapshotTooOld` after
    /// [`Tuning::read_limit`](crate::options::Tuning::read_limit). After an error there are no more rows.
    #[doc(alias = "next_batch")]
    #[allow(clippy::should_implement_trait, reason = "this is the name that users of streams know")]
    pub async fn next(&mut self) -> Option<Result<Rows>> {
        let next = poll_fn(|context| {
            // The first poll begins the query; its call counts itself.
            if self.unbegun().is_none() {
                ready!(self.pause.poll(Instant::now(), context));
            }
            self.poll_batch(context)
        });
        next.await.transpose()
    }

    /// Polls for the next batch, for a caller that gives other tasks their turn.
    pub(crate) fn poll_batch(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Rows>>> {
        loop {
            let fetched = match std::mem::replace(&mut self.next, Next::Lost) {
                Next::Nothing => {
                    self.next = Next::Nothing;
                    return Poll::Ready(Ok(None));
                }
                Next::Lost => {
                    self.give_up();
                    return Poll::Ready(Err(Error::new(
                        ErrorCode::Panicked,
                        "a poll of the result panicked, and its rows are lost",
                    )));
                }
                Next::Fetched(fetched) => fetched,
                Next::Fetching(mut call) => match Pin::new(&mut call).poll(context) {
                    Poll::Ready(fetched) => fetched,
                    Poll::Pending => {
                        self.next = Next::Fetching(call);
                        return Poll::Pending;
                    }
                },
            };
            self.next = Next::Nothing;
            let before = self.rest.take();
            let (rows, rest, has_more) = match fetched {
                Ok(batch) => batch,
                Err(error) => {
                    // The reader is free before the listener is told.
                    drop(before);
                    self.collection = None;
                    return Poll::Ready(Err(error));
                }
            };
            self.rest = rest.or(before).filter(|_| has_more);
            self.fetch_on(context);
            if matches!(self.next, Next::Nothing) {
                self.collection = None;
            }
            if !rows.is_empty() {
                return Poll::Ready(Ok(Some(rows)));
            }
            self.empty = Some(rows);
        }
    }

    /// The origin of what was not begun yet.
    pub(crate) fn unbegun(&mut self) -> Option<&mut Caller> {
        if let Next::Fetching(first) = &mut self.next { first.pending.unbegun() } else { None }
    }

    /// The queue in which what was not begun yet takes its place.
    pub(crate) fn line(&mut self) -> Option<usize> {
        if let Next::Fetching(first) = &mut self.next { first.pending.line() } else { None }
    }

    /// True if nothing is left to fetch.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.next, Next::Nothing)
    }

    /// Gives the reader back.
    pub(crate) fn give_up(&mut self) {
        self.next = Next::Nothing;
        self.rest = None;
        self.collection = None;
    }

    /// The caller uses rows that were fetched before.
    pub(crate) fn touch(&self) {
        if let Some(rest) = &self.rest {
            rest.at.touch();
        }
    }

    /// Begins to fetch the next batch, if there may be one. Its first poll sends the request.
    fn fetch_on(&mut self, context: &mut Context<'_>) {
        let Some(rest) = &self.rest else { return };
        let caller = Caller { kept: Some(rest.at.clone()), ..self.caller.clone() };
        let mut call = fetch(&caller, "fetch", Ok(work::fetch(rest.number)), &self.collection);
        self.next = match Pin::new(&mut call).poll(context) {
            Poll::Ready(fetched) => Next::Fetched(fetched),
            Poll::Pending => Next::Fetching(call),
        };
    }
}

/// Fetches a part, and reports it into the collection.
fn fetch(caller: &Caller, operation: &'static str, work: Result<Work>, into: &Option<Arc<Collection>>) -> Call<Batch> {
    let mut call = Call::new(caller.clone(), operation, work, |answer, _| answer.batch_of_rows());
    call.pending.collection = into.clone();
    call
}

opaque!(Batches);

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
    find: Find,
    read: Read<T>,
    pause: Pause,
    is_over: bool,
}

/// After so many rows of a batch the database is told that they are used, and other tasks get their turn if it is due.
const TOUCHES: usize = 64;

/// How the columns of a `T` are found, and how a row becomes one.
type Find = fn(&Rows) -> Result<Vec<Found>>;
type Read<T> = fn(&Arc<Rows>, usize, &[Found]) -> Result<T>;

impl RowStream {
    pub(crate) fn new(batches: Batches) -> Self {
        Self::reading(batches, |_| Ok(Vec::new()), |batch, row, _| Ok(Row::of_batch(batch, row)))
    }
}

impl<T: FromRow> RowStream<T> {
    pub(crate) fn typed(batches: Batches) -> Self {
        let read = |batch: &Arc<Rows>, row, found: &[Found]| T::from_cells(&mut Cells::of(&Row::of(batch, row), found));
        Self::reading(batches, Rows::find::<T>, read)
    }
}

impl<T> RowStream<T> {
    pub(crate) fn reading(batches: Batches, find: Find, read: Read<T>) -> Self {
        let (batch, pause) = (Arc::default(), Pause::default());
        Self { batches, batch, next: 0, before: 0, found: Vec::new(), find, read, pause, is_over: false }
    }

    /// Returns the next row, or `None` after the last. If the future is dropped, no row is lost.
    ///
    /// # Errors
    /// As [`Batches::next`]; `Decode` if a row cannot be read as a `T`, after which the next row follows; `Misuse` if the columns
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
                Ok(Some(rows)) => match (self.find)(&rows) {
                    Ok(found) => self.begin(rows, found),
                    Err(error) => return self.end(Some(Err(error))),
                },
                Ok(None) => return self.end(None),
                Err(error) => return self.end(Some(Err(error))),
            }
        }
        let row = (self.read)(&self.batch, self.next, &self.found);
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
