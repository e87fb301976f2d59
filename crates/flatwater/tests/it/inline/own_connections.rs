//! Connections of callers: what is short runs on the thread of their callers, and nothing else about it changes.

use std::future::Future;
use std::time::{Duration, Instant};

use flatwater::options::Durability;
use flatwater::{Connection, ConnectionOptions, Database, ErrorKind, Options};

use crate::support::{TestFile, count, integer, integrity, run, unhurried, until};

const INSERT: &str = "INSERT INTO t VALUES (?, ?)";
const DELETE: &str = "DELETE FROM t WHERE a = ?";

/// Opens a database, and a connection on which a write of one row is known to be short.
async fn known(options: Options) -> (Database, Connection) {
    let db = unhurried(options).open().await.unwrap();
    db.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b)", ()).await.unwrap();
    let own = patient(&db);
    learn(&own).await;
    (db, own)
}

fn patient(db: &Database) -> Connection {
    ConnectionOptions::new().busy_timeout(Duration::from_secs(3600)).connect(db)
}

async fn learn(own: &Connection) {
    for begin in [None, Some("BEGIN"), Some("BEGIN IMMEDIATE")] {
        for _ in 0..10 {
            for (sql, params) in [(INSERT, vec![-1, 0]), (DELETE, vec![-1])] {
                // On a busy machine the limit of an idle transaction may end one, which is then begun again.
                while let Err(ended) = run_once(own, begin, sql, params.clone()).await {
                    assert_eq!(ended.kind(), ErrorKind::Expired, "{ended}");
                }
            }
        }
    }
}

async fn run_once(own: &Connection, begin: Option<&str>, sql: &str, params: Vec<i32>) -> flatwater::Result<()> {
    if let Some(begin) = begin {
        own.execute(begin, ()).await?;
    }
    own.execute(sql, params).await?;
    if begin.is_some() {
        own.execute("COMMIT", ()).await?;
    }
    Ok(())
}

/// Waits for a call. Also returns whether it ran on this thread: nothing else of these tests does at that time.
async fn watched<T>(db: &Database, call: impl Future<Output = flatwater::Result<T>>) -> (T, bool) {
    let before = db.stats().inline.writes;
    let answer = call.await.unwrap();
    (answer, db.stats().inline.writes > before)
}

/// Runs a statement until it runs on this thread: now and then another one is not done yet with what was before.
async fn until_here(db: &Database, own: &Connection, sql: &str) -> i32 {
    for time in 1..10_000 {
        if watched(db, own.execute(sql, ())).await.1 {
            return time;
        }
    }
    panic!("{sql} never runs on the thread of its caller");
}

#[test]
fn a_write_that_only_own_connections_run_becomes_short() {
    let file = TestFile::new();
    run(async {
        let (db, own) = known(file.options()).await;
        own.execute(INSERT, (1, 0)).await.unwrap();
        let mut expected = until_here(&db, &own, "UPDATE t SET b = b + 1 WHERE a = 1").await;
        own.execute("BEGIN", ()).await.unwrap();
        expected += 2 * until_here(&db, &own, "UPDATE t SET b = b + 2 WHERE a = 1").await;
        own.execute("COMMIT", ()).await.unwrap();
        // It has a loop, so it is short only where all of it can be undone.
        expected += 3 * until_here(&db, &own, "UPDATE t SET b = b + 3 WHERE a BETWEEN 1 AND 2").await;
        assert_eq!(db.query_value::<i32>("SELECT b FROM t", ()).await.unwrap(), expected);
        db.close().await.unwrap();
    });
}

