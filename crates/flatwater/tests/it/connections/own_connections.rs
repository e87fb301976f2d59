//! Connections of the caller's own: what is allowed on them, whom they wait for, and how they end.

use std::task::Poll;
use std::time::Duration;

use flatwater::calls::CancelOutcome;
use flatwater::rusqlite::functions::FunctionFlags;
use flatwater::{Connection, ConnectionOptions, Database, ErrorKind};

use crate::place::{Place, in_both_places};
use crate::support::{ENDLESS, TestFile, as_child, count, empty_table, integer, run, unhurried, until};

in_both_places!(
    what_is_refused_on_pooled_connections_is_allowed_here,
    a_transaction_is_text,
    a_live_query_sees_what_is_committed_and_not_what_is_rolled_back,
    a_failed_statement_leaves_the_transaction_and_a_failed_batch_leaves_nothing_of_itself,
    a_script_runs_statement_by_statement,
    run_takes_any_statement_and_a_batch_of_one_is_a_batch,
    a_batch_runs_again_if_one_of_its_reads_has_become_a_write,
    dropping_it_rolls_back_and_gives_the_writer_back,
    an_idle_transaction_is_rolled_back_and_that_is_told_once,
    a_statement_that_runs_is_interrupted_and_its_connection_goes_on,
    a_closed_connection_says_so_and_may_be_closed_again,
);

const INSERT: &str = "INSERT INTO t VALUES (?)";
const HOUR: Duration = Duration::from_secs(3600);

fn patient() -> ConnectionOptions {
    ConnectionOptions::new().busy_timeout(HOUR)
}

async fn rows(of: &flatwater::Session) -> i64 {
    of.query_value("SELECT count(*) FROM t", ()).await.unwrap()
}

async fn what_is_refused_on_pooled_connections_is_allowed_here(place: &Place) {
    let db = empty_table(place.options()).await;
    let own = db.connection();
    own.execute("CREATE TEMP TABLE tmp (a)", ()).await.unwrap();
    own.execute("INSERT INTO tmp VALUES (7)", ()).await.unwrap();
    own.execute("ATTACH ':memory:' AS other", ()).await.unwrap();
    own.execute("CREATE TABLE other.o (a)", ()).await.unwrap();
    own.execute("PRAGMA recursive_triggers = ON", ()).await.unwrap();
    own.execute("SAVEPOINT a", ()).await.unwrap();
    assert!(own.in_transaction());
    own.execute(INSERT, (1,)).await.unwrap();
    own.execute("ROLLBACK TO a", ()).await.unwrap();
    own.execute("RELEASE a", ()).await.unwrap();
    assert!(!own.in_transaction());
    let pragma: i64 = own.query_value("PRAGMA recursive_triggers", ()).await.unwrap();
    let temp: i64 = own.query_value("SELECT a FROM tmp", ()).await.unwrap();
    let changes: i64 = own.query_value("SELECT changes() + total_changes()", ()).await.unwrap();
    assert_eq!((pragma, temp, rows(&own).await), (1, 7, 0));
    assert!(changes > 0 && own.total_changes() >= 2, "{changes}");
    for refused in ["PRAGMA journal_mode = DELETE", "PRAGMA locking_mode = EXCLUSIVE"] {
        assert_eq!(own.query(refused, ()).await.unwrap_err().kind(), ErrorKind::Misuse, "{refused}");
    }
    if place.has_readers() {
        assert_eq!(db.query("SELECT * FROM tmp", ()).await.unwrap_err().kind(), ErrorKind::Sql);
        assert_eq!(db.query_value::<i64>("PRAGMA recursive_triggers", ()).await.unwrap(), 0);
    }
    own.close().await.unwrap();
    db.close().await.unwrap();
}

