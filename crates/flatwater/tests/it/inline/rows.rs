//! Rows of parameters and batches that run on their caller's thread: nothing else about them changes.

use std::time::Duration;

use flatwater::options::{Durability, Inline, InlineLimits};
use flatwater::{Database, ErrorKind, Options, Params, params};

use crate::support::{TestFile, count, integer, run, unhurried, until};

const INSERT: &str = "INSERT INTO t VALUES (?, ?)";
const RETURNING: &str = "INSERT INTO t VALUES (?, ?) RETURNING a + 1";

async fn open(options: Options) -> Database {
    let db = options.open().await.unwrap();
    db.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b)", ()).await.unwrap();
    db
}

/// The rows that come next: three of them.
struct Next(i64);

impl Next {
    fn rows(&mut self) -> Vec<(i64, i64)> {
        let first = self.0;
        self.0 += 3;
        (first..self.0).map(|number| (number, -number)).collect()
    }

    fn batch(&mut self) -> Vec<(&'static str, Params)> {
        let texts = [INSERT, RETURNING, INSERT];
        texts.into_iter().zip(self.rows()).map(|(sql, (a, b))| (sql, params![a, b].unwrap())).collect()
    }
}

/// Calls until so many calls ran on their caller's thread. Nothing else of these tests does meanwhile.
async fn until_here<T>(db: &Database, calls: u64, mut call: impl AsyncFnMut() -> T) {
    let before = db.stats().inline.writes;
    while db.stats().inline.writes < before + calls {
        call().await;
    }
}

#[test]
fn rows_and_batches_run_on_their_callers_thread_and_are_seen_at_once() {
    let file = TestFile::new();
    run(async {
        let db = open(unhurried(file.options())).await;
        let mut live = db.live("SELECT count(*) FROM t", ());
        assert!(live.next().await.is_some());
        let mut next = Next(0);
        until_here(&db, 20, async || {
            assert_eq!(db.execute_many(INSERT, next.rows()).await, Ok(3));
            assert_eq!(count(&db).await, next.0);
        })
        .await;
        until_here(&db, 20, async || {
            let first = next.0;
            let results = db.batch(next.batch()).await.unwrap();
            let told = results.iter().map(|result| {
                let row = result.rows.as_ref().map(|rows| rows.iter().next().unwrap().get::<i64>(0).unwrap());
                (result.changes, result.last_insert_rowid, row)
            });
            let expected = [None, Some(first + 2), None].into_iter().zip(first..).map(|(row, a)| (1, Some(a), row));
            assert!(told.eq(expected), "{results:?}");
            assert_eq!(count(&db).await, next.0);
        })
        .await;
        loop {
            let seen = live.next().await.unwrap().unwrap();
            if seen.iter().next().unwrap().get::<i64>(0).unwrap() == next.0 {
                break;
            }
        }
        assert_eq!(integer(&file.plain(), "SELECT sum(a + b) FROM t"), 0);
        db.close().await.unwrap();
    });
}

#[test]
fn a_row_that_fails_is_named_and_undoes_the_others() {
    let file = TestFile::new();
    run(async {
        let db = open(unhurried(file.options())).await;
        let mut next = Next(0);
        until_here(&db, 3, async || db.execute_many(INSERT, next.rows()).await.unwrap()).await;
        until_here(&db, 3, async || db.batch(next.batch()).await.unwrap()).await;
        let rows = count(&db).await;
        while db.stats().inline.moved < 6 {
            let error = db.execute_many(INSERT, [(-1, 0), (-2, 0), (0, 0)]).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Constraint);
            assert!(error.message().starts_with("row 2, counted from 0: "), "{error}");
            let mut batch = next.batch();
            batch.push((INSERT, params![0, 0].unwrap()));
            let error = db.batch(batch).await.unwrap_err();
            assert_eq!((error.kind(), error.sql()), (ErrorKind::Constraint, Some(INSERT)));
            let error = db.execute_many(INSERT, [(-1, 0), (-2, 0), (-1, 0)]).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Constraint);
            assert_eq!(count(&db).await, rows);
        }
        assert_eq!(db.execute_many(RETURNING, [(-1, 0)]).await.unwrap_err().kind(), ErrorKind::Misuse);
        assert_eq!(db.execute_many(INSERT, [(-1,)]).await.unwrap_err().kind(), ErrorKind::Misuse);
        until_here(&db, 3, async || db.execute_many(INSERT, next.rows()).await.unwrap()).await;
        db.close().await.unwrap();
    });
}

/// SQLite leaves the transaction open when a deferred foreign key fails its COMMIT.
#[test]
fn a_commit_that_a_deferred_key_fails_leaves_nothing_open() {
    let file = TestFile::new();
    run(async {
        let db = open(unhurried(file.options())).await;
        let late = "CREATE TABLE late (a INTEGER PRIMARY KEY, p REFERENCES t (a) DEFERRABLE INITIALLY DEFERRED)";
        db.execute(late, ()).await.unwrap();
        db.execute(INSERT, (1, 0)).await.unwrap();
        let insert = "INSERT INTO late VALUES (?, ?)";
        let mut number = 0;
        let mut rows = |parent: i64| {
            number += 2;
            [(number, 1), (number + 1, parent)]
        };
        until_here(&db, 3, async || db.execute_many(insert, rows(1)).await.unwrap()).await;
        let kept = db.query_value::<i64>("SELECT count(*) FROM late", ()).await.unwrap();
        while db.stats().inline.moved < 3 {
            let error = db.execute_many(insert, rows(9)).await.unwrap_err();
            assert_eq!(
                (error.kind(), error.sqlite_name()),
                (ErrorKind::Constraint, Some("SQLITE_CONSTRAINT_FOREIGNKEY"))
            );
        }
        assert_eq!(db.query_value::<i64>("SELECT count(*) FROM late", ()).await, Ok(kept));
        file.plain().execute_batch("BEGIN IMMEDIATE; ROLLBACK").unwrap();
        db.close().await.unwrap();
    });
}

