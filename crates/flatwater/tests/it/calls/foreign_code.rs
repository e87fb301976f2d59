//! Foreign code: wakers that panic, captured values that panic when they are dropped, unusual executors, callers that
//! drop calls at any moment. The next caller is served in all cases.
//!
//! Leaves out: closures that change their connection (`hostile_closures`).

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use flatwater::calls::TimeoutEffect;
use flatwater::options::Inline;
use flatwater::{Database, Error, ErrorKind, params};
use futures_util::FutureExt;
use futures_util::future::join_all;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::place::{Place, in_both_places};
use crate::support::{ENDLESS, TestFile, count, empty_table, run, until};

in_both_places!(
    a_waker_that_panics_costs_nobody_else,
    a_waker_that_panics_while_others_wait_for_a_place_or_share_its_commit_costs_none_of_them,
    a_closure_whose_value_panics_after_it_ran_fails_and_keeps_nothing,
    a_result_that_panics_where_it_is_dropped_costs_no_connection,
    the_waker_of_the_last_poll_is_the_one_that_is_called,
    a_call_that_is_polled_after_its_answer_answers_an_error,
    ten_thousand_calls_with_deadlines_of_microseconds_on_a_full_queue_all_end,
    callers_that_leave_at_any_moment_lose_nothing_that_was_acknowledged,
    a_value_that_panics_while_its_caller_waits_for_a_place_panics_in_the_callers_hands,
);

const INSERT: &str = "INSERT INTO t VALUES (?)";

/// Checks that every kind of call completes.
async fn is_served(db: &Database) {
    let before = count(db).await;
    db.execute(INSERT, (0,)).await.unwrap();
    db.write_with(|tx| tx.execute("INSERT INTO t VALUES (0)", []).map_err(Error::from)).await.unwrap();
    let tx = db.begin().await.unwrap();
    tx.execute(INSERT, (0,)).await.unwrap();
    tx.commit().await.unwrap();
    let counted = db.read_with(|c| c.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).map_err(Error::from));
    assert_eq!(counted.await, Ok(before + 3));
    let stats = db.stats();
    assert_eq!((stats.writes_waiting, stats.reads_waiting), (0, 0));
}

/// Counts its calls, and panics afterwards if requested. The panic prints nothing.
struct Noted {
    calls: AtomicUsize,
    panics: bool,
}

impl Noted {
    fn new(panics: bool) -> (Arc<Self>, Waker) {
        let noted = Arc::new(Self { calls: AtomicUsize::new(0), panics });
        (noted.clone(), noted.into())
    }

    fn was_called(&self) -> bool {
        self.calls.load(Ordering::SeqCst) > 0
    }
}

impl Wake for Noted {
    fn wake(self: Arc<Self>) {
        self.calls.fetch_add(1, Ordering::SeqCst);
        if self.panics {
            resume_unwind(Box::new("a waker's panic"));
        }
    }
}

/// Polls with a waker that panics, until the waker was called: a call that completes at once calls no waker, and is
/// repeated. The poll itself calls it if other tasks are to have their turn. Returns the result of the call.
async fn with_bad_waker<F: Future + Unpin>(make: impl AsyncFn() -> F) -> F::Output {
    loop {
        let mut call = make().await;
        let (noted, waker) = Noted::new(true);
        if call.poll_unpin(&mut Context::from_waker(&waker)).is_pending() {
            until(|| noted.was_called()).await;
            return call.await;
        }
    }
}

