//! Snapshots on their caller's thread: nothing else about a snapshot changes.

use std::sync::{Arc, Barrier};
use std::time::Duration;

use flatwater::{Database, ErrorKind, Options};
use futures_util::TryStreamExt;
use futures_util::future::join_all;

use crate::support::{TestFile, count, run, unhurried, until};

const FIND: &str = "SELECT b FROM t WHERE a = ?";

/// Opens a database with a text that is known to be short, also in a snapshot. Its table has one row.
async fn known(options: Options) -> Database {
    let db = unhurried(options).open().await.unwrap();
    db.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b)", ()).await.unwrap();
    db.execute("INSERT INTO t VALUES (1, 10)", ()).await.unwrap();
    learn(&db).await;
    db
}

/// Takes snapshots until one runs on this thread.
async fn learn(db: &Database) {
    let inline = || db.stats().inline;
    for time in 0.. {
        assert!(time < 1000, "it was never tried");
        let queued = inline().queued;
        let snapshot = db.snapshot().await.unwrap();
        snapshot.query(FIND, (1,)).await.unwrap();
        drop(snapshot);
        until(|| db.stats().readers_held == 0).await;
        if inline().queued == queued {
            return;
        }
    }
}

#[test]
fn a_snapshot_is_begun_read_and_ended_on_the_callers_thread() {
    let file = TestFile::new();
    run(async {
        let db = known(file.options()).await;
        let before = db.stats().inline;
        for _ in 0..20 {
            let snapshot = db.snapshot().await.unwrap();
            assert_eq!(snapshot.query_value::<i64>(FIND, (1,)).await, Ok(10));
            assert_eq!(snapshot.query_optional_value::<i64>(FIND, (7,)).await, Ok(None));
            assert_eq!(db.stats().readers_held, 1);
            drop(snapshot);
            assert_eq!(db.stats().readers_held, 0, "it has ended here");
        }
        let after = db.stats().inline;
        assert_eq!((after.queued, after.reads, after.writes), (before.queued, before.reads + 60, before.writes));
        db.close().await.unwrap();
    });
}

#[test]
fn it_stays_at_its_point_in_time_whatever_is_written_and_defined_beside_it() {
    let file = TestFile::new();
    run(async {
        let db = known(file.options()).await;
        let all = "SELECT * FROM t";
        for round in 0..10 {
            let snapshot = db.snapshot().await.unwrap();
            let columns = 2 + round;
            db.execute("UPDATE t SET b = b + 1 WHERE a = 1", ()).await.unwrap();
            assert_eq!(snapshot.query_value::<i64>(FIND, (1,)).await, Ok(10 + round));
            // The schema of the others is another one from here on, for some known to Flatwater and for some not.
            let define = format!("ALTER TABLE t ADD COLUMN c{round}");
            if round % 2 == 0 {
                db.execute(&*define, ()).await.unwrap();
            } else {
                file.plain().execute_batch(&define).unwrap();
            }
            for _ in 0..3 {
                assert_eq!(snapshot.query_value::<i64>(FIND, (1,)).await, Ok(10 + round));
                assert_eq!(snapshot.query(all, ()).await.unwrap().columns().len() as i64, columns);
            }
            drop(snapshot);
            let newest = db.snapshot().await.unwrap();
            assert_eq!(newest.query(all, ()).await.unwrap().columns().len() as i64, columns + 1);
            assert_eq!(newest.query_value::<i64>(FIND, (1,)).await, Ok(11 + round));
            drop(newest);
            assert_eq!(db.query(all, ()).await.unwrap().columns().len() as i64, columns + 1);
        }
        learn(&db).await;
        db.close().await.unwrap();
    });
}

