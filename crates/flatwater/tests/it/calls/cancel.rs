//! Calls that are dropped at every stage: which never begin, which are interrupted, which are completed regardless.
//!
//! Leaves out: deadlines (`deadlines`), transactions that are dropped (`transactions`).

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use flatwater::calls::CancelOutcome;
use flatwater::{Database, Error, ErrorKind, Options, Rows, params};
use futures_util::future::join_all;

use crate::place::{Place, in_both_places};
use crate::support::{ENDLESS, TestFile, count, empty_table, run, until, waiting};

in_both_places!(
    a_call_that_was_never_polled_did_nothing,
    a_write_that_is_given_up_while_it_waits_never_happens,
    callers_that_leave_a_full_queue_make_place_for_the_others,
    a_read_that_is_given_up_while_it_waits_is_never_begun,
    a_read_closure_that_is_given_up_is_interrupted,
    a_write_that_runs_is_kept_whole_or_not_at_all,
    a_transaction_goes_on_after_a_call_in_it_was_given_up,
    a_call_answers_once,
    who_cancels_is_told_what_became_of_the_call,
);

/// Polls each call once. None is ready.
async fn begin<F: Future + Unpin>(calls: &mut [F]) {
    for call in calls {
        assert!(futures_util::poll!(Pin::new(call)).is_pending());
    }
}

async fn a_call_that_was_never_polled_did_nothing(place: &Place) {
    let db = empty_table(place.options()).await;
    let before = db.stats();
    drop(db.execute("INSERT INTO t VALUES (1)", ()));
    drop(db.execute_many("INSERT INTO t VALUES (?)", [(1,)]));
    drop(db.batch([("INSERT INTO t VALUES (1)", params![])]));
    drop(db.execute_script("INSERT INTO t VALUES (1)"));
    drop(db.query("INSERT INTO t VALUES (1) RETURNING a", ()));
    drop(db.write_with(|tx| tx.execute("INSERT INTO t VALUES (1)", []).map_err(Error::from)));
    drop(db.begin());
    drop(db.close());
    assert_eq!(count(&db).await, 0);
    assert_eq!(db.stats().abandoned, before.abandoned);
}

async fn a_write_that_is_given_up_while_it_waits_never_happens(place: &Place) {
    let db = empty_table(place.options()).await;
    let tx = db.begin().await.unwrap();
    let mut kept = [db.execute("INSERT INTO t VALUES (1)", ()), db.execute("INSERT INTO t VALUES (2)", ())];
    let mut executes: Vec<_> = (0..5).map(|_| db.execute("INSERT INTO t VALUES (0)", ())).collect();
    let mut queries: Vec<_> = (0..5).map(|_| db.query("INSERT INTO t VALUES (0) RETURNING a", ())).collect();
    let mut batch = [db.batch([("INSERT INTO t VALUES (0)", params![])])];
    let insert = |tx: &rusqlite::Transaction<'_>| tx.execute("INSERT INTO t VALUES (0)", []);
    let mut closure = [Box::pin(db.write_with(move |tx| insert(tx).map_err(Error::from)))];
    begin(&mut kept[..1]).await;
    begin(&mut executes).await;
    begin(&mut queries).await;
    begin(&mut batch).await;
    begin(&mut closure).await;
    begin(&mut kept[1..]).await;
    assert_eq!(db.stats().writes_waiting, 14);
    drop((executes, queries, batch, closure));
    tx.commit().await.unwrap();
    for kept in join_all(kept).await {
        kept.unwrap();
    }
    assert_eq!(db.query_as::<(i64,)>("SELECT a FROM t", ()).await.unwrap(), [(1,), (2,)]);
    assert_eq!(db.stats().abandoned, 12, "{:?}", db.stats());
}

async fn callers_that_leave_a_full_queue_make_place_for_the_others(place: &Place) {
    let db = empty_table(place.options().tuning(|t| t.queue(2))).await;
    let tx = db.begin().await.unwrap();
    let mut calls: Vec<_> = (0..40).map(|n| Box::pin(db.execute("INSERT INTO t VALUES (?)", (n,)))).collect();
    begin(&mut calls).await;
    assert_eq!(db.stats().writes_waiting, 2);
    let mut number = 0..;
    calls.retain(|_| number.next().unwrap() % 3 == 0);
    tx.commit().await.unwrap();
    for call in join_all(calls).await {
        call.unwrap();
    }
    let numbers = db.query_as::<(i64,)>("SELECT a FROM t ORDER BY rowid", ()).await.unwrap();
    assert_eq!(numbers, (0..40).step_by(3).map(|n| (n,)).collect::<Vec<_>>());
}

#[test]
fn a_running_read_is_interrupted_and_its_reader_is_free_again() {
    let file = TestFile::new();
    run(async {
        let db = empty_table(file.options().readers(2)).await;
        for _ in 0..5 {
            let mut endless: Vec<_> = (0..2).map(|_| db.query(ENDLESS, ())).collect();
            begin(&mut endless).await;
            let mut waiting = [db.query("SELECT 1", ())];
            until(|| db.stats().reads_waiting == 0).await;
            begin(&mut waiting).await;
            assert_eq!(db.stats().reads_waiting, 1, "both readers are busy");
            drop(endless);
            let [waiting] = waiting;
            assert_eq!(waiting.await.unwrap().len(), 1);
            every_reader_answers(&db, 2).await;
        }
        assert_eq!(db.stats().replaced_connections, 0);
    });
}