async fn a_waker_that_panics_costs_nobody_else(place: &Place) {
    // A call that is answered on its caller's thread wakes nobody.
    let db = empty_table(place.options().readers(1).tuning(|t| t.inline(Inline::Never))).await;
    with_bad_waker(async || db.execute(INSERT, (1,))).await.unwrap();
    is_served(&db).await;
    with_bad_waker(async || db.query("SELECT 1", ())).await.unwrap();
    is_served(&db).await;
    with_bad_waker(async || Box::pin(db.begin())).await.unwrap().rollback().await.unwrap();
    is_served(&db).await;
    let error = with_bad_waker(async || db.execute("nonsense", ())).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Sql);
    let closure = async || Box::pin(db.write_with(|_| Ok::<_, Error>(())));
    with_bad_waker(closure).await.unwrap();
    is_served(&db).await;
    let tx = db.begin().await.unwrap();
    with_bad_waker(async || tx.query("SELECT 1", ())).await.unwrap();
    tx.execute(INSERT, (1,)).await.unwrap();
    // The timer's thread wakes this one.
    let hasty = db.with_timeout(Duration::from_millis(5));
    let late = with_bad_waker(async || hasty.execute(INSERT, (1,))).await;
    assert_eq!(late.unwrap_err().kind(), ErrorKind::Timeout);
    tx.commit().await.unwrap();
    is_served(&db).await;
    // An open transaction keeps the close waiting.
    let tx = db.begin().await.unwrap();
    let (noted, waker) = Noted::new(true);
    let (mut first, second) = (Box::pin(db.close()), db.close());
    assert!(first.poll_unpin(&mut Context::from_waker(&waker)).is_pending());
    tx.commit().await.unwrap();
    second.await.unwrap();
    until(|| noted.was_called()).await;
    first.await.unwrap();
}

async fn a_waker_that_panics_while_others_wait_for_a_place_or_share_its_commit_costs_none_of_them(place: &Place) {
    let db = empty_table(place.options().tuning(|t| t.queue(4))).await;
    db.execute(INSERT, (0,)).await.unwrap();
    let tx = db.begin().await.unwrap();
    let mut calls: Vec<_> = (1..=30).map(|n| db.execute(INSERT, (n,))).collect();
    let wakers: Vec<_> = (1..=30).map(|n| Noted::new(n % 3 == 0)).collect();
    for (call, (_, waker)) in calls.iter_mut().zip(&wakers) {
        assert!(call.poll_unpin(&mut Context::from_waker(waker)).is_pending());
    }
    assert_eq!(db.stats().writes_waiting, 4);
    tx.commit().await.unwrap();
    // The first are in the queue; the others are woken to take a place in it.
    until(|| wakers[..4].iter().all(|(noted, _)| noted.was_called())).await;
    for (rowid, inserted) in (2..).zip(join_all(calls).await) {
        assert_eq!(inserted.unwrap().last_insert_rowid, Some(rowid));
    }
    is_served(&db).await;
}

/// Panics when it is dropped, and prints nothing.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        resume_unwind(Box::new("a value's panic"));
    }
}

/// Holds the only reader for closures until it is told to continue.
async fn keep_the_reader(db: &Database) -> (mpsc::Sender<()>, tokio::task::JoinHandle<Result<(), Error>>) {
    let (go_on, wait) = mpsc::channel();
    let (begins, begun) = mpsc::channel();
    let read = db.clone();
    let task = tokio::spawn(async move {
        read.read_with(move |_| {
            begins.send(()).unwrap();
            let _ = wait.recv();
            Ok(())
        })
        .await
    });
    while begun.try_recv().is_err() {
        tokio::task::yield_now().await;
    }
    (go_on, task)
}

#[test]
fn a_waiting_closure_whose_value_panics_where_it_is_dropped_costs_no_connection() {
    let file = TestFile::new();
    run(async {
        let db = empty_table(file.options().tuning(|t| t.extra_readers(1).queue(3))).await;
        for _ in 0..3 {
            let (go_on, task) = keep_the_reader(&db).await;
            let tx = db.begin().await.unwrap();
            let (in_read, in_write) = (Bomb, Bomb);
            let mut read = Box::pin(db.read_with(move |_| {
                let _ = &in_read;
                Ok::<_, Error>(())
            }));
            let mut write = Box::pin(db.write_with(move |_| {
                let _ = &in_write;
                Ok::<_, Error>(())
            }));
            assert!(futures_util::poll!(read.as_mut()).is_pending());
            assert!(futures_util::poll!(write.as_mut()).is_pending());
            drop((read, write));
            let mut next_read = Box::pin(db.read_with(|c| Ok::<_, Error>(c.is_autocommit())));
            let mut next_write = db.execute(INSERT, (1,));
            assert!(futures_util::poll!(&mut next_read).is_pending());
            assert!(futures_util::poll!(&mut next_write).is_pending());
            go_on.send(()).unwrap();
            tx.commit().await.unwrap();
            task.await.unwrap().unwrap();
            assert!(!next_read.await.unwrap());
            assert_eq!(next_write.await.unwrap().changes, 1);
            is_served(&db).await;
        }
    });
}