#[test]
fn what_is_not_short_in_all_is_a_workers() {
    let short = InlineLimits::default().time(Duration::from_millis(2));
    for durability in [Durability::Normal, Durability::Full] {
        let file = TestFile::new();
        run(async {
            let db = open(file.options().durability(durability).tuning(|t| t.inline(Inline::Auto(short)))).await;
            let mut next = Next(0);
            if durability == Durability::Normal {
                until_here(&db, 3, async || db.execute_many(INSERT, next.rows()).await.unwrap()).await;
            } else {
                for _ in 0..20 {
                    db.execute_many(INSERT, next.rows()).await.unwrap();
                }
            }
            let before = db.stats().inline.writes;
            // At 100 ns at least, they are expected to take longer than four times the limit.
            let many = (0..100_000).map(|number| (number + 1_000_000, 0));
            assert_eq!(db.execute_many(INSERT, many).await, Ok(100_000));
            let long = "x".repeat(40 << 10);
            assert_eq!(db.execute_many(INSERT, [(-1, &*long), (-2, &*long)]).await, Ok(2));
            if durability == Durability::Full {
                db.execute_many(INSERT, next.rows()).await.unwrap();
            }
            assert_eq!(db.stats().inline.writes, before);
            db.close().await.unwrap();
        });
    }
}

#[test]
fn a_foreign_lock_blocks_no_caller_and_its_rows_are_written_once() {
    let file = TestFile::new();
    // One thread: a caller that waited for the lock would keep it from being let go.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let db = open(unhurried(file.options().busy_timeout(Duration::from_secs(60)))).await;
        let (foreign, mut next) = (file.plain(), Next(0));
        until_here(&db, 3, async || db.execute_many(INSERT, next.rows()).await.unwrap()).await;
        while db.stats().inline.moved < 3 {
            foreign.execute_batch("BEGIN IMMEDIATE").unwrap();
            let (executed, ()) = tokio::join!(db.execute_many(INSERT, next.rows()), async {
                until(|| db.stats().writes_waiting == 0).await;
                foreign.execute_batch("COMMIT").unwrap();
            });
            assert_eq!(executed, Ok(3));
        }
        assert_eq!(integer(&foreign, "SELECT count(*) FROM t"), next.0);
        db.close().await.unwrap();
    });
}

#[test]
fn a_schema_that_another_program_changed_is_seen() {
    let file = TestFile::new();
    run(async {
        let db = open(unhurried(file.options())).await;
        let (foreign, mut next) = (file.plain(), Next(0));
        foreign.execute_batch("CREATE TABLE log (a)").unwrap();
        for trigger in 0..5 {
            until_here(&db, 3, async || db.execute_many(INSERT, next.rows()).await.unwrap()).await;
            let body = "AFTER INSERT ON t BEGIN INSERT INTO log VALUES (new.a); END";
            foreign.execute_batch(&format!("CREATE TRIGGER trigger_{trigger} {body}")).unwrap();
            let before = integer(&foreign, "SELECT count(*) FROM log");
            assert_eq!(db.execute_many(INSERT, next.rows()).await, Ok(3));
            assert_eq!(integer(&foreign, "SELECT count(*) FROM log"), before + 3);
            foreign.execute_batch(&format!("DROP TRIGGER trigger_{trigger}")).unwrap();
        }
        db.close().await.unwrap();
    });
}

#[test]
fn rows_that_turn_out_long_are_undone_and_written_by_a_worker() {
    const ROWS: i64 = 1_000;
    let file = TestFile::new();
    run(async {
        let limits = InlineLimits::default().time(Duration::from_micros(500));
        let db = open(file.options().tuning(|t| t.inline(Inline::Auto(limits)))).await;
        let insert = "INSERT INTO t VALUES (?, zeroblob(?))";
        let rows = |bytes: i64| (0..ROWS).map(move |number| (number, bytes));
        while db.stats().inline.interrupted == 0 {
            db.execute("DELETE FROM t", ()).await.unwrap();
            for number in 0..20 {
                db.execute_many(insert, [(-number, 1), (number + ROWS, 1)]).await.unwrap();
            }
            db.execute("DELETE FROM t WHERE a < 1000", ()).await.unwrap();
            assert_eq!(db.execute_many(insert, rows(60_000)).await, Ok(ROWS as u64));
            assert_eq!(
                db.query_value::<i64>("SELECT sum(length(b)) FROM t WHERE a < 1000", ()).await,
                Ok(ROWS * 60_000)
            );
        }
        db.close().await.unwrap();
    });
}
