//! Streams of live queries that are dropped, or whose `next` is, at each of their polls: nothing is lost, and nothing is left.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;

use flatwater::live::{Change, LiveRows};
use flatwater::{Database, Result};
use futures_util::{FutureExt, Stream, StreamExt};

use super::queries::HANGS;
use crate::place::{Place, in_both_places};
use crate::support::{ENDLESS, until};

in_both_places!(
    a_next_that_is_dropped_at_any_poll_loses_no_result,
    a_stream_that_is_dropped_at_any_poll_leaves_nothing,
    a_stream_that_is_dropped_while_its_query_runs_ends_the_run,
    a_stream_that_is_dropped_with_a_result_or_a_pause_leaves_nothing,
);

const SQL: &str = "SELECT id, a FROM item ORDER BY a";

/// A stream of the number of rows of each result.
type Counts = Pin<Box<dyn Stream<Item = Result<usize>>>>;

fn count(change: &Change) -> usize {
    match change {
        Change::Full(rows) => rows.len(),
        Change::Rows(rows) => rows.result().len(),
    }
}

/// Every kind of stream of the same query.
fn kinds(db: &Database) -> [(&'static str, Counts); 5] {
    let rows = |rows: Result<LiveRows>| rows.map(|rows| rows.len());
    let group = || db.live_group([(SQL, ()), (SQL, ())]);
    [
        ("live", Box::pin(db.live(SQL, ()).map(rows))),
        ("paced", Box::pin(db.live(SQL, ()).throttle(std::time::Duration::from_millis(1)).map(rows))),
        ("changes", Box::pin(db.live(SQL, ()).changes().map(|change| change.map(|change| count(&change))))),
        ("group", Box::pin(group().map(|parts| parts.map(|parts| parts[1].len())))),
        ("changes of a group", Box::pin(group().changes().map(|parts| parts.map(|parts| count(&parts[1]))))),
    ]
}

/// Polls the future so many times and drops it: at once, or when it is woken after that.
async fn dropped_at<F: Future>(polls: usize, when_woken: bool, future: F) -> Option<F::Output> {
    let (mut future, mut done) = (pin!(future), 0);
    poll_fn(|context| {
        if done == polls {
            return Poll::Ready(None);
        }
        done += 1;
        match future.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if done == polls && !when_woken => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

async fn with_items(place: &Place) -> Database {
    let db = place.open().await;
    db.execute_script("CREATE TABLE item (id INTEGER PRIMARY KEY, a); INSERT INTO item (a) VALUES (1)").await.unwrap();
    db
}

async fn a_next_that_is_dropped_at_any_poll_loses_no_result(place: &Place) {
    let db = with_items(place).await;
    let mut rows = 1;
    for (kind, mut stream) in kinds(&db) {
        for when_woken in [false, true] {
            for polls in 0.. {
                assert!(polls < 100, "{kind} is never ready");
                let mut last = dropped_at(polls, when_woken, stream.next()).await;
                let is_done = last.is_some();
                while last.as_ref().and_then(|last| last.as_ref()?.as_ref().ok()) != Some(&rows) {
                    let next = tokio::time::timeout(HANGS, stream.next()).await;
                    last = Some(next.unwrap_or_else(|_| panic!("{kind}, dropped at {polls}: {last:?} and not {rows}")));
                }
                db.execute("INSERT INTO item (a) VALUES (1)", ()).await.unwrap();
                rows += 1;
                if is_done {
                    break;
                }
            }
        }
    }
}

async fn a_stream_that_is_dropped_at_any_poll_leaves_nothing(place: &Place) {
    let db = with_items(place).await;
    for at in 0..kinds(&db).len() {
        for when_woken in [false, true] {
            for polls in 0.. {
                let (kind, mut stream) = kinds(&db).into_iter().nth(at).unwrap();
                assert!(polls < 100, "{kind} is never ready");
                let is_done = dropped_at(polls, when_woken, stream.next()).await.is_some();
                drop(stream);
                assert_eq!(db.stats().live.subscribers, 0, "{kind}, dropped at {polls}");
                if is_done {
                    break;
                }
            }
        }
    }
    until(|| db.stats().live.queries == 0 && db.stats().live.pending == 0).await;
    for (kind, mut stream) in kinds(&db) {
        assert_eq!(stream.next().await.unwrap().unwrap(), 1, "{kind}");
    }
    db.close().await.unwrap();
}

async fn a_stream_that_is_dropped_while_its_query_runs_ends_the_run(place: &Place) {
    let db = with_items(place).await;
    for changes in [false, true] {
        let endless = db.live(ENDLESS, ());
        let mut stream: Pin<Box<dyn Stream<Item = ()>>> =
            if changes { Box::pin(endless.changes().map(drop)) } else { Box::pin(endless.map(drop)) };
        assert!(stream.next().now_or_never().is_none());
        until(|| db.stats().live.runs > u64::from(changes)).await;
        drop(stream);
        // It runs until the grace period is over.
        until(|| db.stats().live.queries == 0 && db.stats().live.pending == 0).await;
    }
    assert_eq!(kinds(&db)[0].1.next().await.unwrap().unwrap(), 1);
}

async fn a_stream_that_is_dropped_with_a_result_or_a_pause_leaves_nothing(place: &Place) {
    let db = with_items(place).await;
    let hour = std::time::Duration::from_secs(3600);
    for waits in [false, true] {
        let live = db.live(SQL, ());
        let mut stream = if waits { live.throttle(hour).changes() } else { live.changes() };
        stream.next().await.unwrap().unwrap();
        db.execute("UPDATE item SET a = a + 1", ()).await.unwrap();
        until(|| db.stats().live.pending == 0).await;
        if waits {
            assert!(stream.next().now_or_never().is_none());
        }
        drop(stream);
        assert_eq!(db.stats().live.subscribers, 0);
    }
    until(|| db.stats().live.queries == 0).await;
    db.close().await.unwrap();
}