async fn a_closure_whose_value_panics_after_it_ran_fails_and_keeps_nothing(place: &Place) {
    let db = empty_table(place.options().readers(1)).await;
    let (in_read, in_write) = (Bomb, Bomb);
    let read = db.read_with(move |_| {
        let _ = &in_read;
        Ok::<_, Error>(())
    });
    let read = read.await.unwrap_err();
    let wrote = db.write_with(move |tx| {
        let _ = &in_write;
        tx.execute("INSERT INTO t VALUES (1)", []).map_err(Error::from)
    });
    let wrote = wrote.await.unwrap_err();
    assert_eq!([read.kind(), wrote.kind()], [ErrorKind::Misuse; 2], "{read} {wrote}");
    assert_eq!(count(&db).await, 0);
    is_served(&db).await;
    db.close().await.unwrap();
}

async fn a_result_that_panics_where_it_is_dropped_costs_no_connection(place: &Place) {
    let db = empty_table(place.options().readers(1)).await;
    for on_writer in [true, false] {
        let (go_on, wait) = mpsc::channel::<()>();
        let (begins, begun) = mpsc::channel::<()>();
        let body = move || {
            begins.send(()).unwrap();
            let _ = wait.recv();
            Ok::<_, Error>(Bomb)
        };
        type Waiting = Pin<Box<dyn Future<Output = Result<Bomb, Error>> + Send>>;
        let mut call: Waiting = if on_writer {
            let db = db.clone();
            Box::pin(async move { db.write_with(move |_| body()).await })
        } else {
            let db = db.clone();
            Box::pin(async move { db.read_with(move |_| body()).await })
        };
        assert!(futures_util::poll!(call.as_mut()).is_pending());
        let mut has_begun = false;
        until_true(|| {
            has_begun |= begun.try_recv().is_ok();
            has_begun
        })
        .await;
        drop(call);
        go_on.send(()).unwrap();
        is_served(&db).await;
    }
    db.close().await.unwrap();
}

async fn until_true(mut condition: impl FnMut() -> bool) {
    while !condition() {
        tokio::task::yield_now().await;
    }
}

async fn the_waker_of_the_last_poll_is_the_one_that_is_called(place: &Place) {
    let db = empty_table(place.options().tuning(|t| t.queue(1))).await;
    let tx = db.begin().await.unwrap();
    // One waits in the queue, the other for a place in it.
    let mut calls = [db.execute(INSERT, (1,)), db.execute(INSERT, (2,))];
    let mut last = Vec::new();
    for _ in 0..200 {
        last.clear();
        for call in &mut calls {
            let (noted, waker) = Noted::new(false);
            assert!(call.poll_unpin(&mut Context::from_waker(&waker)).is_pending());
            last.push(noted);
        }
    }
    tx.commit().await.unwrap();
    until(|| last.iter().all(|noted| noted.was_called())).await;
    for (rowid, inserted) in (1..).zip(join_all(calls).await) {
        assert_eq!(inserted.unwrap().last_insert_rowid, Some(rowid));
    }
}

/// Checks that a completed call returns an error when it is polled again.
async fn is_refused_again<F: Future<Output = Result<T, Error>> + Unpin, T: std::fmt::Debug>(mut call: F) {
    let _ = (&mut call).await;
    for _ in 0..3 {
        let error = (&mut call).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
    }
}

