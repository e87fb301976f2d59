//! Inline runs of statements in an open transaction: nothing else about the transaction changes.

use std::sync::{Arc, Mutex};
use std::thread::ThreadId;
use std::time::Duration;

use flatwater::options::{Inline, InlineLimits};
use flatwater::rusqlite::functions::FunctionFlags;
use flatwater::{Database, Error, ErrorKind, Options, Transaction};
use futures_util::future::join_all;

use crate::support::{TestFile, count, run, unhurried, until};

const INSERT: &str = "INSERT INTO t VALUES (?, ?)";
const FIND: &str = "SELECT b FROM t WHERE a = ?";

/// Opens a database with two texts that are known to be short. Its table is empty.
async fn known(options: Options) -> Database {
    let db = unhurried(options).open().await.unwrap();
    db.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b UNIQUE)", ()).await.unwrap();
    while db.stats().inline.writes == 0 {
        db.execute(INSERT, (None::<i64>, None::<i64>)).await.unwrap();
    }
    // In a transaction the writer's connection reads: what it knows of a text it learns from a write, or alone in memory.
    while db.stats().inline.reads == 0 {
        db.query(FIND, (1,)).await.unwrap();
    }
    db.execute("DELETE FROM t", ()).await.unwrap();
    db
}

/// Begins a transaction, and inserts until the writer's thread has nothing to do any more.
async fn begun(db: &Database) -> Transaction<'_> {
    let tx = db.begin().await.unwrap();
    let before = stays(db);
    while stays(db) < before + 4 {
        tx.execute(INSERT, (None::<i64>, None::<i64>)).await.unwrap();
    }
    tx
}

fn stays(db: &Database) -> u64 {
    let inline = db.stats().inline;
    inline.reads + inline.writes
}

#[test]
fn short_statements_of_a_transaction_run_on_the_callers_thread_with_savepoints_and_failures() {
    let file = TestFile::new();
    run(async {
        let db = known(file.options()).await;
        let mut tx = db.begin().await.unwrap();
        let mut number = 0;
        let before = stays(&db);
        while stays(&db) < before + 10 {
            number += 1;
            assert_eq!(tx.execute(INSERT, (number, number)).await.unwrap().last_insert_rowid, Some(number));
            assert_eq!(tx.query_optional_value::<i64>(FIND, (number,)).await.unwrap(), Some(number));
            let error = tx.execute(INSERT, (1000 + number, number)).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Constraint);
            let savepoint = tx.begin().await.unwrap();
            savepoint.execute(INSERT, (2000 + number, 2000 + number)).await.unwrap();
            if number % 2 == 0 { savepoint.commit().await.unwrap() } else { savepoint.rollback().await.unwrap() }
        }
        tx.commit().await.unwrap();
        assert_eq!(count(&db).await, number + number / 2);
        db.close().await.unwrap();
    });
}

#[test]
fn what_changes_rows_becomes_known_to_be_short_in_transactions_too() {
    let file = TestFile::new();
    run(async {
        let db = known(file.options()).await;
        db.execute(INSERT, (1, 1)).await.unwrap();
        let mut at_once = [0; 2];
        for time in 0.. {
            if at_once.iter().all(|count| *count > 0) {
                break;
            }
            assert!(time < 1000, "they were never tried: {at_once:?}");
            let tx = db.begin().await.unwrap();
            let changes = [("UPDATE t SET b = b + 1 WHERE a = ?", 0), ("DELETE FROM t WHERE a = ?", 1)];
            for (text, which) in changes {
                let before = stays(&db);
                tx.execute(text, (1,)).await.unwrap();
                at_once[which] += stays(&db) - before;
            }
            tx.rollback().await.unwrap();
        }
        db.close().await.unwrap();
    });
}

