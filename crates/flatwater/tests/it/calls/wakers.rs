//! When a caller is woken, the writer is free: a write made by its waker runs at once, on the thread that calls the
//! waker, and one made by another thread ends while the waker waits for it.
//!
//! Leaves out: wakers that panic (`foreign_code`).

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Instant;

use flatwater::rusqlite::{self, Transaction};
use flatwater::{Database, Error, Migrations, params};
use futures_util::StreamExt;
use futures_util::future::join;

use super::woken::{Bench, HANGS, INSERT};
use crate::support::run;

/// A waker that does not return before another thread has written. It sends whether that succeeded.
struct WaitsForAnother {
    db: Database,
    tell: Sender<bool>,
}

impl Wake for WaitsForAnother {
    fn wake(self: Arc<Self>) {
        let (written, ends) = channel();
        let db = self.db.clone();
        thread::spawn(move || written.send(db.execute(INSERT, (-1,)).wait().is_ok()));
        self.tell.send(ends.recv_timeout(HANGS) == Ok(true)).unwrap();
    }
}

/// Makes the call until its waker was called, which it is not if the call ended before it could suspend.
fn another_writes_while_woken<F: Future<Output = ()>>(db: &Database, mut call: impl FnMut() -> F) {
    let (tell, told) = channel();
    let waker = Waker::from(Arc::new(WaitsForAnother { db: db.clone(), tell }));
    let began = Instant::now();
    loop {
        assert!(began.elapsed() < HANGS, "the waker is never called");
        let mut future = pin!(call());
        let mut was_woken = false;
        while future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
            assert!(told.recv_timeout(2 * HANGS).expect("the waker is not called"), "another thread could not write");
            was_woken = true;
        }
        if was_woken {
            return;
        }
    }
}

/// Each kind of call that the writer's thread completes. A call is repeated if its waker was called while short writes use
/// the queue, which may be faster for a while on a busy machine.
#[test]
fn whoever_is_woken_finds_the_writer_free() {
    let mut bench = Bench::new();
    let db = bench.db.clone();
    let fails = |_: &Transaction<'_>| Err::<(), _>(Error::from(rusqlite::Error::InvalidQuery));
    bench.until_woken(|bench| {
        bench.finish(db.ungrouped().execute("INSERT INTO t (x) SELECT 1", ()).never_inline()).unwrap();
    });
    bench.until_woken(|bench| {
        drop(bench.finish(db.execute("INSERT INTO t (x) SELECT NULL", ()).never_inline()).unwrap_err())
    });
    bench.until_woken(|bench| {
        drop(bench.finish(db.query("INSERT INTO t (x) SELECT 2 RETURNING id", ()).never_inline()).unwrap())
    });
    bench.until_woken(|bench| {
        assert_eq!(bench.finish(db.execute_many(INSERT, [(3,), (4,)]).never_inline()).unwrap(), 2)
    });
    bench.until_woken(|bench| {
        bench.finish(db.batch([(INSERT, params![5]), (INSERT, params![6])]).never_inline()).unwrap();
    });
    bench.until_woken(|bench| bench.finish(db.execute_script("INSERT INTO t (x) VALUES (7)")).unwrap());
    bench.until_woken(|bench| {
        bench.finish(db.write_with(|tx| tx.execute(INSERT, [8]).map_err(Error::from))).unwrap();
    });
    bench.until_woken(|bench| drop(bench.finish(db.write_with(fails)).unwrap_err()));
    let begun = || {
        run(async {
            let tx = db.begin().await.unwrap();
            tx.execute(INSERT, (9,)).await.unwrap();
            tx
        })
    };
    bench.until_woken(|bench| bench.finish(begun().commit().never_inline()).unwrap());
    bench.until_woken(|bench| bench.finish(begun().rollback().never_inline()).unwrap());
    db.close().wait().unwrap();
}

/// Two writes that wait for the end of a transaction are one group. Their callers are woken one after another.
#[test]
fn whoever_is_woken_by_a_group_finds_the_writer_free() {
    let mut bench = Bench::new();
    let db = bench.db.clone();
    bench.until_woken(|bench| {
        let blocker = db.begin().wait().unwrap();
        let mut group = join(db.execute(INSERT, (12,)), db.execute(INSERT, (13,)));
        assert!(Pin::new(&mut group).poll(&mut Context::from_waker(&bench.waker)).is_pending());
        let before = db.stats().groups;
        blocker.rollback().wait().unwrap();
        let found: Vec<_> = (0..2).map(|_| bench.told.recv_timeout(HANGS).expect("nobody is woken")).collect();
        bench.found_free += usize::from(db.stats().groups > before && found.iter().all(|is_free| *is_free));
        let (first, second) = bench.finish(group);
        first.and(second).unwrap();
    });
    db.close().wait().unwrap();
}

/// On whichever thread the task is woken: on that of the write, if the query has ended by then, or on the reader's.
#[test]
fn whoever_is_told_of_a_result_finds_the_writer_free() {
    let mut bench = Bench::new();
    let db = bench.db.clone();
    let mut live = db.live("SELECT count(*) FROM t WHERE x = 0", ());
    bench.until_woken(|bench| {
        while let Poll::Ready(result) = live.poll_next_unpin(&mut Context::from_waker(&bench.waker)) {
            result.unwrap().unwrap();
        }
        db.execute(INSERT, (0,)).wait().unwrap();
        bench.found_free += usize::from(bench.told.recv_timeout(HANGS).expect("nobody is told"));
    });
    drop(live);
    db.close().wait().unwrap();
}

/// After these calls no statement is prepared, so a write of the waker's own would not run at once.
#[test]
fn whoever_is_woken_after_work_with_the_whole_connection_finds_the_writer_free() {
    let bench = Bench::new();
    let db = &bench.db;
    let with_connection = || db.with_connection(|connection| Ok::<_, Error>(connection.execute(INSERT, [14])?));
    another_writes_while_woken(db, || async { assert_eq!(with_connection().await.unwrap(), 1) });
    let with_failure = || db.with_connection(|_| Err::<(), _>(Error::from(rusqlite::Error::InvalidQuery)));
    another_writes_while_woken(db, || async { drop(with_failure().await.unwrap_err()) });
    let mut numbers = 0..;
    another_writes_while_woken(db, || {
        let number = numbers.next().unwrap();
        let name = format!("{number:03}_a");
        let all = (0..=number).map(|number| (format!("{number:03}_a"), format!("CREATE TABLE m{number} (a)")));
        let done = db.migrate(Migrations::new(all));
        async move { assert_eq!(done.await.unwrap(), [name]) }
    });
    db.close().wait().unwrap();
}