#[test]
fn a_transaction_as_text_begins_runs_and_ends_on_its_callers_thread() {
    let file = TestFile::new();
    run(async {
        let (db, own) = known(file.options()).await;
        let mut live = db.live("SELECT count(*) FROM t", ());
        assert!(live.next().await.is_some());
        let mut rows = 0;
        for begin in ["BEGIN", "begin deferred transaction", "BEGIN IMMEDIATE", "BEGIN EXCLUSIVE;"] {
            for end in ["COMMIT", "END TRANSACTION", "ROLLBACK"] {
                let mut here = 0;
                for time in 0..1000 {
                    let (_, has_begun_here) = watched(&db, own.execute(begin, ())).await;
                    assert!(own.in_transaction());
                    let (inserted, has_run_here) = watched(&db, own.execute(INSERT, (rows, rows))).await;
                    assert_eq!((inserted.changes, inserted.last_insert_rowid), (1, Some(rows)));
                    let (_, has_ended_here) = watched(&db, own.execute(end, ())).await;
                    assert!(!own.in_transaction());
                    rows += i64::from(end != "ROLLBACK");
                    assert_eq!(count(&db).await, rows, "a reader sees it at once");
                    here += i32::from(has_begun_here && has_run_here && has_ended_here);
                    if here == 3 {
                        break;
                    }
                    assert!(time < 999, "{begin}, {end}");
                }
            }
        }
        loop {
            let seen = live.next().await.unwrap().unwrap();
            if seen.iter().next().unwrap().get::<i64>(0).unwrap() == rows {
                break;
            }
        }
        // SQLite refuses it, wherever it runs.
        for refused in ["COMMIT", "ROLLBACK"] {
            let error = own.execute(refused, ()).await.unwrap_err();
            assert!(error.message().contains("no transaction is active"), "{error}");
        }
        own.execute("BEGIN", ()).await.unwrap();
        let error = own.execute("BEGIN", ()).await.unwrap_err();
        assert!(error.message().contains("within a transaction"), "{error}");
        own.execute("ROLLBACK", ()).await.unwrap();
        db.close().await.unwrap();
    });
}

#[test]
fn the_writer_is_taken_only_if_it_is_free_and_is_free_again_after_it() {
    let file = TestFile::new();
    run(async {
        let (db, own) = known(file.options()).await;
        for sql in ["BEGIN IMMEDIATE", "INSERT INTO t (b) VALUES (1)"] {
            until_here(&db, &own, "INSERT INTO t (b) VALUES (1)").await;
            let before = count(&db).await;
            let tx = db.begin().await.unwrap();
            let mut waits = Box::pin(own.execute(sql, ()));
            assert!(futures_util::poll!(waits.as_mut()).is_pending(), "{sql}");
            until(|| db.stats().writes_waiting == 1).await;
            tx.execute(INSERT, (-5, 0)).await.unwrap();
            tx.rollback().await.unwrap();
            waits.await.unwrap();
            assert_eq!(own.in_transaction(), sql.starts_with("BEGIN"));
            if own.in_transaction() {
                let mut pool = Box::pin(db.execute(INSERT, (-6, 0)));
                assert!(futures_util::poll!(pool.as_mut()).is_pending());
                own.execute("COMMIT", ()).await.unwrap();
                pool.await.unwrap();
                db.execute(DELETE, (-6,)).await.unwrap();
            }
            assert_eq!(count(&db).await, before + i64::from(sql.starts_with("INSERT")));
        }
        // A BEGIN takes nothing, and its first write takes the writer.
        own.execute("BEGIN", ()).await.unwrap();
        db.execute(INSERT, (-7, 0)).await.unwrap();
        own.execute(DELETE, (-7,)).await.unwrap();
        let mut pool = Box::pin(db.execute(INSERT, (-7, 0)));
        assert!(futures_util::poll!(pool.as_mut()).is_pending());
        own.execute("ROLLBACK", ()).await.unwrap();
        assert!(pool.await.is_err(), "it was rolled back, so the row is there");
        db.close().await.unwrap();
    });
}

/// Each runs and is committed, on a helper thread.
#[test]
fn what_is_not_short_is_no_callers_work() {
    for (durability, prepare) in [
        (Durability::Full, "SELECT 1"),
        (Durability::Normal, "PRAGMA synchronous = FULL"),
        (Durability::Normal, "PRAGMA wal_autocheckpoint = 1"),
        (Durability::Normal, "CREATE TEMP TABLE tmp (a)"),
    ] {
        let file = TestFile::new();
        run(async {
            let (db, own) = known(file.options().durability(durability)).await;
            own.run(prepare, ()).await.unwrap();
            learn(&own).await;
            let makes_temp = prepare.starts_with("CREATE");
            for number in 0..5 {
                let (_, was_here) = watched(&db, own.execute(INSERT, (number, 0))).await;
                assert!(!was_here || makes_temp, "{prepare}");
                own.execute("BEGIN", ()).await.unwrap();
                let more = "INSERT INTO t SELECT ? + 100, 0 FROM t LIMIT 1";
                own.execute(more, (number,)).await.unwrap();
                // What may have written a virtual table of the TEMP schema is not committed here either.
                let (_, was_here) = watched(&db, own.execute("COMMIT", ())).await;
                assert!(!was_here, "{prepare}");
            }
            db.close().await.unwrap();
        });
        assert_eq!(integer(&file.plain(), "SELECT count(*) FROM t"), 10, "{prepare}");
    }
}

