//! Several live queries whose results are of one snapshot.
//!
//! Owns: the caller's side of the group, which is one live query of several statements. Runs on the thread that polls it.
//! Invariant: all results of one item are of one point in time. Leaves out: everything else (`live`).

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;

use crate::database::Database;
use crate::error::Result;
use crate::live::{Live, LiveRows};
use crate::live_changes::{LiveChange, poll_changes};
use crate::values::into_params::IntoParams;

/// The results of several queries, each time all of them and of one point in time: a [`Stream`] of
/// `Result<Vec<LiveRows>>`, made by [`Database::live_group`]. It behaves as a [`Live`] does.
#[must_use = "a live query begins when it is polled"]
#[derive(Debug)]
pub struct LiveGroup(Live);

impl Database {
    /// Runs several queries in one snapshot, and all of them again whenever the result of one changed. So a list and its
    /// count never disagree. Nothing begins before the first poll.
    ///
    /// ```no_run
    /// # use flatwater::params;
    /// # async fn example(db: flatwater::Database) -> flatwater::Result<()> {
    /// let mut page = db.live_group([
    ///     ("SELECT id, title FROM todos ORDER BY id LIMIT ?", params![20]),
    ///     ("SELECT count(*) FROM todos", params![]),
    /// ]);
    /// while let Some(results) = page.next().await {
    ///     let [todos, count] = &results?[..] else { unreachable!("a result for each query") };
    ///     println!("{} of {}", todos.len(), count.read::<(i64,)>()?[0].0);
    /// }
    /// # Ok(()) }
    /// ```
    pub fn live_group<'a, I, P>(&self, queries: I) -> LiveGroup
    where
        I: IntoIterator<Item = (&'a str, P)>,
        P: IntoParams,
    {
        LiveGroup(Live::new(&self.operations.0, queries.into_iter()))
    }
}

impl LiveGroup {
    /// See [`Live::debounce`].
    pub fn debounce(self, quiet: Duration) -> Self {
        Self(self.0.debounce(quiet))
    }

    /// See [`Live::throttle`].
    pub fn throttle(self, time: Duration) -> Self {
        Self(self.0.throttle(time))
    }

    /// Yields what has changed in the results, as [`Live::changes`] does: first the full result of each query, and then for
    /// each query the rows that changed, which are none in those whose result stayed the same. Each query needs a key.
    pub fn changes(self) -> LiveGroupChanges {
        LiveGroupChanges(self.0.with_differences())
    }

    /// Returns the next results, in the order of the queries, or `None` when the stream is over. If the future is
    /// dropped, none is lost.
    ///
    /// # Errors
    /// As [`Live::next`]: an error of one query is one of the group.
    #[allow(clippy::should_implement_trait, reason = "this is the name that users of streams know")]
    pub async fn next(&mut self) -> Option<Result<Vec<LiveRows>>> {
        poll_fn(|context| self.0.poll_parts(context)).await
    }
}

impl Stream for LiveGroup {
    type Item = Result<Vec<LiveRows>>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Vec<LiveRows>>>> {
        self.get_mut().0.poll_parts(context)
    }
}

/// The differences of the results of a group: a [`Stream`] of `Result<Vec<LiveChange>>`, made by [`LiveGroup::changes`].
#[must_use = "a live query begins when it is polled"]
#[derive(Debug)]
pub struct LiveGroupChanges(Live);

impl LiveGroupChanges {
    /// Returns the next changes, in the order of the queries, or `None` when the stream is over. If the future is dropped,
    /// none is lost.
    ///
    /// # Errors
    /// As [`LiveChanges::next`](crate::LiveChanges::next): an error of one query is one of the group.
    #[allow(clippy::should_implement_trait, reason = "this is the name that users of streams know")]
    pub async fn next(&mut self) -> Option<Result<Vec<LiveChange>>> {
        poll_fn(|context| poll_changes(&mut self.0, context)).await
    }
}

impl Stream for LiveGroupChanges {
    type Item = Result<Vec<LiveChange>>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Vec<LiveChange>>>> {
        poll_changes(&mut self.get_mut().0, context)
    }
}