#[test]
fn calls_that_are_made_together_keep_their_order() {
    let file = TestFile::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let db = known(file.options()).await;
        let yields = db.stats().inline.yields;
        // In a transaction, and outside; often enough that other tasks get their turn in between.
        let tx = db.begin().await.unwrap();
        let mut last = 0;
        while db.stats().inline.yields < yields + 20 {
            for done in join_all((1..5).map(|number| tx.execute(INSERT, (None::<i64>, last + number)))).await {
                done.unwrap();
            }
            last += 4;
        }
        tx.commit().await.unwrap();
        while db.stats().inline.yields < yields + 40 {
            for done in join_all((1..5).map(|number| db.execute(INSERT, (None::<i64>, last + number)))).await {
                done.unwrap();
            }
            last += 4;
        }
        let found: Vec<(i64,)> = db.query_as("SELECT b FROM t ORDER BY a", ()).await.unwrap();
        assert!(found.iter().map(|row| row.0).eq(1..=last), "a later write overtook an earlier one");
        db.close().await.unwrap();
    });
}

#[test]
fn a_definition_is_not_overtaken_by_the_write_that_needs_it() {
    let file = TestFile::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let db = known(file.options()).await;
        let yields = db.stats().inline.yields;
        for number in 0.. {
            if db.stats().inline.yields > yields + 20 {
                break;
            }
            // What the schema's change voids is learnt again, and now and then the thread has had its share.
            for _ in 0..[7, 300][number % 2] {
                db.execute(INSERT, (None::<i64>, None::<i64>)).await.unwrap();
            }
            let (define, insert) = (format!("CREATE TABLE n{number} (a)"), format!("INSERT INTO n{number} VALUES (1)"));
            let (defined, inserted) = tokio::join!(db.execute(&define, ()), db.execute(&insert, ()));
            defined.unwrap();
            inserted.unwrap();
            db.execute(format!("DROP TABLE n{number}"), ()).await.unwrap();
        }
        db.close().await.unwrap();
    });
}

#[test]
fn a_stay_that_loses_the_transaction_tells_so_like_a_worker() {
    let file = TestFile::new();
    run(async {
        let db = known(file.options()).await;
        // Which of the dots is part of a name, only the schema tells.
        db.execute("CREATE TABLE dotted (\"a.b\" UNIQUE)", ()).await.unwrap();
        let harsh = "INSERT OR ROLLBACK INTO dotted VALUES (?)";
        for number in 0..4 {
            db.execute(harsh, (number,)).await.unwrap();
        }
        let rows = count(&db).await;
        for _ in 0..4 {
            let tx = db.begin().await.unwrap();
            tx.execute(INSERT, (None::<i64>, 1)).await.unwrap();
            let error = tx.execute(harsh, (1,)).await.unwrap_err();
            let constraint = error.constraint().unwrap();
            assert_eq!((constraint.table(), constraint.columns()), (Some("dotted"), &["a.b".to_owned()][..]));
            let error = tx.execute(INSERT, (None::<i64>, 2)).await.unwrap_err();
            assert!(error.message().contains("SQLite rolled back"), "{error}");
            assert!(tx.commit().await.is_err());
            assert_eq!(count(&db).await, rows);
        }
        db.close().await.unwrap();
    });
}

#[test]
fn the_idle_limit_and_close_still_end_it() {
    let file = TestFile::new();
    run(async {
        let db = known(file.options().tuning(|t| t.transaction_idle(Duration::from_millis(30)))).await;
        let tx = loop {
            let (tx, before) = (db.begin().await.unwrap(), stays(&db));
            let mut failed = None;
            for number in 0..20 {
                failed = failed.or(tx.execute(INSERT, (None::<i64>, number)).await.err());
            }
            match failed {
                None if stays(&db) > before => break tx,
                None => {}
                // The machine was busy for as long.
                Some(error) => assert_eq!(error.kind(), ErrorKind::Expired, "{error}"),
            }
        };
        // It has the writer until it ends.
        db.execute(INSERT, (None::<i64>, 5)).await.unwrap();
        assert_eq!(tx.execute(INSERT, (None::<i64>, 50)).await.unwrap_err().kind(), ErrorKind::Expired);
        assert_eq!(count(&db).await, 1);
        db.close().await.unwrap();

        let db = unhurried(file.options().tuning(|t| t.close_wait(Duration::from_millis(30)))).open().await.unwrap();
        let tx = db.begin().await.unwrap();
        tx.execute(INSERT, (None::<i64>, 60)).await.unwrap();
        let closing = tokio::spawn({
            let db = db.clone();
            async move { db.close().await }
        });
        until(|| closing.is_finished()).await;
        closing.await.unwrap().unwrap();
        assert_eq!(tx.execute(INSERT, (None::<i64>, 61)).await.unwrap_err().kind(), ErrorKind::Closed);
        let db = file.open().await;
        assert_eq!(count(&db).await, 1);
        db.close().await.unwrap();
    });
}

