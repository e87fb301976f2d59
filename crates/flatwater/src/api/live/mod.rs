//! The caller's side of a live query: its results, as a `Stream`.
//!
//! Owns: when a result that is there is due. Runs on the thread that polls it, and never blocks there. Invariants: a
//! stream yields the newest result, and none twice; a dropped stream leaves its query. Leaves out: running the query
//! (`workers::live`), the differences of results (`row_changes`), what a stream yields (`forms`).

pub(crate) mod forms;
pub(crate) mod row_changes;

use std::future::poll_fn;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use futures_core::Stream;

use forms::Form;

use crate::api::database::Database;
use crate::api::session::Session;
use crate::api::statement::Statement;
use crate::connection::learn::live_query::{LivePart, LiveQuery};
use crate::engine::caller::Caller;
use crate::queue::reply::wake;
use crate::workers::live::Subscription;
use crate::workers::live::diff::{Delivery, Update};
use crate::workers::live::subscriber::Item;
use flatwater_base::error::{Error, ErrorCode, Result};
use flatwater_base::inline::budget::Pause;
use flatwater_base::time::later;
use flatwater_base::time::timer::Deadline;
use flatwater_base::values::{IntoParams, Rows};
use flatwater_sql::dependencies::tables::PrimaryKeys;

/// What a live query yields: a [`Stream`] of `Result<T>`, made by [`Database::live`], which yields results, by
/// [`Database::live_group`], which yields those of several queries, and by [`changes`](Self::changes), which yields the
/// [`Change`](crate::live::Change)s of either. [`next`](Self::next) needs no other crate.
///
/// The first result comes as soon as it is computed, and another one whenever a commit has changed it. A stream that is
/// not polled keeps the newest result only, so a slow consumer skips results and uses the memory of one. A stream of
/// changes also keeps the result that it yielded last, and merges several changes into one.
///
/// An error is an item: after an error of SQLite, such as a table that was dropped, the query runs again after each
/// commit, and the stream continues when it succeeds. A stream ends when the database is closed, and after an error of
/// the call itself, such as wrong parameters.
#[must_use = "a live query begins when it is polled"]
pub struct Live<T = LiveRows> {
    results: Results,
    pause: Pause,
    /// Makes an item of what was taken.
    item: fn(&mut Results, Taken) -> Result<T>,
}

/// The results of all statements of a live query.
pub(crate) struct Results {
    state: StreamState,
    pace: Pace,
    gets_differences: bool,
    /// A result that was taken and is yet to be yielded.
    unread: Option<LiveRows>,
    /// Dropped last: it may be the last handle to the database.
    caller: Caller,
}

enum StreamState {
    Begins(Option<Result<Arc<LiveQuery>>>),
    Open(Subscription),
    Over,
}

/// How often results are yielded.
#[derive(Default)]
struct Pace {
    debounce: Duration,
    throttle: Duration,
    /// When the last result was yielded.
    yielded: Option<Instant>,
    /// Wakes the task when the result that is there is due.
    alarm: Deadline,
}

/// The results of all statements, and what is told of them.
type Taken = (Vec<LiveRows>, Update);

/// One result of a live query: its rows, as [`Rows`], and the number of a commit.
#[derive(Debug, Clone)]
pub struct LiveRows {
    pub(crate) rows: Arc<Rows>,
    /// The keys of the tables that the query read.
    pub(crate) keys: Arc<PrimaryKeys>,
    commit: u64,
}

impl LiveRows {
    /// The number of the newest commit that the result is known to include. The commits of this database in this
    /// process are counted from its first live query on; a commit of another process counts when this process detects
    /// it.
    #[must_use]
    pub fn commit(&self) -> u64 {
        self.commit
    }

    /// The rows, detached from the number.
    #[must_use]
    pub fn into_rows(self) -> Rows {
        Arc::unwrap_or_clone(self.rows)
    }
}

impl Deref for LiveRows {
    type Target = Rows;