#[test]
fn what_goes_beyond_tables_or_fails_at_its_commit_is_ended_by_a_helper_thread() {
    let file = TestFile::new();
    run(async {
        let (db, own) = known(file.options().foreign_keys(true)).await;
        db.execute_script(
            "CREATE VIRTUAL TABLE f USING fts4 (body);
             CREATE TABLE child (a REFERENCES t DEFERRABLE INITIALLY DEFERRED)",
        )
        .await
        .unwrap();
        for round in 0..5 {
            for sql in ["INSERT INTO f VALUES ('one')".to_owned(), format!("CREATE TABLE u{round} (a)")] {
                own.execute("BEGIN", ()).await.unwrap();
                own.execute(sql.as_str(), ()).await.unwrap();
                own.execute(INSERT, (round, 0)).await.unwrap();
                own.execute(DELETE, (round,)).await.unwrap();
                let (_, was_here) = watched(&db, own.execute("COMMIT", ())).await;
                assert!(!was_here, "{sql}");
            }
            own.execute("BEGIN", ()).await.unwrap();
            own.execute("INSERT INTO child VALUES (77)", ()).await.unwrap();
            assert_eq!(own.execute("COMMIT", ()).await.unwrap_err().kind(), ErrorKind::Constraint);
            assert!(own.in_transaction());
            own.execute(INSERT, (77, 0)).await.unwrap();
            own.execute("COMMIT", ()).await.unwrap();
            own.execute("DELETE FROM child", ()).await.unwrap();
            own.execute(DELETE, (77,)).await.unwrap();
        }
        assert_eq!(db.query_value::<i64>("SELECT count(*) FROM f WHERE body MATCH 'one'", ()).await.unwrap(), 5);
        db.close().await.unwrap();
        assert_eq!(integrity(&file.plain()), "ok");
    });
}

#[test]
fn what_fails_here_fails_as_on_a_helper_thread_and_leaves_nothing() {
    let file = TestFile::new();
    run(async {
        let (db, own) = known(file.options()).await;
        db.execute("CREATE TABLE fails (a UNIQUE ON CONFLICT FAIL)", ()).await.unwrap();
        own.execute(INSERT, (1, 1)).await.unwrap();
        for _ in 0..5 {
            assert_eq!(own.execute(INSERT, (1, 2)).await.unwrap_err().kind(), ErrorKind::Constraint);
            for (sql, left) in
                [("INSERT INTO fails VALUES (1), (2), (1)", 2), ("INSERT OR FAIL INTO t VALUES (9, 0), (1, 0)", 1)]
            {
                assert_eq!(own.execute(sql, ()).await.unwrap_err().kind(), ErrorKind::Constraint);
                let table = if left == 2 { "fails" } else { "t WHERE a = 9" };
                let there: i64 = db.query_value(&*format!("SELECT count(*) FROM {table}"), ()).await.unwrap();
                assert_eq!(there, left, "{sql}");
                own.execute(&*format!("DELETE FROM {table}"), ()).await.unwrap();
            }
            own.execute("BEGIN", ()).await.unwrap();
            assert_eq!(own.execute(INSERT, (1, 2)).await.unwrap_err().kind(), ErrorKind::Constraint);
            assert!(own.in_transaction());
            own.execute(INSERT, (2, 2)).await.unwrap();
            own.execute("ROLLBACK", ()).await.unwrap();
            // A definition by somebody else is seen.
            db.execute("ALTER TABLE t RENAME COLUMN b TO c", ()).await.unwrap();
            own.execute("UPDATE t SET c = 3 WHERE a = 1", ()).await.unwrap();
            assert_eq!(own.execute("UPDATE t SET b = 3", ()).await.unwrap_err().kind(), ErrorKind::Sql);
            file.plain().execute_batch("ALTER TABLE t RENAME COLUMN c TO b").unwrap();
            own.execute("UPDATE t SET b = 3 WHERE a = 1", ()).await.unwrap();
            assert_eq!(own.execute("UPDATE t SET c = 3", ()).await.unwrap_err().kind(), ErrorKind::Sql);
        }
        assert_eq!(count(&db).await, 1);
        db.close().await.unwrap();
    });
}