#[test]
fn a_read_does_not_overtake_one_that_was_sent_before() {
    let file = TestFile::new();
    run(async {
        let db = known(file.options()).await;
        let snapshot = db.snapshot().await.unwrap();
        for _ in 0..20 {
            // The first is new to the connection each time, and so is sent; the others are short.
            let slow = format!("SELECT count(*), {} FROM t", rand::random::<u32>());
            let slow = snapshot.query(&*slow, ());
            let short = join_all((0..3).map(|_| snapshot.query_value::<i64>(FIND, (1,))));
            let (slow, short) = futures_util::join!(slow, short);
            slow.unwrap();
            assert!(short.into_iter().all(|one| one == Ok(10)));
            let streamed: Vec<_> = snapshot.stream_as::<(i64, i64)>("SELECT * FROM t", ()).try_collect().await.unwrap();
            assert_eq!(streamed, [(1, 10)]);
        }
        drop(snapshot);
        until(|| db.stats().readers_held == 0).await;
        db.close().await.unwrap();
    });
}

#[test]
fn a_reader_for_which_the_pool_has_no_place_is_closed_by_a_thread() {
    let file = TestFile::new();
    run(async {
        let db = known(file.options()).await;
        for _ in 0..10 {
            let first = db.snapshot().await.unwrap();
            let second = db.snapshot().await.unwrap();
            assert_eq!(db.stats().readers_held, 2);
            // A connection for reads is opened beside them: the pool has one place.
            assert_eq!(count(&db).await, 1);
            assert_eq!(second.query_value::<i64>(FIND, (1,)).await, Ok(10));
            drop((first, second));
            until(|| db.stats().readers_held == 0).await;
        }
        learn(&db).await;
        db.close().await.unwrap();
    });
}

#[test]
fn a_call_that_begins_while_its_snapshot_ends_is_answered() {
    let file = TestFile::new();
    run(async {
        let db = known(file.options()).await;
        for _ in 0..500 {
            let snapshot = db.snapshot().await.unwrap();
            let call = snapshot.query(FIND, (1,));
            let both = Arc::new(Barrier::new(2));
            let meets = both.clone();
            let ends = std::thread::spawn(move || {
                meets.wait();
                drop(snapshot);
            });
            both.wait();
            match call.await {
                Ok(rows) => assert_eq!(rows.len(), 1),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
                    assert!(error.to_string().contains("is finished"), "{error}");
                }
            }
            ends.join().unwrap();
        }
    });
}

#[test]
fn a_stream_that_was_not_read_to_its_end_does_not_keep_its_snapshot() {
    let file = TestFile::new();
    run(async {
        let db = known(file.options()).await;
        db.execute("WITH RECURSIVE n(x) AS (SELECT 2 UNION ALL SELECT x + 1 FROM n LIMIT 20000) INSERT INTO t SELECT x, x FROM n", ())
            .await
            .unwrap();
        let snapshot = db.snapshot().await.unwrap();
        let mut rows = snapshot.stream_as::<(i64, i64)>("SELECT * FROM t ORDER BY a", ());
        assert_eq!(rows.next().await.unwrap(), Ok((1, 10)));
        assert_eq!(snapshot.query_value::<i64>(FIND, (1,)).await, Ok(10));
        drop(rows);
        assert_eq!(snapshot.query_value::<i64>(FIND, (2,)).await, Ok(2));
        let rows = snapshot.stream_as::<(i64, i64)>("SELECT * FROM t ORDER BY a", ());
        drop(snapshot);
        drop(rows);
        until(|| db.stats().readers_held == 0).await;
        db.close().await.unwrap();
    });
}

#[test]
fn after_its_age_it_is_refused_here_too() {
    let file = TestFile::new();
    run(async {
        let age = Duration::from_millis(1);
        let db = known(file.options()).await;
        db.close().await.unwrap();
        let db = unhurried(file.options()).tuning(|t| t.snapshot_age(age)).open().await.unwrap();
        let snapshot = db.snapshot().await.unwrap();
        let too_old = |error: &flatwater::Error| error.kind() == ErrorKind::Expired;
        while snapshot.query(FIND, (1,)).await.as_ref().err().is_none_or(|error| !too_old(error)) {}
        assert!(snapshot.query(FIND, (1,)).await.is_err_and(|error| too_old(&error)));
        drop(snapshot);
        until(|| db.stats().readers_held == 0).await;
        db.close().await.unwrap();
    });
}