/// Reads on all readers at the same time. Each read waits for the others.
async fn every_reader_answers(db: &Database, readers: usize) {
    let together = Arc::new(std::sync::Barrier::new(readers));
    let reads = (0..readers).map(|_| {
        let together = together.clone();
        db.read_with(move |c| {
            together.wait();
            c.query_row("SELECT count(*) FROM t", [], |row| row.get::<_, i64>(0)).map_err(Error::from)
        })
    });
    for read in join_all(reads).await {
        read.unwrap();
    }
}

#[test]
fn a_running_read_in_memory_is_interrupted_and_the_writer_goes_on() {
    run(async {
        let db = empty_table(Options::new(":memory:")).await;
        for n in 1..=5 {
            let mut endless = [db.query(ENDLESS, ())];
            begin(&mut endless).await;
            until(|| db.stats().writes_waiting == 0).await;
            drop(endless);
            assert_eq!(db.execute("INSERT INTO t VALUES (1)", ()).await.unwrap().last_insert_rowid, Some(n));
        }
    });
}

async fn a_read_that_is_given_up_while_it_waits_is_never_begun(place: &Place) {
    let db = empty_table(place.options().readers(1)).await;
    let mut endless = [db.query(ENDLESS, ())];
    begin(&mut endless).await;
    until(|| waiting(&db) == 0).await;
    let mut behind: Vec<_> = (0..10).map(|_| db.query(ENDLESS, ())).collect();
    begin(&mut behind).await;
    assert_eq!(waiting(&db), 10);
    // In this order: a reader that is free takes the next one.
    drop((behind, endless));
    assert_eq!(count(&db).await, 0);
    assert_eq!(db.stats().abandoned, 10);
}

async fn a_read_closure_that_is_given_up_is_interrupted(place: &Place) {
    let db = empty_table(place.options().readers(1)).await;
    let ran_to_its_end = Arc::new(AtomicBool::new(false));
    let ended = ran_to_its_end.clone();
    let mut read = [Box::pin(db.read_with(move |c| {
        // Long, but not so long that a failure of this test would keep the machine busy.
        let long = ENDLESS.replace("FROM n)", "FROM n LIMIT 20000000)");
        let counted = c.query_row(&long, [], |row| row.get::<_, i64>(0));
        ended.store(counted.is_ok(), Ordering::SeqCst);
        counted.map_err(Error::from)
    }))];
    begin(&mut read).await;
    until(|| waiting(&db) == 0).await;
    drop(read);
    assert_eq!(count(&db).await, 0);
    until(|| db.stats().readers_held == 0).await;
    assert!(!ran_to_its_end.load(Ordering::SeqCst), "the closure kept its connection to the end");
}

async fn a_write_that_runs_is_kept_whole_or_not_at_all(place: &Place) {
    let db = empty_table(place.options()).await;
    let long = "INSERT INTO t WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 20000)
        SELECT x FROM n";
    for pause in [0, 1, 3, 10, 30, 100, 300] {
        let mut write = db.execute(long, ());
        // On a machine with other work it may be over before the poll is.
        let _ = futures_util::poll!(&mut write);
        tokio::time::sleep(Duration::from_millis(pause)).await;
        let cancelled = write.cancel();
        let kept = db.execute("DELETE FROM t", ()).await.unwrap().changes;
        match cancelled {
            CancelOutcome::Withdrawn | CancelOutcome::WriteInterrupted => assert_eq!(kept, 0),
            CancelOutcome::WriteRunning | CancelOutcome::Answered => assert_eq!(kept, 20_000),
            cancelled => panic!("{cancelled:?}"),
        }
    }
    db.close().await.unwrap();
}

async fn a_transaction_goes_on_after_a_call_in_it_was_given_up(place: &Place) {
    let db = empty_table(place.options()).await;
    let tx = db.begin().await.unwrap();
    drop(tx.execute("INSERT INTO t VALUES (0)", ()));
    for pause in [0, 5, 20] {
        let mut endless = tx.query(ENDLESS, ());
        assert!(futures_util::poll!(&mut endless).is_pending());
        // It may be running by then, and has to end either way.
        tokio::time::sleep(Duration::from_millis(pause)).await;
        drop(endless);
        tx.execute("INSERT INTO t VALUES (1)", ()).await.unwrap();
    }
    tx.commit().await.unwrap();
    assert_eq!(count(&db).await, 3);
}