async fn a_transaction_is_text(place: &Place) {
    let db = empty_table(place.options()).await;
    let own = db.connection();
    for begin in ["BEGIN", "BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"] {
        own.execute(begin, ()).await.unwrap();
        assert!(own.in_transaction());
        own.execute(INSERT, (1,)).await.unwrap();
        own.execute("ROLLBACK", ()).await.unwrap();
        assert!(!own.in_transaction());
        own.execute(begin, ()).await.unwrap();
        let inserted = own.execute(INSERT, (2,)).await.unwrap();
        assert_eq!((inserted.changes, inserted.last_insert_rowid.is_some()), (1, true));
        own.execute("COMMIT", ()).await.unwrap();
        // The writer is free again.
        db.execute(INSERT, (3,)).await.unwrap();
    }
    assert_eq!((rows(&own).await, count(&db).await), (6, 6));
    let error = own.execute("COMMIT", ()).await.unwrap_err();
    assert!(error.message().contains("no transaction is active"), "{error}");
}

async fn a_live_query_sees_what_is_committed_and_not_what_is_rolled_back(place: &Place) {
    let db = empty_table(place.options()).await;
    db.execute("CREATE TABLE unread (a)", ()).await.unwrap();
    let mut live = db.live("SELECT count(*) FROM t", ());
    let mut next = async || {
        let rows = live.next().await.unwrap().unwrap();
        rows.iter().next().unwrap().get::<i64>(0).unwrap()
    };
    assert_eq!(next().await, 0);
    let own = db.connection();
    own.execute(INSERT, (1,)).await.unwrap();
    assert_eq!(next().await, 1);
    own.execute("BEGIN", ()).await.unwrap();
    own.execute(INSERT, (2,)).await.unwrap();
    own.execute(INSERT, (3,)).await.unwrap();
    own.execute("COMMIT", ()).await.unwrap();
    assert_eq!(next().await, 3);
    until(|| db.stats().live.pending == 0).await;
    let runs = db.stats().live.runs;
    own.execute("INSERT INTO unread VALUES (1)", ()).await.unwrap();
    own.execute_many("INSERT INTO unread VALUES (?)", [(1,), (2,)]).await.unwrap();
    until(|| db.stats().live.pending == 0).await;
    // The tables that it writes are known, as for the writer's.
    assert_eq!(db.stats().live.runs, runs);
    own.execute("CREATE TABLE new (a)", ()).await.unwrap();
    own.execute_many(INSERT, [(4,), (5,)]).await.unwrap();
    while next().await != 5 {}
}

async fn a_failed_statement_leaves_the_transaction_and_a_failed_batch_leaves_nothing_of_itself(place: &Place) {
    let db = place.open().await;
    db.execute("CREATE TABLE t (a UNIQUE)", ()).await.unwrap();
    let own = db.connection();
    let two_of_one = || [(INSERT, (8,)), (INSERT, (1,))];
    own.execute(INSERT, (1,)).await.unwrap();
    assert_eq!(own.batch(two_of_one()).await.unwrap_err().kind(), ErrorKind::Constraint);
    assert_eq!(own.execute_many(INSERT, [(8,), (1,)]).await.unwrap_err().kind(), ErrorKind::Constraint);
    assert_eq!((rows(&own).await, own.in_transaction()), (1, false));
    own.execute("BEGIN", ()).await.unwrap();
    own.execute(INSERT, (2,)).await.unwrap();
    assert_eq!(own.execute(INSERT, (1,)).await.unwrap_err().kind(), ErrorKind::Constraint);
    assert_eq!(own.batch(two_of_one()).await.unwrap_err().kind(), ErrorKind::Constraint);
    assert_eq!(
        own.batch([("INSERT INTO t VALUES (9)", ()), ("COMMIT", ())]).await.unwrap_err().kind(),
        ErrorKind::Misuse
    );
    assert!(own.in_transaction());
    own.batch([(INSERT, (3,)), (INSERT, (4,))]).await.unwrap();
    own.execute("COMMIT", ()).await.unwrap();
    assert_eq!(rows(&own).await, 4);
    own.execute("BEGIN", ()).await.unwrap();
    assert_eq!(
        own.execute("INSERT OR ROLLBACK INTO t VALUES (1)", ()).await.unwrap_err().kind(),
        ErrorKind::Constraint
    );
    assert!(!own.in_transaction());
    db.execute(INSERT, (5,)).await.unwrap();
}

