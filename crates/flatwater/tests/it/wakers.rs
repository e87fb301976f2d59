//! When a caller is woken, the writer is free: a write made by its waker runs at once, on the thread that calls the
//! waker.
//!
//! Leaves out: wakers that panic (`foreign_code`).

use std::pin::Pin;
use std::task::{Context, Poll};

use flatwater::rusqlite::{self, Transaction};
use flatwater::{Error, params};
use futures_util::StreamExt;
use futures_util::future::join;

use crate::support::run;
use crate::woken::{Bench, HANGS, INSERT};

/// Each kind of call that the writer's thread completes. A call is repeated if it completed before it could suspend, or
/// if its waker was called while short writes use the queue, which may be faster for a while on a busy machine.
#[test]
fn whoever_is_woken_finds_the_writer_free() {
    let mut bench = Bench::new();
    let db = bench.db.clone();
    let fails = |_: &Transaction<'_>| Err::<(), _>(Error::from(rusqlite::Error::InvalidQuery));
    bench.until_woken(|bench| {
        bench.finish(db.alone().execute("INSERT INTO t (x) SELECT 1", ())).unwrap();
    });
    bench.until_woken(|bench| drop(bench.finish(db.execute("INSERT INTO t (x) SELECT NULL", ())).unwrap_err()));
    bench.until_woken(|bench| drop(bench.finish(db.query("INSERT INTO t (x) SELECT 2 RETURNING id", ())).unwrap()));
    bench.until_woken(|bench| assert_eq!(bench.finish(db.execute_many(INSERT, [(3,), (4,)])).unwrap(), 2));
    bench.until_woken(|bench| {
        bench.finish(db.batch([(INSERT, params![5]), (INSERT, params![6])])).unwrap();
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
    bench.until_woken(|bench| bench.finish(begun().commit()).unwrap());
    bench.until_woken(|bench| bench.finish(begun().rollback()).unwrap());
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
