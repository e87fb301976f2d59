//! Giving space back: VACUUM, an incremental vacuum, and compact copies, while others read and write.

use std::time::Duration;

use flatwater::options::{AutoVacuum, Checkpoint, Journal};
use flatwater::{Database, ErrorKind, Options};

use crate::place::{Place, in_both_places};
use crate::support::{TestFile, files, integer, integrity, run};

in_both_places!(
    a_vacuum_keeps_the_rows_and_drops_free_pages,
    a_vacuum_that_is_too_late_or_dropped_has_changed_nothing,
    a_compact_copy_has_the_rows_and_no_free_pages,
    a_compact_copy_replaces_nothing_and_leaves_nothing,
    pages_are_given_back_some_at_a_time,
    pages_that_cannot_be_given_back_are_refused_with_a_hint,
);

/// A database most of whose pages are free.
async fn with_free_pages(options: Options) -> Database {
    let db = options.open().await.unwrap();
    db.execute_script(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, a); CREATE INDEX by_a ON t (a);
         WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n LIMIT 1000)
         INSERT INTO t SELECT n, randomblob(2000) FROM n; DELETE FROM t WHERE id > 20",
    )
    .await
    .unwrap();
    db
}

async fn number(db: &Database, sql: &str) -> i64 {
    db.query_value(sql, ()).await.unwrap()
}

const FREE: &str = "PRAGMA freelist_count";
const ROWS: &str = "SELECT count(*) FROM t";

async fn a_vacuum_keeps_the_rows_and_drops_free_pages(place: &Place) {
    let db = with_free_pages(place.options()).await;
    assert!(number(&db, FREE).await > 100);
    db.vacuum().await.unwrap();
    assert_eq!((number(&db, FREE).await, number(&db, ROWS).await), (0, 20));
    db.execute("INSERT INTO t VALUES (100, 'more')", ()).await.unwrap();
    assert_eq!(number(&db, "SELECT id FROM t WHERE a = 'more'").await, 100);
    db.vacuum().await.unwrap();
    // What the vacuum set for itself is as before: temporary databases of the writer are in memory.
    let stored = db.with_connection(|c| {
        c.query_row("PRAGMA temp_store", [], |row| row.get::<_, i64>(0)).map_err(flatwater::Error::from)
    });
    assert_eq!(stored.await.unwrap(), 2);
    let error = db.transaction(async |_| db.vacuum().await).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misuse, "it would wait for the transaction: {error}");
}

async fn a_vacuum_that_is_too_late_or_dropped_has_changed_nothing(place: &Place) {
    let db = with_free_pages(place.options()).await;
    let free = number(&db, FREE).await;
    let error = db.vacuum().timeout(Duration::ZERO).await.unwrap_err();
    assert_eq!((error.kind(), error.operation()), (ErrorKind::Timeout, Some("vacuum")), "{error}");
    drop(db.vacuum());
    assert_eq!(number(&db, FREE).await, free);
    db.clone().close().await.unwrap();
    assert_eq!(db.vacuum().await.unwrap_err().kind(), ErrorKind::Closed);
}

async fn a_compact_copy_has_the_rows_and_no_free_pages(place: &Place) {
    let db = with_free_pages(place.options()).await;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("copy.db");
    let free = number(&db, FREE).await;
    db.vacuum_into(&path).await.unwrap();
    assert_eq!(number(&db, FREE).await, free, "the database itself is as it was");
    let plain = rusqlite::Connection::open(&path).unwrap();
    assert_eq!((integrity(&plain).as_str(), integer(&plain, FREE), integer(&plain, ROWS)), ("ok", 0, 20));
    drop(plain);
    assert_eq!(files(directory.path()).len(), 1, "no partial file is left");
    // Its connection serves others as before.
    db.execute("ALTER TABLE t ADD COLUMN b", ()).await.unwrap();
    for _ in 0..3 {
        assert_eq!(db.query("SELECT * FROM t LIMIT 1", ()).await.unwrap().columns().len(), 3);
    }
    let copy = Options::new(&path).open().await.unwrap();
    copy.execute("INSERT INTO t VALUES (100, 'more')", ()).await.unwrap();
    copy.close().await.unwrap();
}