async fn a_script_runs_statement_by_statement(place: &Place) {
    let db = empty_table(place.options()).await;
    let own = db.connection();
    own.execute_script("BEGIN; INSERT INTO t VALUES (1); COMMIT; SELECT 1; BEGIN; INSERT INTO t VALUES (2);")
        .await
        .unwrap();
    assert!(own.in_transaction());
    let error = own.execute_script("INSERT INTO t VALUES (3); nonsense; INSERT INTO t VALUES (4)").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Sql);
    own.execute_script("COMMIT").await.unwrap();
    assert_eq!(count(&db).await, 3);
}

async fn run_takes_any_statement_and_a_batch_of_one_is_a_batch(place: &Place) {
    let db = empty_table(place.options()).await;
    let own = db.connection();
    let one = async |sql: &str| own.run(sql, ()).await.unwrap();
    assert!(one("BEGIN").await.rows.is_none() && own.in_transaction());
    let inserted = one("INSERT INTO t VALUES (1), (2) RETURNING a").await;
    assert_eq!((inserted.changes, inserted.rows.unwrap().len()), (2, 2));
    assert_eq!(one("SELECT * FROM t").await.rows.unwrap().len(), 2);
    assert_eq!(one("UPDATE t SET a = 3").await.changes, 2);
    one("COMMIT").await;
    assert_eq!(own.batch([("BEGIN", ())]).await.unwrap_err().kind(), ErrorKind::Misuse);
    assert_eq!(own.batch([("SELECT * FROM t", ())]).await.unwrap().remove(0).rows.unwrap().len(), 2);
    assert_eq!(own.batch([("DELETE FROM t WHERE a = 3", ())]).await.unwrap().remove(0).changes, 2);
    assert_eq!(count(&db).await, 0);
}

async fn a_batch_runs_again_if_one_of_its_reads_has_become_a_write(place: &Place) {
    let db = empty_table(place.options()).await;
    let own = db.connection();
    own.execute(INSERT, (1,)).await.unwrap();
    // Without a table of this name SQLite runs a PRAGMA that may write (https://sqlite.org/pragma.html#pragfunc).
    let reads = || [("SELECT a FROM t", ()), ("SELECT count(*) FROM pragma_optimize", ())];
    for begin in [None, Some("BEGIN")] {
        own.execute("CREATE TABLE pragma_optimize (a)", ()).await.unwrap();
        own.batch(reads()).await.unwrap();
        own.execute("DROP TABLE pragma_optimize", ()).await.unwrap();
        if let Some(begin) = begin {
            own.execute(begin, ()).await.unwrap();
        }
        let results = own.batch(reads()).await.unwrap();
        assert_eq!(results.iter().map(|result| result.rows.as_ref().unwrap().len()).collect::<Vec<_>>(), [1, 1]);
        assert_eq!(own.in_transaction(), begin.is_some());
    }
    own.execute("COMMIT", ()).await.unwrap();
    db.close().await.unwrap();
}

async fn dropping_it_rolls_back_and_gives_the_writer_back(place: &Place) {
    let db = empty_table(place.options()).await;
    let own = db.connection();
    own.execute("BEGIN IMMEDIATE", ()).await.unwrap();
    own.execute(INSERT, (1,)).await.unwrap();
    let mut waits = Box::pin(db.execute(INSERT, (2,)));
    assert!(futures_util::poll!(waits.as_mut()).is_pending());
    drop(own);
    waits.await.unwrap();
    assert_eq!(count(&db).await, 1);
    // One that was never used has nothing to close.
    drop(db.connection());
    db.close().await.unwrap();
}

async fn an_idle_transaction_is_rolled_back_and_that_is_told_once(place: &Place) {
    let db = empty_table(place.options().tuning(|t| t.transaction_idle(Duration::from_millis(20)))).await;
    let own = db.connection();
    for rolls_back in [false, true] {
        // In one call, which cannot be idle.
        own.execute_script("BEGIN IMMEDIATE; INSERT INTO t VALUES (1)").await.unwrap();
        until(|| !own.in_transaction()).await;
        // The writer is free.
        db.execute("DELETE FROM t", ()).await.unwrap();
        if rolls_back {
            own.execute(" /* */ ROLLBACK", ()).await.unwrap();
        } else {
            let error = own.execute("COMMIT", ()).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Expired, "{error}");
        }
        assert_eq!(rows(&own).await, 0);
    }
}