/// In memory, the connection of the transaction is the one that learnt which reads are short.
#[test]
fn a_read_in_a_transaction_stays_and_keeps_to_the_limit_of_rows() {
    run(async {
        let limits = InlineLimits::default().time(Duration::from_secs(60)).rows(2);
        let db = Options::new(":memory:").tuning(|t| t.inline(Inline::Auto(limits))).open().await.unwrap();
        db.execute_script("CREATE TABLE t (a INTEGER PRIMARY KEY); INSERT INTO t VALUES (1)").await.unwrap();
        for _ in 0..6 {
            assert_eq!(db.query("SELECT a FROM t", ()).await.unwrap().len(), 1);
        }
        let tx = db.begin().await.unwrap();
        let mut before = db.stats().inline.reads;
        while db.stats().inline.reads == before {
            assert_eq!(tx.query("SELECT a FROM t", ()).await.unwrap().len(), 1);
        }
        tx.execute("INSERT INTO t VALUES (2), (3), (4), (5)", ()).await.unwrap();
        for _ in 0..40 {
            before = db.stats().inline.reads;
            assert_eq!(tx.query("SELECT a FROM t", ()).await.unwrap().len(), 5);
            assert_eq!(db.stats().inline.reads, before);
        }
        tx.rollback().await.unwrap();
        db.close().await.unwrap();
    });
}

/// CREATE INDEX, ANALYZE and similar statements expire every prepared statement of a connection, including those of
/// savepoints (<https://sqlite.org/c3ref/prepare.html>). An inline run must not fail halfway because of that.
#[test]
fn a_stay_is_undone_or_done_whole_when_prepared_statements_have_expired() {
    let file = TestFile::new();
    run(async {
        let db = known(file.options()).await;
        let before = stays(&db);
        for round in 0.. {
            let expires = ["CREATE INDEX t_b ON t (b)", "ANALYZE", "DROP INDEX t_b"][round % 3];
            if round >= 3 && round % 3 == 0 && stays(&db) > before {
                break;
            }
            assert!(round < 300, "nothing stayed");
            let first = i64::try_from(round).unwrap() * 100;
            db.execute_script(expires).await.unwrap();
            for n in 0..4 {
                db.execute(INSERT, (first + n, first + n)).await.unwrap();
            }
            let mut tx = db.begin().await.unwrap();
            let nested = tx.begin().await.unwrap();
            nested.execute(INSERT, (first + 10, first + 10)).await.unwrap();
            nested.commit().await.unwrap();
            let nested = tx.begin().await.unwrap();
            nested.execute(INSERT, (first + 20, first + 20)).await.unwrap();
            nested.execute(INSERT, (first + 21, first + 20)).await.unwrap_err();
            nested.rollback().await.unwrap();
            tx.execute(INSERT, (first + 30, first + 30)).await.unwrap();
            tx.commit().await.unwrap();
            let found: Vec<(i64,)> = db.query_as("SELECT a FROM t WHERE a >= ? ORDER BY a", (first,)).await.unwrap();
            let found: Vec<i64> = found.into_iter().map(|(a,)| a - first).collect();
            assert_eq!(found, [0, 1, 2, 3, 10, 30], "after {expires}");
        }
        db.close().await.unwrap();
    });
}

