//! Writes that scan a table, in an open transaction: they run on their caller's thread while the table can only be small.

use flatwater::{Database, Error, Options, Transaction, rusqlite};

use crate::support::{TestFile, run, unhurried};

const INSERT: &str = "INSERT INTO t VALUES (?, ?)";
const SCAN: &str = "UPDATE t SET b = b + 1 WHERE b = ?";
const DELETE: &str = "DELETE FROM t WHERE b < ?";
/// More rows than a table may get between two scans on the caller's thread.
const MANY: i64 = 100;

/// Opens a database whose transactions scan a small table on their caller's thread.
async fn known(options: Options) -> Database {
    let db = unhurried(options).open().await.unwrap();
    db.execute_script("CREATE TABLE t (a INTEGER PRIMARY KEY, b); CREATE TABLE long (v)").await.unwrap();
    db.execute_many(INSERT, (0..20).map(|number| (number, -number))).await.unwrap();
    until_here(&db).await;
    db
}

/// Scans in transactions until one of them does so on its caller's thread.
async fn until_here(db: &Database) {
    for time in 0.. {
        assert!(time < 1000, "no scan runs on its caller's thread");
        let tx = db.begin().await.unwrap();
        let is_here = [scans_here(db, &tx, SCAN).await, scans_here(db, &tx, DELETE).await] == [true; 2];
        tx.commit().await.unwrap();
        if is_here {
            return;
        }
    }
}

/// Scans the table. Returns whether that ran on this thread: nothing else of these tests does at that time.
async fn scans_here(db: &Database, tx: &Transaction<'_>, scan: &str) -> bool {
    let before = db.stats().inline.writes;
    tx.execute(scan, (-1000,)).await.unwrap();
    db.stats().inline.writes > before
}

/// Returns whether the first scan of a new transaction runs on this thread.
async fn next_scans_here(db: &Database) -> bool {
    let tx = db.begin().await.unwrap();
    let is_here = scans_here(db, &tx, SCAN).await;
    tx.commit().await.unwrap();
    is_here
}

#[test]
fn a_table_that_got_many_rows_is_scanned_by_the_writers_thread() {
    let file = TestFile::new();
    run(async {
        let db = known(file.options()).await;
        db.execute_many(INSERT, (1000..1000 + MANY).map(|number| (number, 0))).await.unwrap();
        assert!(!next_scans_here(&db).await, "the rows of a write before");
        until_here(&db).await;
        db.execute("INSERT INTO long VALUES (?)", (vec![0; 4 << 20],)).await.unwrap();
        assert!(!next_scans_here(&db).await, "the pages of one long row");
        until_here(&db).await;
        let tx = db.begin().await.unwrap();
        tx.execute_many(INSERT, (2000..2000 + MANY).map(|number| (number, 0))).await.unwrap();
        assert!(!scans_here(&db, &tx, SCAN).await, "the rows of its own transaction");
        tx.commit().await.unwrap();
        db.close().await.unwrap();
    });
}

#[test]
fn rows_that_another_connection_wrote_are_not_scanned_on_the_callers_thread() {
    let file = TestFile::new();
    run(async {
        let db = known(file.options()).await;
        let plain = file.plain();
        plain.execute(INSERT, (1000, 0)).unwrap();
        assert!(!next_scans_here(&db).await, "another program");
        until_here(&db).await;
        let own = db.connection();
        own.execute(INSERT, (1001, 0)).await.unwrap();
        assert!(!next_scans_here(&db).await, "a connection of a caller");
        own.close().await.unwrap();
        until_here(&db).await;
        db.close().await.unwrap();
    });
}

#[test]
fn rows_that_come_back_when_their_deletion_is_undone_are_not_scanned_on_the_callers_thread() {
    let file = TestFile::new();
    run(async {
        let db = known(file.options()).await;
        db.execute_many(INSERT, (1000..1000 + MANY).map(|number| (number, 0))).await.unwrap();
        let mut tx = db.begin().await.unwrap();
        tx.execute(DELETE, (1,)).await.unwrap();
        assert!(!scans_here(&db, &tx, SCAN).await);
        tx.rollback().await.unwrap();
        assert!(!next_scans_here(&db).await, "a rollback");

        until_here(&db).await;
        tx = db.begin().await.unwrap();
        let nested = tx.begin().await.unwrap();
        nested.execute(DELETE, (1,)).await.unwrap();
        nested.execute(SCAN, (-1000,)).await.unwrap();
        nested.rollback().await.unwrap();
        assert!(!scans_here(&db, &tx, SCAN).await, "a nested rollback");
        tx.commit().await.unwrap();

        until_here(&db).await;
        let undo = "BEGIN; DELETE FROM t; ROLLBACK";
        let undoes = move |connection: &mut rusqlite::Connection| Ok::<_, Error>(connection.execute_batch(undo)?);
        db.with_connection(undoes).await.unwrap();
        assert!(!next_scans_here(&db).await, "a closure");

        until_here(&db).await;
        tx = db.begin().await.unwrap();
        tx.execute("INSERT OR ROLLBACK INTO t VALUES (0, 0)", ()).await.unwrap_err();
        drop(tx);
        assert!(!next_scans_here(&db).await, "a rollback by SQLite");
        db.close().await.unwrap();
    });
}

#[test]
fn a_scan_that_fails_in_the_middle_leaves_nothing_and_is_reported() {
    let file = TestFile::new();
    run(async {
        let db = known(file.options()).await;
        db.execute("CREATE TABLE u (b CHECK (b < 3))", ()).await.unwrap();
        db.execute_many("INSERT INTO u VALUES (?)", (0..3).map(|number| (number,))).await.unwrap();
        let add = "UPDATE u SET b = b + ?";
        for time in 0.. {
            assert!(time < 1000, "it never ran on its caller's thread");
            let tx = db.begin().await.unwrap();
            // The failure undoes something, so the first scan after it is the writer's thread's.
            tx.execute(add, (0,)).await.unwrap();
            let before = db.stats().inline.writes;
            assert_eq!(tx.execute(add, (0,)).await.unwrap().changes, 3);
            let is_here = db.stats().inline.writes > before;
            let error = tx.execute(add, (1,)).await.unwrap_err();
            assert!(error.to_string().contains("CHECK constraint failed"), "{error}");
            assert_eq!(tx.query_value::<i64>("SELECT sum(b) FROM u", ()).await.unwrap(), 3);
            tx.commit().await.unwrap();
            if is_here && time > 10 {
                break;
            }
        }
        db.close().await.unwrap();
    });
}