async fn a_statement_that_runs_is_interrupted_and_its_connection_goes_on(place: &Place) {
    let db = empty_table(place.options()).await;
    let own = db.connection();
    rows(&own).await;
    own.interrupt();
    let mut endless = Box::pin(own.query(ENDLESS, ()));
    assert!(futures_util::poll!(endless.as_mut()).is_pending());
    let error = loop {
        own.interrupt();
        if let Poll::Ready(ended) = futures_util::poll!(endless.as_mut()) {
            break ended.unwrap_err();
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    };
    assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}");
    let late = own.query(ENDLESS, ()).timeout(Duration::from_millis(20)).await.unwrap_err();
    assert_eq!(late.kind(), ErrorKind::Timeout, "{late}");
    assert_eq!(rows(&own).await, 0);
}

async fn a_closed_connection_says_so_and_may_be_closed_again(place: &Place) {
    let db = empty_table(place.options()).await;
    let own = db.connection();
    own.execute("BEGIN IMMEDIATE", ()).await.unwrap();
    let mut last = Box::pin(own.execute(INSERT, (1,)));
    let sent = futures_util::poll!(last.as_mut());
    own.close().await.unwrap();
    if sent.is_pending() {
        last.await.unwrap();
    }
    own.close().await.unwrap();
    let error = own.query("SELECT 1", ()).await.unwrap_err();
    assert!(error.message().contains("closed") && error.kind() == ErrorKind::Misuse, "{error}");
    assert_eq!((count(&db).await, own.in_transaction()), (0, false));
}

#[test]
fn reads_take_no_turn_and_writes_take_turns_with_everybody() {
    run(async {
        let file = TestFile::new();
        let db = empty_table(file.options()).await;
        let (one, other) = (patient().connect(&db), patient().connect(&db));
        let tx = db.begin().await.unwrap();
        tx.execute(INSERT, (1,)).await.unwrap();
        assert_eq!((rows(&one).await, rows(&other).await), (0, 0));
        one.execute("BEGIN", ()).await.unwrap();
        let mut first = Box::pin(one.execute(INSERT, (2,)));
        let mut second = Box::pin(other.execute(INSERT, (3,)));
        assert!(futures_util::poll!(first.as_mut()).is_pending());
        until(|| db.stats().writes_waiting == 1).await;
        assert!(futures_util::poll!(second.as_mut()).is_pending());
        until(|| db.stats().writes_waiting == 2).await;
        tx.commit().await.unwrap();
        first.await.unwrap();
        assert!(futures_util::poll!(second.as_mut()).is_pending());
        one.execute("COMMIT", ()).await.unwrap();
        second.await.unwrap();
        assert_eq!(count(&db).await, 3);
    });
}

#[test]
fn a_snapshot_that_is_older_than_a_commit_cannot_be_written_and_the_writer_stays_free() {
    run(async {
        let file = TestFile::new();
        let db = empty_table(file.options()).await;
        let own = db.connection();
        own.execute("BEGIN", ()).await.unwrap();
        assert_eq!(rows(&own).await, 0);
        db.execute(INSERT, (1,)).await.unwrap();
        assert_eq!(rows(&own).await, 0);
        let error = own.execute(INSERT, (2,)).await.unwrap_err();
        assert_eq!(error.sqlite_name(), Some("SQLITE_BUSY_SNAPSHOT"), "{error}");
        assert!(own.in_transaction());
        db.execute(INSERT, (3,)).await.unwrap();
        own.execute("ROLLBACK", ()).await.unwrap();
        own.execute(INSERT, (4,)).await.unwrap();
        assert_eq!(count(&db).await, 3);
    });
}