async fn a_call_that_is_polled_after_its_answer_answers_an_error(place: &Place) {
    let db = empty_table(place.options()).await;
    is_refused_again(db.execute(INSERT, (1,))).await;
    is_refused_again(db.execute("nonsense", ())).await;
    is_refused_again(db.execute(INSERT, (f64::NAN,))).await;
    is_refused_again(db.execute_many(INSERT, [(1,)])).await;
    is_refused_again(db.batch([(INSERT, params![1])])).await;
    is_refused_again(db.execute_script("SELECT 1")).await;
    is_refused_again(db.query_optional("SELECT 1", ())).await;
    is_refused_again(db.query("INSERT INTO t VALUES (1) RETURNING a", ())).await;
    is_refused_again(db.with_timeout(Duration::from_millis(5)).query(ENDLESS, ())).await;
    let tx = db.begin().await.unwrap();
    is_refused_again(tx.execute(INSERT, (1,))).await;
    is_refused_again(db.with_timeout(Duration::from_millis(5)).execute(INSERT, (1,))).await;
    tx.commit().await.unwrap();
    assert_eq!(count(&db).await, 5);
    db.close().await.unwrap();
    is_refused_again(db.query("SELECT 1", ())).await;
}

async fn ten_thousand_calls_with_deadlines_of_microseconds_on_a_full_queue_all_end(place: &Place) {
    let db = empty_table(place.options().tuning(|t| t.queue(1))).await;
    let tx = db.begin().await.unwrap();
    let mut filler = db.execute(INSERT, (1,));
    assert!(futures_util::poll!(&mut filler).is_pending());
    for batch in 0..10 {
        // A deadline may pass at any moment of the first poll.
        let calls = (0..1000).map(|n| {
            let deadline = Duration::from_nanos((batch * 1000 + n) * 37 % 6000);
            db.with_timeout(deadline).execute(INSERT, (2,))
        });
        for result in join_all(calls).await {
            let error = result.unwrap_err();
            assert_eq!((error.kind(), error.applied()), (ErrorKind::Timeout, Some(TimeoutEffect::No)), "{error}");
        }
    }
    assert_eq!(db.stats().writes_waiting, 1);
    tx.commit().await.unwrap();
    filler.await.unwrap();
    assert_eq!(count(&db).await, 1);
    is_served(&db).await;
}

/// Runs one random operation, which writes `n`, or `n` and `-n`, or fails on purpose. Returns true if `n` was
/// acknowledged.
async fn operate(db: &Database, which: u32, n: i64) -> bool {
    let both = "INSERT INTO t VALUES (?1), (-?1)";
    match which {
        0 | 1 => db.execute(INSERT, (n,)).await.is_ok(),
        2 => db.query("INSERT INTO t VALUES (?) RETURNING a", (n,)).await.is_ok(),
        3 => db.execute_many(INSERT, [(n,), (-n,)]).await.is_ok(),
        4 => db.batch([(INSERT, params![n]), (INSERT, params![-n])]).await.is_ok(),
        5 => db.write_with(move |tx| tx.execute(both, [n]).map_err(Error::from)).await.is_ok(),
        6 => {
            let body = async |tx: &mut flatwater::Transaction<'_>| {
                tx.execute(INSERT, (n,)).await?;
                let undone = tx.transaction(async |nested| {
                    nested.execute("INSERT INTO t VALUES (0)", ()).await?;
                    nested.execute("nonsense", ()).await
                });
                assert!(undone.await.is_err());
                tx.execute(INSERT, (-n,)).await
            };
            db.transaction(body).await.is_ok()
        }
        7 => {
            let long =
                "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 5000) SELECT max(x) FROM n";
            let _ = db.query(long, ()).await;
            false
        }
        _ => {
            let read = db.read_with(|c| {
                c.query_row("SELECT count(*) FROM t", [], |row| row.get::<_, i64>(0)).map_err(Error::from)
            });
            let _ = read.await;
            false
        }
    }
}

