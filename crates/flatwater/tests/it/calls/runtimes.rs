//! The futures do not depend on a runtime: the same scenario on several, on threads without one, and with wakers of any
//! kind.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

use flatwater::calls::TimeoutEffect;
use flatwater::values::ExecuteResult;
use flatwater::{Call, Database, Error, ErrorKind, Options, Rows, Transaction, params};
use futures_util::future::join_all;

use crate::place::{Place, in_both_places};
use crate::support::{ENDLESS, TestFile, count, empty_table, integer, run, wait_until};

in_both_places!(
    a_call_can_be_moved_to_another_runtime_while_it_waits,
    polling_without_being_woken_does_no_harm,
    a_waker_that_panics_harms_nobody_else,
    a_call_from_one_of_the_databases_own_threads_is_refused,
    blocking_calls_of_many_threads_do_not_disturb_each_other,
);

/// A few operations of each kind.
async fn scenario(options: Options) {
    let db = options.open().await.unwrap();
    db.execute_script("CREATE TABLE t (id INTEGER PRIMARY KEY, a); CREATE TABLE log (a)").await.unwrap();
    let inserts = join_all((1..=200).map(|n| db.execute("INSERT INTO t (a) VALUES (?)", (n,)))).await;
    for (n, inserted) in (1..).zip(inserts) {
        let inserted = inserted.unwrap();
        assert_eq!((inserted.changes, inserted.last_insert_rowid), (1, Some(n)));
    }
    let reads = join_all((1..=50).map(|n| db.query_optional_value::<i64>("SELECT a FROM t WHERE id = ?", (n,)))).await;
    assert!((1..).zip(reads).all(|(n, read)| read.unwrap() == Some(n)));
    let kept = db.transaction(async |tx| {
        tx.execute("DELETE FROM t WHERE id > 100", ()).await?;
        let undone = tx.transaction(async |inner| inner.execute("DELETE FROM nowhere", ()).await);
        assert_eq!(undone.await.unwrap_err().kind(), ErrorKind::Sql);
        tx.query_optional_value::<i64>("SELECT count(*) FROM t", ()).await
    });
    assert_eq!(kept.await.unwrap(), Some(100));
    drop(db.begin().await.unwrap());
    db.batch([("INSERT INTO log VALUES (?)", params![1]), ("DELETE FROM t WHERE id = ?", params![1])]).await.unwrap();
    db.write_with(|tx| tx.execute("INSERT INTO log VALUES (2)", []).map_err(Error::from)).await.unwrap();
    let logged =
        db.read_with(|c| c.query_row("SELECT sum(a) FROM log", [], |row| row.get::<_, i64>(0)).map_err(Error::from));
    assert_eq!(logged.await.unwrap(), 3);
    let error = db.with_timeout(Duration::from_millis(20)).query(ENDLESS, ()).await.unwrap_err();
    assert_eq!((error.kind(), error.applied()), (ErrorKind::Timeout, Some(TimeoutEffect::No)));
    db.close().await.unwrap();
    assert_eq!(db.query("SELECT 1", ()).await.unwrap_err().kind(), ErrorKind::Closed);
}

fn everywhere(block_on: impl Fn(Pin<Box<dyn Future<Output = ()> + Send>>)) {
    let file = TestFile::new();
    block_on(Box::pin(scenario(file.options())));
    assert_eq!(integer(&file.plain(), "SELECT count(*) FROM t"), 99);
    block_on(Box::pin(scenario(Options::new(":memory:"))));
    let narrow = TestFile::new();
    block_on(Box::pin(scenario(narrow.options().readers(1).tuning(|t| t.queue(1).statement_cache(1)))));
}

#[test]
fn the_futures_run_on_a_tokio_runtime_of_many_threads() {
    everywhere(|future| run(async { tokio::spawn(future).await.unwrap() }));
}

#[test]
fn the_futures_run_on_a_tokio_runtime_of_one_thread() {
    everywhere(|future| tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future));
}

#[test]
fn the_futures_run_on_smol() {
    everywhere(|future| smol::block_on(async { smol::spawn(future).await }));
}