#[test]
fn who_waits_for_the_writer_too_long_is_told_that_the_database_is_locked() {
    run(async {
        let file = TestFile::new();
        let db = empty_table(file.options()).await;
        let own = ConnectionOptions::new().busy_timeout(Duration::from_millis(10)).connect(&db);
        let tx = db.begin().await.unwrap();
        for sql in ["BEGIN IMMEDIATE", "INSERT INTO t VALUES (1)"] {
            let error = own.execute(sql, ()).await.unwrap_err();
            assert_eq!((error.sqlite_name(), error.message()), (Some("SQLITE_BUSY"), "database is locked"));
            assert!(!own.in_transaction());
        }
        let waits = patient().connect(&db);
        let late = waits.execute(INSERT, (1,)).timeout(Duration::from_millis(2)).await.unwrap_err();
        assert_eq!((late.kind(), rows(&waits).await, rows(&own).await), (ErrorKind::Timeout, 0, 0));
        tx.commit().await.unwrap();
        // The writer's thread may need longer than that to pass on the turn.
        while let Err(error) = own.execute(INSERT, (1,)).await {
            assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
        }
        assert_eq!(count(&db).await, 1);
    });
}

#[test]
fn a_deadline_that_passes_while_a_wait_for_the_writer_begins_ends_that() {
    run(async {
        let file = TestFile::new();
        let db = empty_table(file.options().tuning(|t| t.transaction_idle(HOUR))).await;
        let tx = db.begin().await.unwrap();
        let waits = patient().connect(&db);
        for round in 0..1_000 {
            let timeout = Duration::from_micros(round % 500);
            let late = waits.execute(INSERT, (1,)).timeout(timeout).await.unwrap_err();
            assert_eq!(late.kind(), ErrorKind::Timeout);
        }
        tx.commit().await.unwrap();
        assert_eq!(count(&db).await, 0);
    });
}

#[test]
fn a_statement_that_waits_for_the_writer_is_interrupted_and_its_connection_goes_on() {
    run(async {
        let file = TestFile::new();
        let db = empty_table(file.options()).await;
        let own = patient().connect(&db);
        own.execute("BEGIN", ()).await.unwrap();
        let tx = db.begin().await.unwrap();
        let mut write = Box::pin(own.execute(INSERT, (1,)));
        assert!(futures_util::poll!(write.as_mut()).is_pending());
        until(|| db.stats().writes_waiting == 1).await;
        own.interrupt();
        let error = write.await.unwrap_err();
        assert_eq!((error.kind(), error.sqlite_name()), (ErrorKind::Cancelled, Some("SQLITE_INTERRUPT")));
        assert!(own.in_transaction(), "the transaction has not begun to write");
        tx.commit().await.unwrap();
        own.execute(INSERT, (2,)).await.unwrap();
        own.execute("COMMIT", ()).await.unwrap();
        assert_eq!(count(&db).await, 1);
    });
}

#[test]
fn a_call_that_waits_and_is_cancelled_does_nothing_and_holds_nobody_up() {
    run(async {
        let file = TestFile::new();
        let db = empty_table(file.options()).await;
        let own = patient().connect(&db);
        let tx = db.begin().await.unwrap();
        let mut write = Box::pin(own.execute(INSERT, (1,)));
        assert!(futures_util::poll!(write.as_mut()).is_pending());
        until(|| db.stats().writes_waiting == 1).await;
        drop(write);
        assert_eq!(rows(&own).await, 0);
        let waits = own.execute(INSERT, (2,));
        let mut waits = Box::pin(waits);
        assert!(futures_util::poll!(waits.as_mut()).is_pending());
        tx.rollback().await.unwrap();
        waits.await.unwrap();
        assert_eq!(count(&db).await, 1);
    });
}