#[test]
fn nested_transactions_are_opened_and_kept_on_the_callers_thread() {
    let file = TestFile::new();
    run(async {
        let db = known(file.options()).await;
        let mut tx = db.begin().await.unwrap();
        let before = db.stats().inline.writes;
        let mut kept = 0;
        // Two for each, if the writer's thread waits for them.
        while db.stats().inline.writes < before + 100 {
            let mut outer = tx.begin().await.unwrap();
            let inner = outer.begin().await.unwrap();
            inner.execute("INSERT INTO t SELECT NULL, NULL", ()).await.unwrap();
            match kept % 3 {
                0 => inner.commit().await.unwrap(),
                1 => inner.rollback().await.unwrap(),
                _ => drop(inner),
            }
            outer.execute("INSERT INTO t SELECT NULL, NULL", ()).await.unwrap();
            outer.commit().await.unwrap();
            kept += 1;
            assert_eq!(
                tx.query_optional_value::<i64>("SELECT count(*) FROM t", ()).await,
                Ok(Some(kept + (kept + 2) / 3))
            );
        }
        tx.commit().await.unwrap();
        assert_eq!(count(&db).await, kept + (kept + 2) / 3);
        db.close().await.unwrap();
    });
}

#[test]
fn nested_transactions_that_are_kept_leave_nothing_to_do_for_the_writers_thread() {
    let file = TestFile::new();
    run(async {
        let db = known(file.options()).await;
        let mut tx = begun(&db).await;
        let queued = db.stats().inline.queued;
        for _ in 0..50 {
            let nested = tx.begin().await.unwrap();
            nested.execute(INSERT, (None::<i64>, None::<i64>)).await.unwrap();
            nested.commit().await.unwrap();
        }
        assert_eq!(db.stats().inline.queued, queued, "each step ran here");
        tx.commit().await.unwrap();
        db.close().await.unwrap();
    });
}

#[test]
fn savepoints_and_what_is_undone_run_on_the_callers_thread_unless_much_was_done_in_them() {
    let file = TestFile::new();
    run(async {
        let db = known(file.options()).await;
        let mut tx = begun(&db).await;
        let kept = tx.query_optional_value::<i64>("SELECT count(*) FROM t", ()).await.unwrap().unwrap();
        let queued = || db.stats().inline.queued;
        let before = queued();
        for _ in 0..20 {
            tx.savepoint("a").await.unwrap();
            tx.execute(INSERT, (None::<i64>, None::<i64>)).await.unwrap();
            tx.savepoint("b").await.unwrap();
            tx.execute(INSERT, (None::<i64>, None::<i64>)).await.unwrap();
            tx.release("b").await.unwrap();
            tx.rollback_to("A").await.unwrap();
            assert_eq!(tx.release("b").await.unwrap_err().kind(), ErrorKind::Misuse);
            tx.release("a").await.unwrap();
            let nested = tx.begin().await.unwrap();
            nested.execute(INSERT, (None::<i64>, None::<i64>)).await.unwrap();
            nested.rollback().await.unwrap();
        }
        assert_eq!(queued(), before, "each step ran here");
        // Nobody knows how many pages the script changed: the script and the two steps are the writer's thread's.
        tx.savepoint("a").await.unwrap();
        tx.execute_script("INSERT INTO t VALUES (NULL, NULL)").await.unwrap();
        tx.rollback_to("a").await.unwrap();
        tx.release("a").await.unwrap();
        assert_eq!(queued(), before + 3);
        tx.commit().await.unwrap();
        assert_eq!(count(&db).await, kept);
        db.close().await.unwrap();
    });
}

