//! The turns of other tasks: a loop over results that are there at once lets them run, whatever the results are of.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, Wake};
use std::thread::{self, ThreadId};

use flatwater::{Database, ErrorKind, Options};
use futures_util::future::{maybe_done, select};
use futures_util::stream::{FuturesUnordered, StreamExt};

use crate::support::{TestFile, unhurried};

const FIND: &str = "SELECT a FROM t WHERE rowid = ?";
const ROWS: &str = "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n LIMIT 1000000) SELECT n FROM n";

/// Notes that it was woken by its own thread: by the poll that it was made for.
struct WokenHere(ThreadId, AtomicBool);

impl Wake for WokenHere {
    fn wake(self: Arc<Self>) {
        if thread::current().id() == self.0 {
            self.1.store(true, Ordering::Relaxed);
        }
    }
}

/// Awaits a future without ever waiting: it is polled until its result is there. Only a turn for other tasks suspends it.
async fn at_once<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    poll_fn(|context| {
        loop {
            let woken = Arc::new(WokenHere(thread::current().id(), AtomicBool::new(false)));
            match future.as_mut().poll(&mut Context::from_waker(&woken.clone().into())) {
                Poll::Ready(output) => return Poll::Ready(output),
                Poll::Pending if woken.1.load(Ordering::Relaxed) => {
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Poll::Pending => thread::yield_now(),
            }
        }
    })
    .await
}

/// Repeats a step on a runtime of one thread until another task had its turn many times.
fn lets_others_run(test: impl AsyncFnOnce(Turns)) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let turns = Turns::default();
        let counted = turns.0.clone();
        let other = tokio::spawn(async move {
            loop {
                counted.fetch_add(1, Ordering::Relaxed);
                tokio::task::yield_now().await;
            }
        });
        test(turns).await;
        other.abort();
    });
}

/// The turns of the other task.
#[derive(Default)]
struct Turns(Arc<AtomicU64>);

impl Turns {
    async fn until_many(&self, mut step: impl AsyncFnMut()) {
        let enough = self.0.load(Ordering::Relaxed) + 20;
        for _ in 0..1_000_000 {
            step().await;
            if self.0.load(Ordering::Relaxed) >= enough {
                return;
            }
        }
        panic!("the other task starves");
    }
}

/// Changes rows in another thread for as long as the test runs.
async fn while_rows_change(file: &TestFile, test: impl AsyncFnOnce(&Database)) {
    let db = file.options().open().await.unwrap();
    db.execute_script("CREATE TABLE t (id INTEGER PRIMARY KEY, a); INSERT INTO t VALUES (1, 0)").await.unwrap();
    let (is_over, writer) = (Arc::new(AtomicBool::new(false)), db.clone());
    let writes = thread::spawn({
        let is_over = is_over.clone();
        move || {
            while !is_over.load(Ordering::Relaxed) {
                writer.execute("UPDATE t SET a = a + 1", ()).wait().unwrap();
            }
        }
    });
    test(&db).await;
    is_over.store(true, Ordering::Relaxed);
    writes.join().unwrap();
}

#[test]
fn live_results_that_are_there_at_once() {
    let file = TestFile::new();
    lets_others_run(async |turns| {
        while_rows_change(&file, async |db| {
            let (mut live, mut group) = (db.live("SELECT a FROM t", ()), db.live_group([("SELECT a FROM t", ())]));
            turns.until_many(async || _ = at_once(live.next()).await.unwrap().unwrap()).await;
            turns.until_many(async || _ = at_once(live.next_as::<(i64,)>()).await.unwrap().unwrap()).await;
            turns.until_many(async || _ = at_once(StreamExt::next(&mut live)).await.unwrap().unwrap()).await;
            turns.until_many(async || _ = at_once(group.next()).await.unwrap().unwrap()).await;
        })
        .await;
    });
}

#[test]
fn changes_that_are_there_at_once() {
    let file = TestFile::new();
    lets_others_run(async |turns| {
        while_rows_change(&file, async |db| {
            let mut changes = db.live("SELECT id, a FROM t", ()).changes();
            turns.until_many(async || _ = at_once(changes.next()).await.unwrap().unwrap()).await;
        })
        .await;
    });
}