#[test]
fn a_write_whose_caller_leaves_is_undone_and_what_becomes_of_its_transaction_is_told() {
    run(async {
        let file = TestFile::new();
        let db = empty_table(file.options()).await;
        let own = db.connection();
        own.execute("BEGIN", ()).await.unwrap();
        own.execute(INSERT, (1,)).await.unwrap();
        let endless = format!("INSERT INTO t {ENDLESS}");
        let runs = db.stats().interrupted;
        let mut call = own.execute(endless.as_str(), ());
        let cancelled = loop {
            assert!(futures_util::poll!(&mut call).is_pending());
            tokio::time::sleep(Duration::from_millis(5)).await;
            match call.cancel() {
                CancelOutcome::Withdrawn => call = own.execute(endless.as_str(), ()),
                cancelled => break cancelled,
            }
        };
        assert_eq!(cancelled, CancelOutcome::WriteInterrupted);
        let error = own.execute(INSERT, (2,)).await.unwrap_err();
        assert!(error.message().contains("rolled back"), "{error}");
        assert!(!own.in_transaction() && db.stats().interrupted > runs);
        own.execute(INSERT, (3,)).await.unwrap();
        assert_eq!(count(&db).await, 1);
    });
}

#[test]
fn a_close_of_the_database_waits_for_a_transaction_and_ends_it() {
    run(async {
        let file = TestFile::new();
        for commits in [true, false] {
            let wait = if commits { HOUR } else { Duration::from_millis(20) };
            let db = empty_or_open(&file, wait).await;
            let (own, idle) = (db.connection(), db.connection());
            rows(&idle).await;
            own.execute("BEGIN IMMEDIATE", ()).await.unwrap();
            own.execute(INSERT, (i64::from(commits),)).await.unwrap();
            let mut close = Box::pin(db.close());
            assert!(futures_util::poll!(close.as_mut()).is_pending());
            if commits {
                own.execute("COMMIT", ()).await.unwrap();
            }
            close.await.unwrap();
            for closed in [&own, &idle] {
                assert_eq!(closed.query("SELECT 1", ()).await.unwrap_err().kind(), ErrorKind::Closed);
            }
            assert!(!file.beside("-wal").exists());
            assert_eq!(integer(&file.plain(), "SELECT count(*) FROM t"), 1);
        }
    });
}

async fn empty_or_open(file: &TestFile, close_wait: Duration) -> Database {
    let db = file.options().tuning(|t| t.close_wait(close_wait)).open().await.unwrap();
    db.execute("CREATE TABLE IF NOT EXISTS t (a)", ()).await.unwrap();
    db
}

#[test]
fn a_read_transaction_does_not_keep_a_close_beyond_its_time() {
    run(async {
        let file = TestFile::new();
        let db = empty_or_open(&file, Duration::from_millis(20)).await;
        let own = db.connection();
        own.execute("BEGIN", ()).await.unwrap();
        rows(&own).await;
        let mut endless = Box::pin(own.query(ENDLESS, ()));
        assert!(futures_util::poll!(endless.as_mut()).is_pending());
        db.close().await.unwrap();
        assert_eq!(endless.await.unwrap_err().kind(), ErrorKind::Closed);
    });
}

#[test]
fn the_first_write_after_begin_waits_for_another_writer_however_often_its_text_has_run() {
    let file = TestFile::new();
    run(async {
        let db = empty_table(file.options()).await;
        for rows in [false, true] {
            for _ in 0..5 {
                let own = patient().connect(&db);
                own.execute(INSERT, (0,)).await.unwrap();
                let plain = file.plain();
                own.execute("BEGIN", ()).await.unwrap();
                plain.execute_batch("BEGIN IMMEDIATE").unwrap();
                let other = std::thread::spawn(move || {
                    std::thread::sleep(Duration::from_millis(20));
                    plain.execute_batch("COMMIT").unwrap();
                });
                if rows {
                    own.execute_many(INSERT, [(1,), (2,)]).await.unwrap();
                } else {
                    own.execute(INSERT, (1,)).await.unwrap();
                }
                own.execute("COMMIT", ()).await.unwrap();
                other.join().unwrap();
            }
        }
    });
}

#[test]
fn a_text_that_reads_no_table_begins_no_snapshot_however_often_it_has_run() {
    let file = TestFile::new();
    run(async {
        let db = empty_table(file.options()).await;
        let plain = file.plain();
        for time in 0..5 {
            let own = patient().connect(&db);
            own.execute("BEGIN", ()).await.unwrap();
            for _ in 0..time {
                own.query("SELECT 1", ()).await.unwrap();
            }
            plain.execute(INSERT, (time,)).unwrap();
            own.execute(INSERT, (time,)).await.unwrap();
            own.execute("COMMIT", ()).await.unwrap();
        }
        assert_eq!(count(&db).await, 10);
    });
}