/// Writes the SQL of the index into the schema, whether SQLite would take it or not.
async fn index_is(db: &Database, sql: &'static str) {
    let write = move |connection: &mut flatwater::rusqlite::Connection| {
        connection.execute_batch(&format!(
            "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = '{sql}' WHERE name = 'by_a'"
        ))?;
        Ok::<_, flatwater::Error>(())
    };
    db.with_connection(write).await.unwrap();
}

async fn a_compact_copy_replaces_nothing_and_leaves_nothing(place: &Place) {
    let db = with_free_pages(place.options()).await;
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    std::fs::write(at("file"), "mine").unwrap();
    std::fs::write(at("walled-wal"), "mine").unwrap();
    let before = files(directory.path());
    for (path, kind) in [("file", ErrorKind::Misuse), ("walled", ErrorKind::Misuse), ("nowhere/copy", ErrorKind::Open)]
    {
        let error = db.vacuum_into(at(path)).await.unwrap_err();
        assert_eq!((error.kind(), error.operation()), (kind, Some("vacuum_into")), "{error}");
    }
    let error = db.vacuum_into(at("copy")).timeout(Duration::ZERO).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    drop(db.vacuum_into(at("copy")));
    // An index that the copy cannot have, in the middle of it.
    index_is(&db, "CREATE INDEX by_a ON t (a COLLATE nobody)").await;
    let error = db.vacuum_into(at("copy")).await.unwrap_err();
    assert!(error.kind() == ErrorKind::Sql && error.message().contains("nobody"), "{error}");
    assert_eq!(files(directory.path()), before);
    index_is(&db, "CREATE INDEX by_a ON t (a)").await;
}

async fn pages_are_given_back_some_at_a_time(place: &Place) {
    let db = with_free_pages(place.options().tuning(|t| t.auto_vacuum(AutoVacuum::Incremental))).await;
    let (free, pages) = (number(&db, FREE).await as u64, number(&db, "PRAGMA page_count").await);
    assert_eq!(db.incremental_vacuum(7).await.unwrap(), 7);
    assert_eq!(number(&db, FREE).await as u64, free - 7);
    assert!(number(&db, "PRAGMA page_count").await <= pages - 7, "of the map of pages some go too");
    assert!(db.incremental_vacuum(0).await.unwrap() >= free - 7);
    assert_eq!((number(&db, FREE).await, number(&db, ROWS).await), (0, 20));
    assert_eq!(db.incremental_vacuum(u32::MAX).await.unwrap(), 0, "there are none any more");
}

async fn pages_that_cannot_be_given_back_are_refused_with_a_hint(place: &Place) {
    let db = with_free_pages(place.options()).await;
    let free = number(&db, FREE).await;
    let error = db.incremental_vacuum(5).await.unwrap_err();
    assert_eq!((error.kind(), error.operation()), (ErrorKind::Misuse, Some("incremental_vacuum")), "{error}");
    assert!(error.hint().unwrap().contains("`vacuum`") && error.hint().unwrap().contains("auto_vacuum"), "{error}");
    assert_eq!(number(&db, FREE).await, free);
}

#[test]
fn a_file_is_shorter_after_a_vacuum_although_others_have_it_open() {
    let file = TestFile::new();
    run(async {
        let db = with_free_pages(file.options()).await;
        let length = || file.path().metadata().unwrap().len();
        db.checkpoint(flatwater::calls::CheckpointMode::Truncate).await.unwrap();
        let (before, second) = (length(), file.plain());
        assert_eq!(integer(&second, ROWS), 20);
        // The leases of idle readers do not keep the old pages.
        assert_eq!(number(&db, ROWS).await, 20);
        db.vacuum().await.unwrap();
        assert!(length() < before / 4, "{} of {before}", length());
        assert_eq!(integer(&second, ROWS), 20);
        second.execute_batch("INSERT INTO t VALUES (100, 'other')").unwrap();
        assert_eq!(number(&db, ROWS).await, 21);
    });
}

