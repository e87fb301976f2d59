//! Transactions that begin and end on their caller's thread: nothing else about them changes.

use std::future::Future;
use std::time::Duration;

use flatwater::options::{Checkpoint, Durability};
use flatwater::{Database, ErrorKind, Options, Transaction};
use futures_util::FutureExt;

use crate::support::{TestFile, count, integer, run, unhurried, until};

const INSERT: &str = "INSERT INTO t VALUES (?, ?)";

/// Opens a database with a write that is known to be short.
async fn known(options: Options) -> Database {
    let db = unhurried(options).open().await.unwrap();
    db.execute("CREATE TABLE IF NOT EXISTS t (a INTEGER PRIMARY KEY, b)", ()).await.unwrap();
    // With durability full no write runs inline outside of a transaction.
    for number in 0..20 {
        db.execute(INSERT, (-number, number)).await.unwrap();
    }
    db.execute("DELETE FROM t", ()).await.unwrap();
    db
}

/// Waits for a call. Also returns whether it ran inline: nothing else of these tests does at that time.
async fn watched<T>(db: &Database, call: impl Future<Output = T>) -> (T, bool) {
    let before = db.stats().inline.writes;
    let answer = call.await;
    (answer, db.stats().inline.writes > before)
}

/// Begins a transaction inline. Now and then the writer's thread is not done yet with what was before.
async fn begun_here(db: &Database) -> Transaction<'_> {
    loop {
        if let (begun, true) = watched(db, db.begin()).await {
            return begun.unwrap();
        }
    }
}

#[test]
fn a_transaction_of_short_statements_begins_runs_and_commits_on_its_callers_thread() {
    let file = TestFile::new();
    run(async {
        let db = known(file.options()).await;
        let mut live = db.live("SELECT count(*) FROM t", ());
        assert!(live.next().await.is_some());
        let (mut here, mut rows) = (0, 0);
        while here < 10 {
            let tx = begun_here(&db).await;
            tx.execute(INSERT, (rows, rows)).await.unwrap();
            rows += 1;
            let (committed, was_here) = watched(&db, tx.commit()).await;
            committed.unwrap();
            here += i32::from(was_here);
            assert_eq!(count(&db).await, rows, "a reader sees it at once");
        }
        loop {
            let seen = live.next().await.unwrap().unwrap();
            if seen.iter().next().unwrap().get::<i64>(0).unwrap() == rows {
                break;
            }
        }
        db.close().await.unwrap();
    });
}

#[test]
fn a_transaction_begins_on_its_callers_thread_whatever_way_writes_take() {
    let file = TestFile::new();
    run(async {
        // The checkpointer does not use the slot in between.
        let db = known(file.options().checkpoint(Checkpoint::External)).await;
        let mut rows = 0;
        for _ in 0..3 {
            // Until the thread has had its share, and the queue is tried.
            let queued = db.stats().inline.queued;
            while db.stats().inline.queued == queued {
                db.execute(INSERT, (rows, rows)).await.unwrap();
                rows += 1;
            }
            let mut begins = 0..1000;
            let is_here = async || {
                let (begun, is_here) = watched(&db, db.begin()).await;
                begun.unwrap().rollback().await.unwrap();
                is_here
            };
            while !is_here().await {
                assert!(begins.next().is_some(), "transactions go through the queue for ever");
            }
        }
        db.close().await.unwrap();
    });
}

/// With durability full the commit is synced, so the writer's thread makes it.
#[test]
fn what_is_not_short_is_handed_over_to_the_writers_thread_and_goes_on_there() {
    for durability in [Durability::Normal, Durability::Full] {
        let file = TestFile::new();
        run(async {
            let db = known(file.options().durability(durability)).await;
            let mut tx = begun_here(&db).await;
            tx.execute(INSERT, (1, 1)).await.unwrap();
            tx.savepoint("a").await.unwrap();
            tx.execute("INSERT INTO t SELECT a + 100, b FROM t", ()).await.unwrap();
            tx.rollback_to("a").await.unwrap();
            let nested = tx.begin().await.unwrap();
            nested.execute(INSERT, (2, 2)).await.unwrap();
            nested.commit().await.unwrap();
            drop(tx.begin().await.unwrap());
            assert_eq!(tx.execute(INSERT, (2, 2)).await.unwrap_err().kind(), ErrorKind::Constraint);
            tx.execute_script("CREATE TABLE u (a); INSERT INTO u SELECT a FROM t").await.unwrap();
            tx.commit().await.unwrap();
            assert_eq!(count(&db).await, 2);
            assert_eq!(db.query_value::<i64>("SELECT sum(a) FROM u", ()).await, Ok(3));
            let tx = begun_here(&db).await;
            tx.execute(INSERT, (3, 3)).await.unwrap();
            let (committed, was_here) = watched(&db, tx.commit()).await;
            committed.unwrap();
            assert!(!(was_here && durability == Durability::Full));
            assert_eq!(count(&db).await, 3);
            db.close().await.unwrap();
        });
        assert_eq!(integer(&file.plain(), "SELECT count(*) FROM t"), 3);
    }
}