/// A minimal executor, which parks its thread.
struct Unpark(thread::Thread, AtomicUsize);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0.unpark();
    }
}

fn park_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let (mut polls, mut woken) = (0, 0);
    loop {
        // Another waker each time: the last one counts.
        let unpark = Arc::new(Unpark(thread::current(), AtomicUsize::new(0)));
        polls += 1;
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&unpark.clone().into())) {
            assert!(polls <= woken + 1, "it was ready without waking the one who waited");
            return output;
        }
        while unpark.1.load(Ordering::SeqCst) == 0 {
            thread::park();
        }
        woken += 1;
    }
}

#[test]
fn the_futures_wake_the_one_who_polled_last() {
    everywhere(park_on);
}

async fn a_call_can_be_moved_to_another_runtime_while_it_waits(place: &Place) {
    let db = place.open().await;
    db.execute("CREATE TABLE t (a)", ()).await.unwrap();
    for _ in 0..20 {
        let tx = db.begin().await.unwrap();
        let mut write = db.execute("INSERT INTO t VALUES (1)", ());
        assert!(futures_util::poll!(&mut write).is_pending());
        let elsewhere = thread::spawn(move || smol::block_on(write).unwrap().changes);
        tx.commit().await.unwrap();
        assert_eq!(elsewhere.join().unwrap(), 1);
    }
}

async fn polling_without_being_woken_does_no_harm(place: &Place) {
    let db = empty_table(place.options()).await;
    for n in 1..=200 {
        let mut write = db.execute("INSERT INTO t VALUES (?)", (n,));
        let inserted = loop {
            if let Poll::Ready(inserted) = Pin::new(&mut write).poll(&mut Context::from_waker(Waker::noop())) {
                break inserted.unwrap();
            }
            thread::yield_now();
        };
        assert_eq!(inserted.last_insert_rowid, Some(n));
    }
}

struct Panics(AtomicUsize);

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
        panic!("expected: a waker that panics");
    }
}

async fn a_waker_that_panics_harms_nobody_else(place: &Place) {
    let db = place.options().readers(1).open().await.unwrap();
    db.execute("CREATE TABLE t (a)", ()).await.unwrap();
    for read in [false, true] {
        let panics = Arc::new(Panics(AtomicUsize::new(0)));
        let waker = panics.clone().into();
        let mut context = Context::from_waker(&waker);
        let tx = db.begin().await.unwrap();
        let (mut write, mut slow) =
            (db.execute("INSERT INTO t VALUES (1)", ()), db.with_timeout(Duration::from_millis(20)).query(ENDLESS, ()));
        if read {
            assert!(Pin::new(&mut slow).poll(&mut context).is_pending());
        } else {
            assert!(Pin::new(&mut write).poll(&mut context).is_pending());
        }
        tx.commit().await.unwrap();
        crate::support::until(|| panics.0.load(Ordering::SeqCst) > 0).await;
        for n in 0..50 {
            db.execute("INSERT INTO t VALUES (?)", (n,)).await.unwrap();
            assert!(db.query_optional_value::<i64>("SELECT count(*) FROM t", ()).await.unwrap() > Some(n));
        }
    }
    db.close().await.unwrap();
}

/// A waker that uses the database on the thread that calls it, which is one of the database's threads.
struct Meddles(Database, std::sync::mpsc::Sender<Option<ErrorKind>>);

impl Wake for Meddles {
    fn wake(self: Arc<Self>) {
        let wrote = self.0.execute("INSERT INTO t VALUES (2)", ());
        let _ = self.1.send(wrote.wait().err().map(|error| error.kind()));
    }
}

async fn a_call_from_one_of_the_databases_own_threads_is_refused(place: &Place) {
    let db = empty_table(place.options()).await;
    let (send, receive) = std::sync::mpsc::channel();
    let meddles = Arc::new(Meddles(db.clone(), send)).into();
    let tx = db.begin().await.unwrap();
    let mut write = db.execute("INSERT INTO t VALUES (1)", ());
    assert!(Pin::new(&mut write).poll(&mut Context::from_waker(&meddles)).is_pending());
    drop(tx);
    assert_eq!(receive.recv_timeout(Duration::from_secs(90)).unwrap(), Some(ErrorKind::Misuse));
    write.await.unwrap();
    assert_eq!(count(&db).await, 1);
}