#[test]
fn two_sources_of_which_one_is_ready_each_time() {
    let file = TestFile::new();
    lets_others_run(async |turns| {
        while_rows_change(&file, async |db| {
            let mut live = db.live("SELECT a FROM t", ());
            turns
                .until_many(async || {
                    let next = pin!(live.next());
                    drop(at_once(select(next, db.query(FIND, (1,)))).await);
                })
                .await;
        })
        .await;
    });
}

#[test]
fn rows_and_batches_that_are_there_at_once() {
    let file = TestFile::new();
    lets_others_run(async |turns| {
        let db = file.options().open().await.unwrap();
        let mut rows = db.stream(ROWS, ());
        turns.until_many(async || _ = at_once(rows.next()).await.unwrap().unwrap()).await;
        turns.until_many(async || _ = at_once(StreamExt::next(&mut rows)).await.unwrap().unwrap()).await;
        let mut batches = db.batches(ROWS, ());
        turns
            .until_many(async || {
                if at_once(batches.next()).await.is_none() {
                    batches = db.batches(ROWS, ());
                }
            })
            .await;
    });
}

#[test]
fn problems_that_are_there_at_once_and_a_stream_that_is_over() {
    lets_others_run(async |turns| {
        let db = Options::new(":memory:").open().await.unwrap();
        db.with_connection(|c| {
            c.execute_batch(&format!(
                "CREATE TABLE t (a); INSERT INTO t SELECT NULL FROM ({ROWS}) LIMIT 9000; PRAGMA writable_schema = ON;
                 UPDATE sqlite_schema SET sql = 'CREATE TABLE t (a NOT NULL)'; PRAGMA writable_schema = RESET"
            ))
            .map_err(flatwater::Error::from)
        })
        .await
        .unwrap();
        let (mut problems, mut found) = (db.integrity_check(), 0);
        turns
            .until_many(async || match at_once(problems.next()).await {
                Some(problem) => {
                    problem.unwrap();
                    found += 1;
                }
                None => problems = db.integrity_check(),
            })
            .await;
        assert!(found > 0);
        let mut rows = db.stream("SELECT 1", ());
        turns.until_many(async || drop(at_once(rows.next()).await)).await;
        let mut batches = db.batches("SELECT 1", ());
        turns.until_many(async || drop(at_once(batches.next()).await)).await;
    });
}

#[test]
fn calls_that_fail_at_once() {
    let file = TestFile::new();
    lets_others_run(async |turns| {
        let db = file.options().open().await.unwrap();
        turns.until_many(async || _ = at_once(db.query("SELECT 1; SELECT 2", ())).await.unwrap_err()).await;
        db.close().await.unwrap();
        let closed =
            async || assert_eq!(at_once(db.execute("SELECT 1", ())).await.unwrap_err().kind(), ErrorKind::Closed);
        turns.until_many(closed).await;
    });
}

#[test]
fn calls_that_are_begun_before_the_one_before_is_awaited() {
    let file = TestFile::new();
    lets_others_run(async |turns| {
        let db = file.options().open().await.unwrap();
        let call = || Box::pin(maybe_done(db.query("SELECT 1", ()).never_inline()));
        let mut before = call();
        turns
            .until_many(async || {
                let mut next = call();
                poll_fn(|context| Poll::Ready(next.as_mut().poll(context).is_pending())).await;
                at_once(&mut before).await;
                before.as_mut().take_output().unwrap().unwrap();
                before = next;
            })
            .await;
    });
}

#[test]
fn short_calls_that_are_polled_together() {
    let file = TestFile::new();
    lets_others_run(async |turns| {
        let db = unhurried(file.options()).open().await.unwrap();
        db.execute_script("CREATE TABLE t (a); INSERT INTO t VALUES (1), (2), (3)").await.unwrap();
        while db.stats().inline.reads == 0 {
            db.query(FIND, (1,)).await.unwrap();
        }
        let mut calls: FuturesUnordered<_> = (0..3).map(|_| db.query(FIND, (1,))).collect();
        turns
            .until_many(async || {
                at_once(calls.next()).await.unwrap().unwrap();
                calls.push(db.query(FIND, (2,)));
            })
            .await;
    });
}