#[test]
fn after_a_statement_on_the_writers_thread_short_ones_and_the_commit_run_inline_again() {
    let file = TestFile::new();
    run(async {
        let db = known(file.options()).await;
        let mut here = 0;
        for number in 1.. {
            let tx = begun_here(&db).await;
            // No table is counted inline.
            assert_eq!(tx.query_value::<i64>("SELECT count(*) FROM t", ()).await, Ok(number - 1));
            let (inserted, was_here) = watched(&db, tx.execute(INSERT, (number, number))).await;
            inserted.unwrap();
            let (committed, was_committed_here) = watched(&db, tx.commit()).await;
            committed.unwrap();
            here += i32::from(was_here && was_committed_here);
            if here == 10 {
                break;
            }
        }
        db.close().await.unwrap();
    });
}

#[test]
fn what_wrote_much_or_more_than_tables_is_committed_or_undone_by_the_writers_thread() {
    let file = TestFile::new();
    run(async {
        known(file.options()).await.close().await.unwrap();
        // With limits of 50 us, which the rows exceed.
        let db = file.open().await;
        for sql in [
            "INSERT INTO t WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 50000) SELECT x, x FROM n",
            "CREATE TABLE u (a)",
            "CREATE TEMP TABLE v (a)",
        ] {
            for commits in [false, true] {
                let tx = db.begin().await.unwrap();
                tx.execute(sql, ()).await.unwrap();
                let (ended, was_here) = watched(&db, if commits { tx.commit() } else { tx.rollback() }).await;
                ended.unwrap();
                assert!(!was_here, "{sql}");
            }
        }
        assert_eq!(count(&db).await, 50_000);
        db.execute("CREATE VIRTUAL TABLE f USING fts4 (body)", ()).await.unwrap();
        for _ in 0..5 {
            let tx = db.begin().await.unwrap();
            tx.execute("INSERT INTO f VALUES ('one')", ()).await.unwrap();
            let (committed, was_here) = watched(&db, tx.commit()).await;
            committed.unwrap();
            assert!(!was_here);
        }
        db.close().await.unwrap();
    });
}

#[test]
fn one_that_is_dropped_or_forgotten_or_outlived_by_its_database_is_undone() {
    let file = TestFile::new();
    run(async {
        let db = known(file.options().tuning(|t| t.transaction_idle(Duration::from_secs(3600)))).await;
        let tx = begun_here(&db).await;
        tx.execute(INSERT, (1, 1)).await.unwrap();
        drop(tx);
        db.execute(INSERT, (2, 2)).await.unwrap();
        let tx = begun_here(&db).await;
        tx.execute(INSERT, (3, 3)).await.unwrap();
        tx.rollback().await.unwrap();
        assert_eq!(db.query_value::<i64>("SELECT sum(a) FROM t", ()).await, Ok(2));
        db.close().await.unwrap();

        let db = known(file.options().tuning(|t| t.transaction_idle(Duration::from_millis(50)))).await;
        std::mem::forget(begun_here(&db).await);
        db.execute(INSERT, (4, 4)).await.unwrap();
        let tx = begun_here(&db).await;
        // It has the writer until it ends.
        db.execute(INSERT, (5, 5)).await.unwrap();
        assert_eq!(tx.execute(INSERT, (6, 6)).await.unwrap_err().kind(), ErrorKind::Expired);
        tx.rollback().await.unwrap();
        assert_eq!(db.query_value::<i64>("SELECT sum(a) FROM t", ()).await, Ok(9));
        db.close().await.unwrap();

        let db = known(file.options().tuning(|t| t.close_wait(Duration::from_millis(50)))).await;
        let tx = begun_here(&db).await;
        tx.execute(INSERT, (7, 7)).await.unwrap();
        db.close().await.unwrap();
        assert_eq!(tx.commit().await.unwrap_err().kind(), ErrorKind::Closed);
    });
    assert_eq!(integer(&file.plain(), "SELECT count(*) FROM t"), 0);
}