async fn blocking_calls_of_many_threads_do_not_disturb_each_other(place: &Place) {
    let db = place.open().await;
    db.execute_script("CREATE TABLE t (thread, n); CREATE TABLE sums (thread PRIMARY KEY, n)").wait().unwrap();
    thread::scope(|scope| {
        for number in 0..16_i64 {
            let db = db.clone();
            scope.spawn(move || works(&db, number));
        }
    });
    assert_eq!(db.query_optional_value::<i64>("SELECT count(*) FROM t", ()).wait().unwrap(), Some(16 * 101));
    assert_eq!(db.query_optional_value::<i64>("SELECT sum(n) FROM sums", ()).wait().unwrap(), Some(16 * 100));
    db.close().wait().unwrap();
    if let Some(file) = place.file() {
        wait_until(|| !file.beside("-wal").exists());
    }
}

/// The work of each thread. It sees its own writes.
fn works(db: &Database, number: i64) {
    db.execute("INSERT INTO sums VALUES (?, 0)", (number,)).wait().unwrap();
    for n in 1..=100_i64 {
        let inserted = db.execute("INSERT INTO t VALUES (?, ?)", (number, n)).wait().unwrap();
        let mine = "SELECT n FROM t WHERE rowid = ? AND thread = ?";
        let rowid = inserted.last_insert_rowid.unwrap();
        assert_eq!(db.query_optional_value::<i64>(mine, (rowid, number)).wait().unwrap(), Some(n));
        let added = db.write_with(move |tx| {
            tx.execute("UPDATE sums SET n = n + 1 WHERE thread = ?", [number]).map_err(Error::from)
        });
        assert_eq!(added.wait().unwrap(), 1);
        let sum = db.read_with(move |c| {
            let sql = "SELECT n FROM sums WHERE thread = ?";
            c.query_row(sql, [number], |row| row.get::<_, i64>(0)).map_err(Error::from)
        });
        assert_eq!(sum.wait().unwrap(), n);
    }
    let batch = [("INSERT INTO t VALUES (?, -1)", params![number]), ("SELECT count(*) FROM t", params![])];
    assert_eq!(db.batch(batch).wait().unwrap().len(), 2);
    assert!(db.execute("INSERT INTO nowhere VALUES (1)", ()).wait().is_err());
}

fn is_send_and_static<T: Send + 'static>(_: &T) {}
fn is_shared_and_static<T: Send + Sync + 'static>(_: &T) {}
fn is_shared<T: Send + Sync + Clone + 'static>() {}

#[test]
fn handles_are_shared_and_futures_are_sent() {
    is_shared::<Database>();
    is_shared::<Error>();
    is_shared::<Options>();
    is_shared::<Rows>();
    let file = TestFile::new();
    run(async {
        let open = file.options().open();
        is_shared_and_static(&open);
        is_shared_and_static(&Database::open(file.path()));
        let db = open.await.unwrap();
        is_shared_and_static::<Call<ExecuteResult>>(&db.execute("CREATE TABLE t (a)", ()));
        is_shared_and_static(&db.execute_many("", [()]));
        is_shared_and_static(&db.batch([("", ()); 0]));
        is_shared_and_static(&db.execute_script(""));
        is_shared_and_static(&db.query("", ()));
        is_shared_and_static(&db.query_optional("", ()));
        is_shared_and_static(&db.query_optional_value::<String>("", ()));
        is_shared_and_static(&db.query_as::<(i64,)>("", ()));
        is_shared_and_static(&db.read_with(|_| Ok::<_, Error>(())));
        is_shared_and_static(&db.write_with(|_| Ok::<_, Error>(())));
        is_shared_and_static(&db.close());
        is_shared_and_static(&db.begin());
        let tx: Transaction<'static> = db.begin().await.unwrap();
        is_send_and_static(&tx);
        is_shared_and_static(&tx.execute("", ()));
        is_shared_and_static(&tx.query("", ()));
        is_shared_and_static(&tx.commit());
    });
}