/// Tokio looks at its timers and sockets, and at tasks that other threads have woken, only after many polls of what is ready.
#[test]
fn a_task_that_never_waits_is_polled_many_times_for_each_share_of_the_thread() {
    const MOST: u32 = 16;
    let file = TestFile::new();
    lets_others_run(async |_| {
        let db = file.options().open().await.unwrap();
        let mut rows = db.stream(ROWS, ());
        // A turn is shorter if the machine takes a millisecond for it.
        while suspensions(db.query("SELECT 1", ())).await < MOST {}
        while suspensions(rows.next()).await < MOST {}
        db.execute("CREATE TABLE t (a)", ()).await.unwrap();
        let row = |n: i32| {
            thread::yield_now();
            (n,)
        };
        while suspensions(db.execute_many("INSERT INTO t VALUES (?)", (0..10_000).map(row))).await < MOST {}
    });
}

#[test]
fn writes_run_in_the_order_of_their_first_polls_also_when_the_share_is_used_up() {
    let file = TestFile::new();
    lets_others_run(async |_| {
        let db = file.options().open().await.unwrap();
        db.execute("CREATE TABLE t (a)", ()).await.unwrap();
        // One that holds its answer back, so the share stays used up.
        let _held = loop {
            let woken = Arc::new(WokenHere(thread::current().id(), AtomicBool::new(false)));
            let mut call = Box::pin(db.query("SELECT 1", ()));
            let polled = call.as_mut().poll(&mut Context::from_waker(&woken.clone().into()));
            if polled.is_pending() && woken.1.load(Ordering::Relaxed) {
                break call;
            }
            _ = call.await;
        };
        let mut first = Box::pin(db.execute_many("INSERT INTO t VALUES (?)", [(1,), (2,)]));
        poll_fn(|context| Poll::Ready(first.as_mut().poll(context).is_pending())).await;
        db.execute("INSERT INTO t VALUES (3)", ()).await.unwrap();
        assert_eq!(first.await.unwrap(), 2);
        assert_eq!(db.query_values::<i64>("SELECT a FROM t ORDER BY rowid", ()).await.unwrap(), [1, 2, 3]);
    });
}

#[test]
fn each_of_many_tasks_that_never_wait_goes_on() {
    let file = TestFile::new();
    for tasks in [2, 3, 16, 32, 100] {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let db = file.options().open().await.unwrap();
            let counts: Vec<_> = (0..tasks).map(|_| Arc::new(AtomicU64::new(0))).collect();
            let asks = |count: &Arc<AtomicU64>| {
                let (db, count) = (db.clone(), count.clone());
                tokio::spawn(async move {
                    loop {
                        db.query("SELECT 1", ()).await.unwrap();
                        count.fetch_add(1, Ordering::Relaxed);
                    }
                })
            };
            let asking: Vec<_> = counts.iter().map(asks).collect();
            // Each has a few shares of the thread, of some hundred calls.
            while counts.iter().any(|count| count.load(Ordering::Relaxed) < 300) {
                tokio::task::yield_now().await;
            }
            asking.iter().for_each(tokio::task::JoinHandle::abort);
        });
    }
}

/// Awaits a future, and returns how often it has suspended and woken its task at once.
async fn suspensions<F: Future>(future: F) -> u32 {
    let (mut future, mut number) = (pin!(future), 0);
    poll_fn(|context| {
        let woken = Arc::new(WokenHere(thread::current().id(), AtomicBool::new(false)));
        match future.as_mut().poll(&mut Context::from_waker(&woken.clone().into())) {
            Poll::Ready(_) => return Poll::Ready(()),
            Poll::Pending => number += u32::from(woken.1.load(Ordering::Relaxed)),
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
    number
}