/// SQLite evaluates RETURNING when the row is written, and does not undo it by itself.
#[test]
fn a_new_row_whose_returning_fails_is_not_left_for_the_worker_to_insert_again() {
    let file = TestFile::new();
    run(async {
        let db = known(file.options()).await;
        db.execute("CREATE TABLE r (id INTEGER PRIMARY KEY, v)", ()).await.unwrap();
        for (sql, long) in [
            ("INSERT INTO r (v) VALUES (?) RETURNING hex(v)", true),
            ("INSERT INTO r (v) VALUES (?) RETURNING abs(v)", false),
        ] {
            let moved = db.stats().inline.moved;
            while db.stats().inline.moved == moved {
                let tx = db.begin().await.unwrap();
                for _ in 0..4 {
                    tx.query(sql, (1,)).await.unwrap();
                }
                // Larger than an inline run may make, or an error on a worker too.
                let last =
                    if long { tx.query(sql, ("y".repeat(40_000),)).await } else { tx.query(sql, (i64::MIN,)).await };
                assert_eq!(last.is_ok(), long, "{sql}");
                tx.commit().await.unwrap();
                assert_eq!(count_of(&db, "r").await, 4 + i64::from(long), "{sql}");
                db.execute("DELETE FROM r", ()).await.unwrap();
            }
        }
        db.close().await.unwrap();
    });
}

async fn count_of(db: &Database, table: &str) -> i64 {
    db.query_value(format!("SELECT count(*) FROM {table}"), ()).await.unwrap()
}

#[test]
fn a_nested_transaction_that_did_much_is_kept_by_the_writers_thread() {
    let file = TestFile::new();
    run(async {
        let db = known(file.options()).await;
        let mut tx = db.begin().await.unwrap();
        let mut number = 0;
        let mut nested = tx.begin().await.unwrap();
        // More than 64 short ones; then a single one that is not short.
        let before = stays(&db);
        while stays(&db) < before + 100 {
            number += 1;
            nested.execute(INSERT, (number, number)).await.unwrap();
        }
        let writes = db.stats().inline.writes;
        nested.commit().await.unwrap();
        assert_eq!(db.stats().inline.writes, writes);
        nested = tx.begin().await.unwrap();
        nested.execute("UPDATE t SET b = -b", ()).await.unwrap();
        let inner = nested.begin().await.unwrap();
        inner.execute_script("UPDATE t SET b = -b; UPDATE t SET b = b - 1").await.unwrap();
        let writes = db.stats().inline.writes;
        inner.commit().await.unwrap();
        nested.commit().await.unwrap();
        assert_eq!(db.stats().inline.writes, writes);
        // What is undone inside was kept of its pages too; and each savepoint inside is one more step.
        nested = tx.begin().await.unwrap();
        let inner = nested.begin().await.unwrap();
        inner.execute("UPDATE t SET b = -b", ()).await.unwrap();
        inner.rollback().await.unwrap();
        let writes = db.stats().inline.writes;
        nested.commit().await.unwrap();
        assert_eq!(db.stats().inline.writes, writes);
        nested = tx.begin().await.unwrap();
        nested.savepoint("a").await.unwrap();
        nested.savepoint("b").await.unwrap();
        nested.execute("UPDATE t SET b = -b", ()).await.unwrap();
        nested.rollback_to("a").await.unwrap();
        let writes = db.stats().inline.writes;
        nested.commit().await.unwrap();
        assert_eq!(db.stats().inline.writes, writes);
        nested = tx.begin().await.unwrap();
        for _ in 0..100 {
            nested.savepoint("again").await.unwrap();
        }
        let writes = db.stats().inline.writes;
        nested.commit().await.unwrap();
        assert_eq!(db.stats().inline.writes, writes);
        tx.commit().await.unwrap();
        let found: Vec<(i64, i64)> = db.query_as("SELECT a, b FROM t ORDER BY a", ()).await.unwrap();
        assert!(found.into_iter().eq((1..=number).map(|number| (number, number - 1))));
        db.close().await.unwrap();
    });
}

const OR_FAIL: &str = "INSERT OR FAIL INTO f (docid, body)
    SELECT max(docid) + 1, 'nine ten' FROM f UNION ALL SELECT min(docid), 'eleven' FROM f";