/// Runs random operations one after the other. Each is dropped at some moment or not at all.
async fn restless(db: Database, caller: u64, acknowledged: Arc<Mutex<Vec<i64>>>) {
    let mut random = StdRng::seed_from_u64(caller);
    for n in 1..=120 {
        let n = i64::try_from(caller).unwrap() * 1000 + n;
        let hasty = db.with_timeout(Duration::from_micros(random.random_range(0..2000)));
        let used = if random.random_bool(0.3) { &hasty } else { &db };
        let mut call = Box::pin(operate(used, random.random_range(0..9), n));
        if random.random_bool(0.5) {
            let done = call.await;
            acknowledged.lock().unwrap().extend(done.then_some(n));
            continue;
        }
        for _ in 0..random.random_range(0..4) {
            if let Poll::Ready(done) = futures_util::poll!(call.as_mut()) {
                acknowledged.lock().unwrap().extend(done.then_some(n));
                break;
            }
            tokio::task::yield_now().await;
        }
    }
}

async fn callers_that_leave_at_any_moment_lose_nothing_that_was_acknowledged(place: &Place) {
    let db = empty_table(place.options().readers(2).tuning(|t| t.queue(4))).await;
    let acknowledged = Arc::new(Mutex::new(Vec::new()));
    let callers = (1..=12).map(|caller| tokio::spawn(restless(db.clone(), caller, acknowledged.clone())));
    for caller in join_all(callers).await {
        caller.unwrap();
    }
    is_served(&db).await;
    let mut acknowledged = std::mem::take(&mut *acknowledged.lock().unwrap());
    acknowledged.sort_unstable();
    assert!(acknowledged.len() > 100, "{}", acknowledged.len());
    let rows = db.query_as::<(i64,)>("SELECT a FROM t WHERE a > 0 ORDER BY a", ()).await.unwrap();
    assert!(rows.is_sorted_by(|a, b| a < b), "a write was done twice");
    let lost: Vec<_> = acknowledged.iter().filter(|n| rows.binary_search(&(**n,)).is_err()).collect();
    assert!(lost.is_empty(), "{lost:?}");
    let halves = "SELECT count(*) FROM t WHERE a < 0 AND -a NOT IN (SELECT a FROM t)";
    assert_eq!(db.query_optional_value::<i64>(halves, ()).await, Ok(Some(0)));
    db.close().await.unwrap();
}

async fn a_value_that_panics_while_its_caller_waits_for_a_place_panics_in_the_callers_hands(place: &Place) {
    let db = empty_table(place.options().tuning(|t| t.queue(1))).await;
    let tx = db.begin().await.unwrap();
    let mut filler = db.execute(INSERT, (1,));
    assert!(futures_util::poll!(&mut filler).is_pending());
    let bomb = Bomb;
    let mut write = Box::pin(db.write_with(move |_| {
        let _ = &bomb;
        Ok::<_, Error>(())
    }));
    assert!(futures_util::poll!(write.as_mut()).is_pending());
    assert!(catch_unwind(AssertUnwindSafe(|| drop(write))).is_err());
    let mut next = db.execute(INSERT, (2,));
    assert!(futures_util::poll!(&mut next).is_pending());
    tx.commit().await.unwrap();
    filler.await.unwrap();
    next.await.unwrap();
    is_served(&db).await;
}

/// Writes where it is dropped, polled and waited for.
struct Writes(Database, mpsc::Sender<Result<(), Error>>);

impl Drop for Writes {
    fn drop(&mut self) {
        let polled = self.0.execute("INSERT INTO t VALUES (1)", ()).now_or_never();
        if let Some(answer) = polled {
            self.1.send(answer.map(drop)).unwrap();
        }
        self.1.send(self.0.execute("INSERT INTO t VALUES (2)", ()).wait().map(drop)).unwrap();
    }
}

#[test]
fn drop_code_calls_the_database_while_its_thread_panics() {
    let file = TestFile::new();
    let db = run(empty_table(file.options()));
    // By then the first may run inline.
    for _ in 0..50 {
        db.execute("INSERT INTO t VALUES (1)", ()).wait().unwrap();
    }
    let (send, told) = mpsc::channel();
    let writes = Writes(db.clone(), send);
    let panics = catch_unwind(AssertUnwindSafe(move || {
        let _writes = writes;
        resume_unwind(Box::new("a panic"));
    }));
    assert!(panics.is_err());
    let told: Vec<_> = told.iter().collect();
    assert!(!told.is_empty());
    told.into_iter().for_each(Result::unwrap);
}