#[test]
fn a_transaction_that_began_here_and_is_idle_is_rolled_back_and_that_is_told_once() {
    let file = TestFile::new();
    run(async {
        let db =
            unhurried(file.options().tuning(|t| t.transaction_idle(Duration::from_millis(50)))).open().await.unwrap();
        db.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b)", ()).await.unwrap();
        let own = patient(&db);
        own.query("SELECT * FROM t", ()).await.unwrap();
        for (number, begin) in ["BEGIN", "BEGIN IMMEDIATE"].into_iter().enumerate() {
            while !watched(&db, own.execute(begin, ())).await.1 {
                // It is over already if the machine was busy for as long.
                let _ = own.execute("ROLLBACK", ()).await;
            }
            // It waits for the writer.
            db.execute(INSERT, (i64::try_from(number).unwrap(), 0)).await.unwrap();
            until(|| !own.in_transaction()).await;
            let error = own.execute(INSERT, (3, 3)).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Expired, "{error}");
            own.execute(INSERT, (3, 3)).await.unwrap();
            own.execute(DELETE, (3,)).await.unwrap();
        }
        assert_eq!(count(&db).await, 2);
        db.close().await.unwrap();
    });
}

/// The limit may be looked at while a statement runs on its caller's thread: then it is looked at again.
#[test]
fn a_transaction_that_was_in_use_at_its_limit_is_rolled_back_when_it_is_idle() {
    let file = TestFile::new();
    run(async {
        let (db, own) = known(file.options().tuning(|t| t.transaction_idle(Duration::from_millis(2)))).await;
        for _ in 0..20 {
            if own.execute("BEGIN", ()).await.is_err() {
                continue;
            }
            // A look comes in the middle of one of them. It may be over by then, if the machine was busy for as long.
            let began = Instant::now();
            while began.elapsed() < Duration::from_millis(5) {
                let _ = own.execute("INSERT OR REPLACE INTO t VALUES (1, 1)", ()).await;
            }
            until(|| !own.in_transaction()).await;
        }
        db.close().await.unwrap();
    });
}

/// Everybody counts up one value, in transactions and outside of them.
#[test]
fn writers_of_all_kinds_take_turns_and_nothing_is_lost() {
    const TIMES: i64 = 100;
    let file = TestFile::new();
    run(async {
        let (db, own) = known(file.options()).await;
        own.execute(INSERT, (1, 0)).await.unwrap();
        let update = "UPDATE t SET b = b + 1 WHERE a = 1";
        let tasks: Vec<_> = (0..6)
            .map(|kind| {
                let db = db.clone();
                tokio::spawn(async move {
                    let own = patient(&db);
                    for _ in 0..TIMES {
                        match kind % 3 {
                            0 => drop(db.execute(update, ()).await.unwrap()),
                            1 => drop(own.execute(update, ()).await.unwrap()),
                            _ => {
                                own.execute("BEGIN IMMEDIATE", ()).await.unwrap();
                                let before: i64 = own.query_value("SELECT b FROM t WHERE a = 1", ()).await.unwrap();
                                own.execute("UPDATE t SET b = ? WHERE a = 1", (before + 1,)).await.unwrap();
                                own.execute("COMMIT", ()).await.unwrap();
                            }
                        }
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(db.query_value::<i64>("SELECT b FROM t", ()).await.unwrap(), 6 * TIMES);
        db.close().await.unwrap();
        assert_eq!(integrity(&file.plain()), "ok");
    });
}