#[test]
fn a_statement_whose_virtual_table_cannot_write_what_it_collected_leaves_nothing() {
    let file = TestFile::new();
    run(async {
        let db = known(file.options()).await;
        db.execute_script(
            "CREATE TABLE switch (fails); INSERT INTO switch VALUES (0);
             CREATE VIRTUAL TABLE f USING fts4 (body); INSERT INTO f VALUES ('one');
             CREATE TRIGGER failing AFTER INSERT ON f_segdir WHEN (SELECT fails FROM switch)
             BEGIN SELECT RAISE(ABORT, 'it cannot be written'); END",
        )
        .await
        .unwrap();
        let mut tx = db.begin().await.unwrap();
        tx.execute("INSERT INTO t VALUES (1, 1)", ()).await.unwrap();
        tx.execute("UPDATE switch SET fails = 1", ()).await.unwrap();
        for sql in ["INSERT INTO f VALUES ('two')", "INSERT OR FAIL INTO f VALUES ('two')", OR_FAIL] {
            let error = tx.execute(sql, ()).await.unwrap_err();
            assert_eq!(error.sqlite_name(), Some("SQLITE_CONSTRAINT_TRIGGER"), "{sql}: {error}");
            assert_eq!(tx.query_optional_value::<i64>("SELECT count(*) FROM f", ()).await, Ok(Some(1)), "{sql}");
            let nested = tx.begin().await.unwrap();
            nested.query("SELECT 'two'", ()).await.unwrap();
            nested.commit().await.unwrap();
        }
        tx.execute("UPDATE switch SET fails = 0", ()).await.unwrap();
        tx.execute("INSERT INTO f VALUES ('three')", ()).await.unwrap();
        tx.commit().await.unwrap();
        let found: Vec<(String,)> =
            db.query_as("SELECT body FROM f WHERE f MATCH 'one OR two OR three'", ()).await.unwrap();
        assert_eq!(found, [("one".into(),), ("three".into(),)]);
        assert_eq!(count(&db).await, 1);
        db.close().await.unwrap();
    });
}

#[test]
fn what_a_virtual_table_has_collected_is_not_written_on_the_callers_thread() {
    let file = TestFile::new();
    let threads: Arc<Mutex<Vec<ThreadId>>> = Arc::default();
    // One thread, which is the caller's.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let db = known(file.options()).await;
        let noted = threads.clone();
        db.write_with(move |tx| {
            tx.create_scalar_function("note", 0, FunctionFlags::SQLITE_UTF8, move |_| {
                noted.lock().unwrap().push(std::thread::current().id());
                Ok(0)
            })?;
            Ok::<_, Error>(())
        })
        .await
        .unwrap();
        // Full-text search keeps the terms of new rows in memory until a savepoint is opened. It writes them then: here to
        // this table. (A trigger on a table of FTS5 would make SQLite flush in a flush.)
        db.execute_script(
            "CREATE VIRTUAL TABLE f USING fts4 (body);
             CREATE TRIGGER noting AFTER INSERT ON f_segdir BEGIN SELECT note(); END",
        )
        .await
        .unwrap();
        for _ in 0..10 {
            db.query(FIND, (1,)).await.unwrap();
        }
        let mut tx = db.begin().await.unwrap();
        let before = stays(&db);
        while stays(&db) < before + 20 {
            tx.execute("INSERT INTO f VALUES ('one two three')", ()).await.unwrap();
            tx.query(FIND, (1,)).await.unwrap();
            tx.execute("INSERT INTO f VALUES ('four five six')", ()).await.unwrap();
            let nested = tx.begin().await.unwrap();
            nested.execute("INSERT INTO f VALUES ('seven eight')", ()).await.unwrap();
            nested.commit().await.unwrap();
            // It fails at its last row, and keeps the others.
            let failed = tx.execute(OR_FAIL, ()).await.unwrap_err();
            assert_eq!(failed.kind(), ErrorKind::Constraint, "{failed}");
            tx.query(FIND, (1,)).await.unwrap();
        }
        tx.commit().await.unwrap();
        db.close().await.unwrap();
    });
    let threads = threads.lock().unwrap();
    assert!(threads.len() > 20, "nothing was noted: {}", threads.len());
    assert!(!threads.contains(&std::thread::current().id()));
}