async fn who_cancels_is_told_what_became_of_the_call(place: &Place) {
    let db = empty_table(place.options().readers(1)).await;
    assert_eq!(db.execute("INSERT INTO t VALUES (0)", ()).cancel(), CancelOutcome::Withdrawn, "it was never polled");
    let tx = db.begin().await.unwrap();
    let mut waits = [db.execute("INSERT INTO t VALUES (0)", ())];
    begin(&mut waits).await;
    assert_eq!(waits.map(|call| call.cancel()), [CancelOutcome::Withdrawn]);
    tx.rollback().await.unwrap();

    let mut read = [db.query(ENDLESS, ())];
    begin(&mut read).await;
    until(|| waiting(&db) == 0).await;
    assert_eq!(read.map(|call| call.cancel()), [CancelOutcome::ReadInterrupted]);

    let (started, goes_on) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (running, may_end) = (started.clone(), goes_on.clone());
    let mut write = [db.write_with(move |tx| {
        running.store(true, Ordering::SeqCst);
        while !may_end.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        tx.execute("INSERT INTO t VALUES (1)", []).map_err(Error::from)
    })];
    begin(&mut write).await;
    until(|| started.load(Ordering::SeqCst)).await;
    assert_eq!(write.map(|call| call.cancel()), [CancelOutcome::WriteInterrupted]);
    goes_on.store(true, Ordering::SeqCst);
    // Behind it. Its statement was short, and its commit was refused.
    db.execute("DELETE FROM t WHERE a = 0", ()).await.unwrap();
    assert_eq!(count(&db).await, 0);
    db.execute("INSERT INTO t VALUES (1)", ()).await.unwrap();

    let mut answered = db.execute_script("INSERT INTO t VALUES (2)");
    let _ = futures_util::poll!(&mut answered);
    // What came after it was answered, and so it was.
    db.execute_script("INSERT INTO t VALUES (3)").await.unwrap();
    assert_eq!(answered.cancel(), CancelOutcome::Answered);
    let mut done = db.execute("INSERT INTO t VALUES (4)", ());
    (&mut done).await.unwrap();
    assert_eq!(done.cancel(), CancelOutcome::Answered);
    assert_eq!(count(&db).await, 4);
}

/// A text that looks like a read is sent to a reader first, which forwards it to the writer.
#[test]
fn what_a_reader_hands_over_keeps_its_caller_and_its_rights() {
    let file = TestFile::new();
    run(async {
        let db = empty_table(file.options().readers(1)).await;
        let text = |n: i64| format!("WITH x(n) AS (SELECT {n}) /* a read, by its looks */ SELECT n, load(n) FROM x");
        let missing = db.query(text(1), ()).await.unwrap_err();
        assert!(missing.message().contains("load"), "{missing}");
        // A PRAGMA is taken for a read until it was prepared. The writer refuses this one, for it has no rows.
        let no_rows = db.query("PRAGMA user_version = 7", ()).await.unwrap_err();
        assert!(no_rows.message().contains("returns no rows"), "{no_rows}");
        let only_reads = file.options().readers(1).read_only(true).open().await.unwrap();
        let refused = only_reads.query("PRAGMA user_version = 8", ()).await.unwrap_err();
        assert!(refused.message().contains("read-only"), "{refused}");
        // In the body of a transaction it would wait for itself.
        let inside = db
            .transaction(async |_| Ok::<_, Error>(db.query("PRAGMA user_version = 9", ()).await.unwrap_err()))
            .await
            .unwrap();
        assert!(inside.message().contains("inside its own transaction"), "{inside}");
        // One whose caller's deadline passes while the writer is not free is never run.
        let tx = db.begin().await.unwrap();
        let late = db.with_timeout(Duration::from_millis(50)).query("PRAGMA user_version = 10", ()).await.unwrap_err();
        assert_eq!(late.kind(), ErrorKind::Timeout, "{late}");
        let mut dropped = [db.query("PRAGMA user_version = 11", ())];
        begin(&mut dropped).await;
        // Behind the one before, which is skipped in its turn.
        until(|| db.stats().writes_waiting == 2).await;
        drop(dropped);
        tx.rollback().await.unwrap();
        db.execute("INSERT INTO t VALUES (1)", ()).await.unwrap();
        assert_eq!(db.query_optional_value::<i64>("PRAGMA user_version", ()).await.unwrap(), Some(0));
    });
}

#[test]
fn opening_that_is_given_up_leaves_nothing_open() {
    let file = TestFile::new();
    run(async {
        for _ in 0..50 {
            let mut open = Box::pin(file.options().open());
            let _ = futures_util::poll!(&mut open);
            drop(open);
        }
        // The last one to close takes the WAL away, unless others close at the very same moment.
        while {
            file.open().await.close().await.unwrap();
            file.beside("-wal").exists()
        } {}
    });
}

async fn a_call_answers_once(place: &Place) {
    let db = empty_table(place.options()).await;
    let mut insert = db.execute("INSERT INTO t VALUES (1)", ());
    (&mut insert).await.unwrap();
    for _ in 0..3 {
        let again = (&mut insert).await.unwrap_err();
        assert_eq!(again.kind(), ErrorKind::Misuse, "{again}");
    }
    let mut read = db.query("SELECT a FROM t", ());
    let rows: Rows = (&mut read).await.unwrap();
    assert_eq!(rows.len(), 1);
    assert!((&mut read).await.is_err());
    assert_eq!(count(&db).await, 1);
}