#[test]
fn a_close_waits_for_it_and_it_commits_while_the_close_waits() {
    let file = TestFile::new();
    run(async {
        let db = known(file.options().tuning(|t| t.close_wait(Duration::from_secs(3600)))).await;
        let tx = begun_here(&db).await;
        tx.execute(INSERT, (1, 1)).await.unwrap();
        let closing = tokio::spawn(db.close());
        until(|| matches!(db.begin().now_or_never(), Some(Err(_)))).await;
        tx.commit().await.unwrap();
        closing.await.unwrap().unwrap();
    });
    assert_eq!(integer(&file.plain(), "SELECT count(*) FROM t"), 1);
}

#[test]
fn writes_that_arrive_meanwhile_run_after_it_in_their_order() {
    let file = TestFile::new();
    run(async {
        let db = known(file.options()).await;
        for ends_here in [true, false] {
            let tx = begun_here(&db).await;
            let before = count(&db).await;
            let writes: Vec<_> = (0..20)
                .map(|number| {
                    let db = db.clone();
                    tokio::spawn(async move { db.execute(INSERT, (None::<i64>, number)).await })
                })
                .collect();
            until(|| db.stats().writes_waiting == 20).await;
            tx.execute(INSERT, (None::<i64>, 100)).await.unwrap();
            assert_eq!(count(&db).await, before);
            if ends_here {
                tx.commit().await.unwrap()
            } else {
                drop(tx)
            }
            for write in writes {
                write.await.unwrap().unwrap();
            }
            assert_eq!(count(&db).await, before + 20 + i64::from(ends_here));
        }
        db.close().await.unwrap();
    });
}

#[test]
fn a_lock_that_another_program_holds_is_waited_for_by_the_writers_thread() {
    let file = TestFile::new();
    run(async {
        let db = known(file.options().busy_timeout(Duration::from_secs(3600))).await;
        let plain = file.plain();
        plain.execute_batch("BEGIN IMMEDIATE").unwrap();
        let mut begin = Box::pin(db.begin());
        for _ in 0..3 {
            assert!(begin.as_mut().now_or_never().is_none());
            tokio::task::yield_now().await;
        }
        plain.execute_batch("INSERT INTO t VALUES (1, 1); COMMIT").unwrap();
        let tx = begin.await.unwrap();
        assert_eq!(tx.query_value::<i64>("SELECT count(*) FROM t", ()).await, Ok(1));
        tx.commit().await.unwrap();
        db.close().await.unwrap();
    });
}

#[test]
fn a_schema_that_another_program_changed_is_seen() {
    let file = TestFile::new();
    run(async {
        let db = known(file.options()).await;
        let plain = file.plain();
        for number in 0..5 {
            plain.execute_batch(&format!("ALTER TABLE t ADD COLUMN c{number} DEFAULT {number}")).unwrap();
            let tx = db.begin().await.unwrap();
            tx.execute("DELETE FROM t", ()).await.unwrap();
            tx.execute(format!("INSERT INTO t (a, b, c{number}) VALUES (1, 2, 3)"), ()).await.unwrap();
            let columns = tx.query("SELECT * FROM t", ()).await.unwrap().columns().len();
            assert_eq!(columns, 3 + number);
            tx.commit().await.unwrap();
        }
        db.close().await.unwrap();
    });
}

#[test]
fn a_deferred_foreign_key_fails_at_the_commit_which_rolls_back() {
    let file = TestFile::new();
    run(async {
        let db = known(file.options()).await;
        db.execute_script(
            "CREATE TABLE parent (a PRIMARY KEY); CREATE TABLE child (a REFERENCES parent DEFERRABLE INITIALLY DEFERRED)",
        )
        .await
        .unwrap();
        let insert = "INSERT INTO child VALUES (?)";
        for _ in 0..5 {
            db.execute(insert, (None::<i64>,)).await.unwrap();
        }
        for _ in 0..5 {
            let tx = begun_here(&db).await;
            tx.execute(insert, (1,)).await.unwrap();
            let error = tx.commit().await.unwrap_err();
            assert_eq!(error.sqlite_name(), Some("SQLITE_CONSTRAINT_FOREIGNKEY"), "{error}");
            assert_eq!(db.query_value::<i64>("SELECT count(a) FROM child", ()).await, Ok(0));
        }
        db.close().await.unwrap();
    });
}

#[test]
fn it_begins_on_no_thread_that_may_not_run_statements() {
    let (file, other) = (TestFile::new(), TestFile::new());
    run(async {
        let db = known(file.options()).await;
        assert!(!watched(&db, db.begin().never_inline()).await.1);
        db.close().await.unwrap();
        // SQLite begins in each attached file.
        other.plain().execute_batch("CREATE TABLE u (a)").unwrap();
        let db = known(file.options().tuning(|t| t.attach("other", other.path()))).await;
        for _ in 0..5 {
            assert!(!watched(&db, db.begin()).await.1);
        }
        db.close().await.unwrap();
    });
}