    fn deref(&self) -> &Rows {
        &self.rows
    }
}

impl Database {
    /// Runs a query, and again whenever its result changed, whether another task, a trigger, a migration or another
    /// process changed it. The query begins with the first poll.
    ///
    /// Callers with equal SQL and parameters share one run. A query that cannot be affected by a commit does not run
    /// again, and a result that equals the one before is not yielded.
    ///
    /// ```no_run
    /// # async fn example(db: flatwater::Database) -> flatwater::Result<()> {
    /// let mut open = db.live("SELECT id, title FROM todos WHERE done = ? ORDER BY id", (false,));
    /// while let Some(todos) = open.next().await {
    ///     let todos: Vec<(i64, String)> = todos?.read()?;
    ///     println!("{todos:?}");
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// While a live query exists, Flatwater checks every 20 ms for commits of programs that do not use it. The order of
    /// rows without ORDER BY is SQLite's choice, and may differ from one result to the next.
    pub fn live(&self, sql: impl Statement, params: impl IntoParams) -> Live {
        live_of(&self.session, sql, params)
    }
}

/// Makes a live query.
pub fn live_of(session: &Session, sql: impl Statement, params: impl IntoParams) -> Live {
    let part = session.live_part(&sql, params);
    Live::of(Results::new(session, part.map(|part| Box::from([part]))), |_, (parts, _)| LiveRows::of_parts(parts))
}

impl Session {
    fn live_part(&self, sql: &impl Statement, params: impl IntoParams) -> Result<LivePart> {
        self.0.bind(sql, params).map(|(text, params)| LivePart { text, params })
    }
}

impl<T> Live<T> {
    fn of(results: Results, item: fn(&mut Results, Taken) -> Result<T>) -> Self {
        Self { results, pause: Pause::default(), item }
    }

    /// Yields a result when no newer one has come for this long. If changes never pause for this long, nothing is yielded.
    pub fn debounce(mut self, quiet: Duration) -> Self {
        self.results.pace.debounce = quiet;
        self
    }

    /// Yields at most one result in this time: the newest.
    pub fn throttle(mut self, time: Duration) -> Self {
        self.results.pace.throttle = time;
        self
    }

    /// Returns the next item, or `None` when the stream is over. If the future is dropped, nothing is lost.
    ///
    /// # Errors
    /// As [`Session::query`]; `Misuse` if the statement writes, or reads a TEMP table, and in the body of a transaction on a
    /// database with one connection, where no result can come. An error of one query of a group is an error of the group. For
    /// changes also `Misuse` if the result has no key, which ends the stream; or if two rows of a result have the same key, as in a
    /// join that repeats the rows of a table: the stream yields this error once, and later the next result with unique keys in
    /// full.
    #[allow(clippy::should_implement_trait, reason = "this is the name that users of streams know")]
    pub async fn next(&mut self) -> Option<Result<T>> {
        poll_fn(|context| self.poll_in_turn(context)).await
    }

    /// The origin of what was not begun yet.
    pub(crate) fn unbegun(&mut self) -> Option<&mut Caller> {
        matches!(self.results.state, StreamState::Begins(_)).then_some(&mut self.results.caller)
    }

    fn poll_in_turn(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<T>>> {
        self.results.begin();
        let now = Instant::now();
        ready!(self.pause.poll(now, context));
        self.poll_item(now, context)
    }

    /// Polls for the next item at `now`, for a caller that gives other tasks their turn.
    pub(crate) fn poll_item(&mut self, now: Instant, context: &mut Context<'_>) -> Poll<Option<Result<T>>> {
        let taken = ready!(self.results.poll(now, context));
        Poll::Ready(taken.map(|taken| taken.and_then(|taken| (self.item)(&mut self.results, taken))))
    }
}

impl Results {
    fn new(session: &Session, parts: Result<Box<[LivePart]>>) -> Self {
        let query = parts.and_then(|parts| match &*parts {
            [] => Err(Error::new(ErrorCode::InvalidArgument, "a live query needs a statement")),
            _ => Ok(Arc::new(LiveQuery(parts))),
        });
        let state = StreamState::Begins(Some(query));
        Self { state, pace: Pace::default(), gets_differences: false, unread: None, caller: session.0.clone() }
    }