const PATH: &str = "FLATWATER_OWN_CONNECTIONS";

#[test]
fn another_process_that_writes_is_waited_for() {
    run(async {
        let file = TestFile::new();
        let db = empty_table(file.options()).await;
        let mut child = as_child("connections::own_connections::child").env(PATH, file.path()).spawn().unwrap();
        let own = patient().connect(&db);
        insert_many(&own).await;
        assert!(child.wait().unwrap().success());
        assert_eq!(count(&db).await, 100);
    });
}

#[test]
#[ignore = "the child of another test"]
fn child() {
    run(async {
        let db = Database::open(std::env::var(PATH).unwrap()).await.unwrap();
        insert_many(&patient().connect(&db)).await;
        db.close().await.unwrap();
    });
}

async fn insert_many(own: &Connection) {
    for row in 0..25 {
        own.execute("BEGIN IMMEDIATE", ()).await.unwrap();
        own.execute(INSERT, (row,)).await.unwrap();
        own.execute("COMMIT", ()).await.unwrap();
        own.execute(INSERT, (row,)).await.unwrap();
    }
}

#[test]
fn what_other_connections_define_and_what_it_defines_is_seen() {
    run(async {
        let file = TestFile::new();
        let db = empty_table(file.options()).await;
        let own = db.connection();
        assert_eq!(rows(&own).await, 0);
        for round in 0..3 {
            let (new, old) = (format!("n{round}"), format!("o{round}"));
            own.execute(format!("CREATE TABLE {new} (a)").as_str(), ()).await.unwrap();
            db.execute(format!("CREATE TABLE {old} (a)").as_str(), ()).await.unwrap();
            db.execute(format!("INSERT INTO {new} VALUES (1)").as_str(), ()).await.unwrap();
            own.execute(format!("INSERT INTO {old} VALUES (1)").as_str(), ()).await.unwrap();
            own.execute("ALTER TABLE t RENAME COLUMN a TO b", ()).await.unwrap();
            db.query("SELECT b FROM t", ()).await.unwrap();
            own.execute("BEGIN", ()).await.unwrap();
            own.execute("ALTER TABLE t RENAME COLUMN b TO a", ()).await.unwrap();
            own.query("SELECT a FROM t", ()).await.unwrap();
            own.execute("ROLLBACK", ()).await.unwrap();
            own.query("SELECT b FROM t", ()).await.unwrap();
            db.execute("ALTER TABLE t RENAME COLUMN b TO a", ()).await.unwrap();
        }
    });
}

#[test]
fn options_of_its_own_are_its_own() {
    run(async {
        let file = TestFile::new();
        let db = empty_table(file.options()).await;
        let own = ConnectionOptions::new().foreign_keys(false).connect(&db);
        assert_eq!(own.query_value::<i64>("PRAGMA foreign_keys", ()).await.unwrap(), 0);
        assert_eq!(db.connection().query_value::<i64>("PRAGMA foreign_keys", ()).await.unwrap(), 1);
        let reads = file.options().read_only(true).open().await.unwrap();
        let own = reads.connection();
        assert_eq!(rows(&own).await, 0);
        own.execute("CREATE TEMP TABLE tmp (a)", ()).await.unwrap();
        assert_eq!(own.execute(INSERT, (1,)).await.unwrap_err().kind(), ErrorKind::Misuse);
    });
}

