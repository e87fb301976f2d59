//! Closures that change the state of the connection: the next caller gets a clean connection, and correct results.
//!
//! Leaves out: changes that need the raw handle, which the tests of `flatwater-sqlite` cover.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use flatwater::rusqlite::{Connection, Transaction};
use flatwater::{Database, Error, ErrorKind};
use futures_util::FutureExt;
use futures_util::future::join_all;

use crate::place::{Place, in_both_places};
use crate::support::{TestFile, until};

in_both_places!(
    a_replaced_busy_handler_is_put_back,
    what_is_left_open_is_ended,
    a_statement_that_is_left_half_written_fails_the_closure_as_misuse,
    pragmas_temp_objects_and_transaction_control_are_refused_in_closures,
);

/// A change that a closure makes to its connection.
type Mischief = fn(&Connection);

/// Forgets a rusqlite statement that is positioned on its first row.
fn forget_stepped(connection: &Connection, sql: &str) {
    let mut statement = connection.prepare(sql).unwrap();
    let mut rows = statement.query([]).unwrap();
    assert!(rows.next().unwrap().is_some());
    std::mem::forget(rows);
    std::mem::forget(statement);
}

const SCHEMA: &str = "CREATE TABLE t (a INTEGER PRIMARY KEY); CREATE TABLE c (p REFERENCES t); CREATE TABLE log (a);
    CREATE VIEW v AS SELECT a FROM t; CREATE TABLE done (a);
    CREATE TRIGGER watch AFTER INSERT ON t BEGIN INSERT INTO log VALUES (new.a); END";

/// Opens a database with at most one reader, so that the next caller uses the connection that the closure used.
async fn open(place: &Place) -> Database {
    let db = place.options().readers(1).open().await.unwrap();
    db.execute_script(SCHEMA).await.unwrap();
    db
}

/// Checks several times that every kind of call works, and that no handler of the closure is called.
async fn is_clean(db: &Database, place: &Place) {
    db.execute_script("DELETE FROM t; DELETE FROM log").await.unwrap();
    let inserts = join_all((0..60).map(|n| db.execute("INSERT INTO t VALUES (?)", (n,)))).await;
    for (n, inserted) in inserts.into_iter().enumerate() {
        assert_eq!(inserted.unwrap().last_insert_rowid, i64::try_from(n).ok());
    }
    let sums = "SELECT (SELECT sum(a) FROM v) || ' ' || (SELECT sum(a) FROM log) || ' ' || length(?)";
    let long = "x".repeat(100_000);
    let answered = db.query_optional_value::<String>(sums, (long,)).await.unwrap();
    assert_eq!(answered.as_deref(), Some("1770 1770 100000"));
    let error = db.execute("INSERT INTO c VALUES (1000)", ()).await.unwrap_err();
    assert_eq!(error.sqlite_name(), Some("SQLITE_CONSTRAINT_FOREIGNKEY"), "{error}");
    let first = db.query_optional_value::<i64>("SELECT a FROM t LIMIT 1", ()).await.unwrap();
    assert_eq!(first, Some(0));
    let tx = db.begin().await.unwrap();
    tx.execute("INSERT INTO t VALUES (100)", ()).await.unwrap();
    tx.rollback().await.unwrap();
    db.write_with(|tx| tx.execute("INSERT INTO t VALUES (200)", []).map_err(Error::from)).await.unwrap();
    let count =
        |c: &Connection| c.query_row("SELECT count(*) FROM t", [], |row| row.get::<_, i64>(0)).map_err(Error::from);
    assert_eq!(db.read_with(count).await.unwrap(), 61);
    if let Some(file) = place.file() {
        waits_for_locks(db, file).await;
    }
}