    /// Begins the query. If that fails, the error stays where the query was.
    fn begin(&mut self) {
        if let StreamState::Begins(query @ Some(Ok(_))) = &mut self.state
            && let Some(begins) = query.take()
        {
            match begins.and_then(|query| self.caller.subscribe(query, self.gets_differences)) {
                Ok(subscription) => self.state = StreamState::Open(subscription),
                Err(error) => *query = Some(Err(error)),
            }
        }
    }

    /// Takes the next results of all statements, with what is told of them.
    fn poll(&mut self, now: Instant, context: &mut Context<'_>) -> Poll<Option<Result<Taken>>> {
        if let Some(unread) = self.unread.take() {
            return Poll::Ready(Some(Ok((vec![unread], Update::All))));
        }
        self.begin();
        let taken = match &mut self.state {
            StreamState::Over => return Poll::Ready(None),
            StreamState::Open(subscription) => match self.pace.poll(subscription, now, context) {
                Poll::Ready(taken) => taken,
                // A result that is there may wait for its time.
                Poll::Pending if self.pace.holds_back() => return Poll::Pending,
                Poll::Pending => match self.caller.refuse_in_body() {
                    Ok(()) => return Poll::Pending,
                    Err(error) => return Poll::Ready(Some(Err(error.in_operation("live")))),
                },
            },
            StreamState::Begins(failed) => {
                let error = failed.take().and_then(Result::err).unwrap_or_else(Error::closed);
                self.state = StreamState::Over;
                return Poll::Ready(Some(Err(error.in_operation("live"))));
            }
        };
        let Some(Item { delivery, update, .. }) = taken else {
            self.state = StreamState::Over;
            return Poll::Ready(None);
        };
        let Delivery { result, keys, commit, .. } = delivery;
        let part =
            |(rows, keys): (&Arc<Rows>, &Arc<PrimaryKeys>)| LiveRows { rows: rows.clone(), keys: keys.clone(), commit };
        let parts = result.map(|parts| (parts.iter().zip(&*keys).map(part).collect(), update));
        Poll::Ready(Some(parts.map_err(|error| error.in_operation("live"))))
    }

    /// Makes it begin anew, with differences.
    fn with_differences(mut self) -> Self {
        if let StreamState::Open(subscription) = &self.state {
            self.state = StreamState::Begins(Some(Ok(subscription.query.clone())));
        }
        (self.gets_differences, self.unread) = (true, None);
        self
    }
}

impl Pace {
    fn holds_back(&self) -> bool {
        !(self.debounce.is_zero() && self.throttle.is_zero())
    }

    /// Takes the result if it is due, and sets the alarm if it is there and not due yet.
    fn poll(&mut self, subscription: &Subscription, now: Instant, context: &mut Context<'_>) -> Poll<Option<Item>> {
        let mut due_at = None;
        let polled = subscription.place.poll(context, |delivery| {
            let quiet = later(delivery.at, self.debounce);
            let due = self.yielded.map_or(quiet, |yielded| quiet.max(later(yielded, self.throttle)));
            due_at = (due > now).then_some(due);
            due_at.is_none()
        });
        if let Poll::Ready(Some(_)) = &polled {
            self.yielded = Some(now);
            self.alarm.clear();
        }
        if let Some(due) = due_at {
            self.alarm.set(due, &subscription.place, |place| wake(place.nudge()));
        }
        polled
    }
}

impl<T> Stream for Live<T> {
    type Item = Result<T>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<T>>> {
        self.get_mut().poll_in_turn(context)
    }
}

opaque!(Live<T>);