#[test]
fn short_statements_run_on_their_callers_thread() {
    run(async {
        let file = TestFile::new();
        let db = unhurried(file.options()).open().await.unwrap();
        db.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b)", ()).await.unwrap();
        let own = db.connection();
        let write = "INSERT INTO t (b) VALUES (?)";
        let ran = || db.stats().inline.reads + db.stats().inline.writes;
        own.execute("BEGIN IMMEDIATE", ()).await.unwrap();
        let (before, mut rows) = (ran(), 0);
        while rows < 20 || ran() == before {
            own.execute(write, (rows,)).await.unwrap();
            rows += 1;
        }
        own.execute("COMMIT", ()).await.unwrap();
        let read = "SELECT b FROM t WHERE a = ?";
        let (before, mut reads) = (ran(), 0);
        while reads < 20 || ran() == before {
            let row = reads % rows;
            assert_eq!(own.query_value::<i64>(read, (row + 1,)).await.unwrap(), row);
            reads += 1;
        }
        // A definition by somebody else is seen, and so is what is committed between two reads.
        db.execute("ALTER TABLE t RENAME COLUMN b TO c", ()).await.unwrap();
        assert_eq!(own.query(read, (1,)).await.unwrap_err().kind(), ErrorKind::Sql);
        let count = "SELECT c FROM t WHERE a = ?";
        for row in 0..20 {
            db.execute("UPDATE t SET c = ? WHERE a = 1", (row,)).await.unwrap();
            assert_eq!(own.query_value::<i64>(count, (1,)).await.unwrap(), row);
        }
        own.execute("BEGIN", ()).await.unwrap();
        assert_eq!(own.query_value::<i64>(count, (1,)).await.unwrap(), 19);
        db.execute("UPDATE t SET c = 99 WHERE a = 1", ()).await.unwrap();
        assert_eq!(own.query_value::<i64>(count, (1,)).await.unwrap(), 19);
        own.execute("COMMIT", ()).await.unwrap();
        assert_eq!(own.query_value::<i64>(count, (1,)).await.unwrap(), 99);
    });
}

#[test]
fn functions_of_one_connection_are_not_on_others() {
    run(async {
        let file = TestFile::new();
        let db = empty_table(file.options()).await;
        let (own, other) = (db.connection(), db.connection());
        let pure = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
        db.functions().create_scalar_function("both", 0, pure, |_| Ok("the database's")).unwrap();
        own.functions().create_scalar_function("both", 0, pure, |_| Ok("its own")).unwrap();
        own.functions().create_scalar_function("one", 0, pure, |_| Ok(1)).unwrap();
        let both = "SELECT both()";
        assert_eq!(own.query_value::<String>(both, ()).await.unwrap(), "its own");
        assert_eq!(other.query_value::<String>(both, ()).await.unwrap(), "the database's");
        assert_eq!(own.query_value::<i64>("SELECT one()", ()).await.unwrap(), 1);
        assert_eq!(db.query("SELECT one()", ()).await.unwrap_err().kind(), ErrorKind::Sql);
        own.functions().remove_function("both", 0).unwrap();
        assert_eq!(own.query_value::<String>(both, ()).await.unwrap(), "the database's");
        db.functions().create_scalar_function("late", 0, pure, |_| Ok(2)).unwrap();
        assert_eq!(own.query_value::<i64>("SELECT late()", ()).await.unwrap(), 2);
    });
}

#[test]
fn a_busy_timeout_and_an_attached_file_of_its_own_are_known() {
    run(async {
        let (file, other) = (TestFile::new(), TestFile::new());
        let db = empty_table(file.options()).await;
        drop(empty_table(other.options()).await.close().await);
        let own = patient().connect(&db);
        let timeout = async |sql: &str| own.query_value::<i64>(sql, ()).await.unwrap();
        assert_eq!(timeout("PRAGMA busy_timeout = 1").await, 1);
        assert_eq!(timeout("PRAGMA busy_timeout").await, 1);
        let tx = db.begin().await.unwrap();
        let error = own.execute(INSERT, (1,)).await.unwrap_err();
        assert_eq!(error.sqlite_name(), Some("SQLITE_BUSY"), "{error}");
        tx.rollback().await.unwrap();
        own.execute("ATTACH ? AS other", (other.path().to_str().unwrap(),)).await.unwrap();
        let listed = async || own.query("PRAGMA other.index_list('t')", ()).await.unwrap().len();
        assert_eq!(listed().await, 0);
        other.plain().execute_batch("CREATE INDEX i ON t (a)").unwrap();
        assert_eq!(listed().await, 1);
        own.execute("DETACH other", ()).await.unwrap();
        own.query("PRAGMA index_list('t')", ()).await.unwrap();
    });
}