/// Checks that a write waits for a lock, which needs Flatwater's busy handler.
async fn waits_for_locks(db: &Database, file: &TestFile) {
    let plain = file.plain();
    plain.execute_batch("BEGIN IMMEDIATE").unwrap();
    let write = tokio::spawn(db.execute("INSERT INTO t VALUES (300)", ()));
    until(|| db.stats().writes_waiting == 0).await;
    for _ in 0..20 {
        assert!(!write.is_finished());
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    plain.execute_batch("COMMIT").unwrap();
    write.await.unwrap().unwrap();
}

/// Runs each misuse in a write closure and in a read closure, each on a new database.
async fn check(place: &Place, mischiefs: &[(&str, Mischief)]) {
    let mut failed = Vec::new();
    for (name, mischief) in mischiefs {
        if AssertUnwindSafe(check_one(&place.another(), *mischief)).catch_unwind().await.is_err() {
            failed.push(name);
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

/// Checks that a closure's write is present if and only if it was acknowledged, and that the next caller is not
/// affected.
async fn check_one(place: &Place, mischief: Mischief) {
    let db = open(place).await;
    let wrote = db.write_with(move |tx: &Transaction<'_>| {
        tx.execute("INSERT INTO done VALUES (1)", [])?;
        mischief(tx);
        Ok::<_, Error>(())
    });
    let wrote = wrote.await;
    is_clean(&db, place).await;
    let done = db.query_optional_value::<i64>("SELECT count(*) FROM done", ()).await.unwrap();
    assert_eq!(done, Some(i64::from(wrote.is_ok())), "{wrote:?}");
    let read = db.read_with(move |c| {
        let before: i64 = c.query_row("SELECT count(*) FROM done", [], |row| row.get(0))?;
        mischief(c);
        Ok::<_, Error>(before)
    });
    assert_eq!(read.await.unwrap(), i64::from(wrote.is_ok()));
    is_clean(&db, place).await;
    db.close().await.unwrap();
}

async fn a_replaced_busy_handler_is_put_back(place: &Place) {
    check(
        place,
        &[
            ("no wait", |c| c.busy_timeout(Duration::ZERO).unwrap()),
            ("another wait", |c| c.busy_timeout(Duration::from_secs(3600)).unwrap()),
        ],
    )
    .await;
}

async fn what_is_left_open_is_ended(place: &Place) {
    check(
        place,
        &[
            ("savepoints", |c| {
                // Allowed to a write closure only.
                let _ = c.execute_batch("SAVEPOINT a; SAVEPOINT b; DELETE FROM log");
            }),
            ("undone savepoint", |c| {
                let _ = c.execute_batch("SAVEPOINT a; DELETE FROM done; ROLLBACK TO a");
            }),
            ("stepped statement", |c| forget_stepped(c, "WITH n(x) AS (VALUES (1), (2)) SELECT x FROM n")),
            ("stepped read", |c| forget_stepped(c, "SELECT name FROM sqlite_schema")),
            ("stepped write", |c| {
                if c.execute("DELETE FROM log", []).is_ok() {
                    forget_stepped(c, "INSERT INTO log VALUES (1), (2) RETURNING a");
                }
            }),
            ("open blob", |c| {
                let rowid = c.last_insert_rowid();
                if c.execute("UPDATE done SET a = zeroblob(9)", []).is_ok() {
                    std::mem::forget(c.blob_open("main", "done", "a", rowid, false).unwrap());
                } else {
                    std::mem::forget(c.prepare("SELECT 1").unwrap());
                }
            }),
            ("temp objects", |c| {
                // Refused where only reads are allowed.
                let _ = c.execute_batch(
                    "CREATE TEMP TABLE t (a); CREATE TEMP VIEW v AS SELECT 7 AS a;
                 CREATE TEMP TRIGGER x AFTER INSERT ON main.t BEGIN DELETE FROM t; END",
                );
            }),
        ],
    )
    .await;
}

async fn a_statement_that_is_left_half_written_fails_the_closure_as_misuse(place: &Place) {
    let db = open(place).await;
    let wrote = db.write_with(|tx| {
        forget_stepped(tx, "INSERT INTO log VALUES (1), (2) RETURNING a");
        Ok::<_, Error>(())
    });
    let error = wrote.await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
    assert!(!error.is_retryable(), "{error}");
    assert!(db.query("SELECT a FROM log", ()).await.unwrap().is_empty());
}

async fn pragmas_temp_objects_and_transaction_control_are_refused_in_closures(place: &Place) {
    let db = open(place).await;
    for sql in ["COMMIT", "ROLLBACK", "ATTACH ':memory:' AS x", "PRAGMA foreign_keys = OFF", "PRAGMA nonsense"] {
        let wrote = db.write_with(move |tx| tx.execute_batch(sql).map_err(Error::from)).await.unwrap_err();
        let read = db.read_with(move |c| c.execute_batch(sql).map_err(Error::from)).await.unwrap_err();
        assert_eq!([wrote.sqlite_name(), read.sqlite_name()], [Some("SQLITE_AUTH"); 2], "{sql}");
    }
    let temp = "CREATE TEMP TABLE x (a)";
    let read = db.read_with(|c| c.execute_batch(temp).map_err(Error::from)).await.unwrap_err();
    assert_eq!(read.sqlite_name(), Some("SQLITE_AUTH"));
    db.write_with(|tx| tx.execute_batch(temp).map_err(Error::from)).await.unwrap();
    db.write_with(|tx| tx.execute_batch(temp).map_err(Error::from)).await.unwrap();
}