#[test]
fn snapshots_and_streams_go_on_during_a_vacuum_and_live_queries_run_again_after_it() {
    let file = TestFile::new();
    run(async {
        let db = with_free_pages(file.options()).await;
        let (snapshot, mut rows) = (db.snapshot().await.unwrap(), db.stream("SELECT id FROM t", ()));
        rows.next().await.unwrap().unwrap();
        let mut live = db.live("SELECT count(*) FROM t", ());
        live.next().await.unwrap().unwrap();
        let runs = db.stats().live.runs;
        db.vacuum().await.unwrap();
        crate::support::until(|| db.stats().live.runs > runs).await;
        assert_eq!(snapshot.query_value::<i64>(ROWS, ()).await.unwrap(), 20);
        db.execute("DELETE FROM t WHERE id = 1", ()).await.unwrap();
        assert_eq!(snapshot.query_value::<i64>(ROWS, ()).await.unwrap(), 20);
        let mut others = 0;
        while let Some(row) = rows.next().await {
            row.unwrap();
            others += 1;
        }
        assert_eq!((others, number(&db, ROWS).await), (19, 19));
    });
}

#[test]
fn a_vacuum_waits_for_the_transaction_before_it_and_later_writes_for_the_vacuum() {
    let file = TestFile::new();
    run(async {
        let db = with_free_pages(file.options()).await;
        let tx = db.begin().await.unwrap();
        let vacuum = tokio::spawn(db.vacuum());
        crate::support::until(|| db.stats().writes_waiting == 1).await;
        let write = tokio::spawn(db.execute("INSERT INTO t VALUES (100, NULL)", ()));
        crate::support::until(|| db.stats().writes_waiting == 2).await;
        assert_eq!(number(&db, ROWS).await, 20, "reads wait for none of them");
        tx.execute("DELETE FROM t", ()).await.unwrap();
        tx.commit().await.unwrap();
        vacuum.await.unwrap().unwrap();
        write.await.unwrap().unwrap();
        assert_eq!((number(&db, ROWS).await, number(&db, FREE).await), (1, 0));
    });
}

#[test]
fn a_lock_of_another_process_ends_a_vacuum_with_its_deadline() {
    let file = TestFile::new();
    run(async {
        let db = with_free_pages(file.options().busy_timeout(Duration::from_millis(50))).await;
        let free = number(&db, FREE).await;
        let other = file.plain();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        assert_eq!(db.vacuum().await.unwrap_err().kind(), ErrorKind::Busy);
        other.execute_batch("COMMIT").unwrap();
        assert_eq!(number(&db, FREE).await, free);
        db.vacuum().await.unwrap();
        assert_eq!(number(&db, FREE).await, 0);
    });
}

#[test]
fn files_that_are_only_read_or_have_no_wal_are_vacuumed_as_they_can_be() {
    let file = TestFile::new();
    run(async {
        with_free_pages(file.options()).await.close().await.unwrap();
        let db = file.options().read_only(true).open().await.unwrap();
        assert_eq!(db.vacuum().await.unwrap_err().kind(), ErrorKind::Misuse);
        assert_eq!(db.incremental_vacuum(1).await.unwrap_err().kind(), ErrorKind::Misuse);
        db.vacuum_into(file.beside("-1")).await.unwrap();
        db.close().await.unwrap();
        file.plain().execute_batch("PRAGMA journal_mode = DELETE").unwrap();
        let db = file.options().journal(Journal::Keep).open().await.unwrap();
        db.vacuum_into(file.beside("-2")).await.unwrap();
        db.vacuum().await.unwrap();
        assert_eq!(number(&db, FREE).await, 0);
        db.close().await.unwrap();
        for copy in ["-1", "-2"] {
            let plain = rusqlite::Connection::open(file.beside(copy)).unwrap();
            assert_eq!((integrity(&plain).as_str(), integer(&plain, ROWS)), ("ok", 20));
        }
    });
}

#[test]
fn where_another_program_copies_the_wal_a_vacuum_leaves_it_alone() {
    let file = TestFile::new();
    run(async {
        let db = with_free_pages(file.options().checkpoint(Checkpoint::External)).await;
        let before = file.path().metadata().unwrap().len();
        db.vacuum().await.unwrap();
        assert_eq!((file.path().metadata().unwrap().len(), number(&db, FREE).await), (before, 0));
    });
}
