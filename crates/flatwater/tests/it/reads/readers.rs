//! Reads: they see acknowledged writes, one snapshot, and the current schema.

use std::sync::{Arc, Barrier};
use std::time::Duration;

use flatwater::{Database, Error, ErrorKind, Options, named};
use futures_util::future::join_all;

use crate::place::{Place, in_both_places};
use crate::support::{TestFile, run};

in_both_places!(
    many_callers_each_see_their_own_writes,
    a_read_in_any_form_is_answered,
    statements_submitted_together_build_on_each_other,
    a_read_submitted_before_its_table_exists_never_fails_while_it_is_created,
    results_have_the_columns_of_the_schema_of_their_moment,
    more_texts_than_are_kept_prepared_all_answer,
    texts_too_long_to_keep_run_as_others_do,
);

const READERS: usize = 4;

async fn counter(options: Options) -> Database {
    let db = options.readers(READERS).open().await.unwrap();
    db.execute_script("CREATE TABLE t (a); INSERT INTO t VALUES (0)").await.unwrap();
    db
}

#[test]
fn a_read_begun_after_a_writes_reply_sees_it_on_every_reader() {
    let file = TestFile::new();
    run(async {
        let db = counter(file.options()).await;
        for n in 1..=150_i64 {
            match n % 3 {
                0 => assert_eq!(db.execute("UPDATE t SET a = ?", (n,)).await.unwrap().changes, 1),
                1 => db
                    .write_with(move |tx| tx.execute("UPDATE t SET a = ?", [n]).map(drop).map_err(Error::from))
                    .await
                    .unwrap(),
                _ => {
                    let tx = db.begin().await.unwrap();
                    tx.execute("UPDATE t SET a = ?", (n,)).await.unwrap();
                    tx.commit().await.unwrap();
                }
            }
            // All readers at once, none of them twice.
            let together = Arc::new(Barrier::new(READERS));
            let reads = (0..READERS).map(|_| {
                let together = together.clone();
                db.read_with(move |c| {
                    together.wait();
                    c.query_row("SELECT a FROM t", [], |row| row.get::<_, i64>(0)).map_err(Error::from)
                })
            });
            assert!(join_all(reads).await.into_iter().all(|a| a.unwrap() == n));
            let queries = (0..READERS * 2).map(|_| db.query_optional_value::<i64>("SELECT a FROM t", ()));
            assert!(join_all(queries).await.into_iter().all(|a| a.unwrap() == Some(n)));
        }
    });
}

async fn many_callers_each_see_their_own_writes(place: &Place) {
    let db = place.options().readers(READERS).open().await.unwrap();
    db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a)", ()).await.unwrap();
    let callers = (0..64_i64).map(|id| {
        let db = db.clone();
        tokio::spawn(async move {
            db.execute("INSERT INTO t VALUES (?, 0)", (id,)).await.unwrap();
            for n in 1..=30_i64 {
                db.execute("UPDATE t SET a = ? WHERE id = ?", (n, id)).await.unwrap();
                let seen = db.query_optional_value::<i64>("SELECT a FROM t WHERE id = ?", (id,)).await.unwrap();
                assert_eq!(seen, Some(n));
            }
        })
    });
    for caller in join_all(callers).await {
        caller.unwrap();
    }
}

#[test]
fn a_read_closure_keeps_its_snapshot_while_the_writer_commits() {
    let file = TestFile::new();
    run(async {
        let db = counter(file.options()).await;
        let (began, committed) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
        let (began_there, committed_there) = (began.clone(), committed.clone());
        let mut read = Box::pin(db.read_with(move |c| {
            let read = || c.query_row("SELECT a FROM t", [], |row| row.get::<_, i64>(0));
            let first = read()?;
            began_there.wait();
            committed_there.wait();
            Ok::<_, Error>((first, read()?))
        }));
        assert!(futures_util::poll!(&mut read).is_pending());
        began.wait();
        for n in 1..=20 {
            db.execute("UPDATE t SET a = ?", (n,)).await.unwrap();
        }
        db.query("PRAGMA wal_checkpoint(PASSIVE)", ()).await.unwrap();
        db.execute("ALTER TABLE t ADD COLUMN b", ()).await.unwrap();
        assert_eq!(db.query_optional_value::<i64>("SELECT a FROM t", ()).await.unwrap(), Some(20));
        committed.wait();
        assert_eq!(read.await.unwrap(), (0, 0));
        assert_eq!(db.query_optional_value::<i64>("SELECT a FROM t", ()).await.unwrap(), Some(20));
    });
}

/// Reads that do not begin with SELECT, or that contain keywords of writes.
const READS: [&str; 7] = [
    "WITH x AS (SELECT 'abc' AS a) SELECT replace(a, 'b', '') FROM x",
    "with recursive x(\"delete\") AS (VALUES ('ac')) SELECT \"delete\" AS \"update\" FROM x",
    "; ; SELECT 'ac'",
    "/* INSERT */ VALUES ('ac') -- UPDATE",
    "\n--x\nSELECT 'ac' AS \"insert\"",
    "EXPLAIN SELECT 1",
    "PRAGMA table_info(t)",
];

#[test]
fn a_read_in_any_form_does_not_wait_for_an_open_transaction() {
    let file = TestFile::new();
    run(async {
        counter(file.options()).await.close().await.unwrap();
        // Whoever waits for the transaction waits for ever.
        let db = file.options().tuning(|t| t.transaction_idle(Duration::from_secs(3600))).open().await.unwrap();
        let tx = db.begin().await.unwrap();
        tx.execute("UPDATE t SET a = 1", ()).await.unwrap();
        for sql in READS {
            assert!(!db.query(sql, ()).await.unwrap().is_empty(), "{sql}");
        }
    });
}

async fn any_read_is_answered(db: &Database) {
    for sql in READS {
        assert!(!db.query(sql, ()).await.unwrap().is_empty(), "{sql}");
    }
    for wrong in ["SELEC 1", "(SELECT 1)", "nonsense"] {
        let error = db.query(wrong, ()).await.unwrap_err();
        assert_eq!((error.kind(), error.offset()), (ErrorKind::Sql, Some(0)), "{error}");
    }
}

async fn a_read_in_any_form_is_answered(place: &Place) {
    any_read_is_answered(&counter(place.options()).await).await;
}

#[test]
fn a_read_in_any_form_is_answered_by_a_database_that_is_only_read() {
    let file = TestFile::new();
    run(async {
        counter(file.options()).await.close().await.unwrap();
        any_read_is_answered(&file.options().read_only(true).open().await.unwrap()).await;
    });
}

async fn statements_submitted_together_build_on_each_other(place: &Place) {
    let db = place.options().readers(READERS).open().await.unwrap();
    for n in 0..150 {
        let (create, insert) = (format!("CREATE TABLE t{n} (a)"), format!("INSERT INTO t{n} VALUES (7)"));
        let (select, returning) = (format!("SELECT a FROM t{n}"), format!("DELETE FROM t{n} RETURNING a"));
        let (create, insert, read, deleted, drop) = futures_util::join!(
            db.execute(&create, ()),
            db.execute(&insert, ()),
            db.query_as::<(i64,)>(&select, ()),
            db.query_as::<(i64,)>(&returning, ()),
            db.execute(format!("CREATE INDEX i{n} ON t{n} (a)"), ()),
        );
        create.unwrap();
        assert_eq!(insert.unwrap().changes, 1);
        let read = read.unwrap();
        let may_be_earlier = place.has_readers();
        assert!(read == [(7,)] || may_be_earlier && read.is_empty(), "{read:?}");
        assert_eq!(deleted.unwrap(), [(7,)]);
        drop.unwrap();
    }
}

async fn a_read_submitted_before_its_table_exists_never_fails_while_it_is_created(place: &Place) {
    let db = place.options().readers(READERS).open().await.unwrap();
    for n in 0..100 {
        let (create, select) = (format!("CREATE TABLE t{n} (a)"), format!("SELECT a FROM t{n}"));
        let created = db.execute(&create, ());
        let reads = join_all((0..8).map(|_| db.query(&select, ())));
        let (created, reads) = futures_util::join!(created, reads);
        created.unwrap();
        for read in reads {
            assert!(read.unwrap().is_empty());
        }
    }
}

async fn results_have_the_columns_of_the_schema_of_their_moment(place: &Place) {
    let db = place.options().readers(1).open().await.unwrap();
    db.execute_script("CREATE TABLE t (a, b); INSERT INTO t VALUES (1, 2), (3, 4)").await.unwrap();
    let all = "SELECT * FROM t";
    let returning = "UPDATE t SET a = a RETURNING *";
    for (change, names) in [
        ("CREATE INDEX i ON t (a)", vec!["a", "b"]),
        ("ALTER TABLE t ADD COLUMN c DEFAULT 5", vec!["a", "b", "c"]),
        ("ALTER TABLE t RENAME COLUMN b TO bee", vec!["a", "bee", "c"]),
        ("ALTER TABLE t DROP COLUMN bee", vec!["a", "c"]),
        ("DROP TABLE t; CREATE TABLE t (x); INSERT INTO t VALUES (8), (9)", vec!["x"]),
        ("DROP TABLE t; CREATE VIEW t AS SELECT 1 AS one, 2 AS two UNION ALL SELECT 3, 4", vec!["one", "two"]),
    ] {
        // Prepared under the schema before, on the writer and on the reader.
        let _ = (db.query(all, ()).await, db.query(returning, ()).await);
        let tx = db.begin().await.unwrap();
        tx.query(all, ()).await.unwrap();
        tx.execute_script(change).await.unwrap();
        let inside = tx.query(all, ()).await.unwrap();
        tx.commit().await.unwrap();
        let is_table = !change.contains("VIEW");
        let answers = [Some(inside), Some(db.query(all, ()).await.unwrap())];
        let by_writer = if is_table && names[0] == "a" { Some(db.query(returning, ()).await.unwrap()) } else { None };
        for rows in answers.into_iter().chain([by_writer]).flatten() {
            assert_eq!(rows.columns().collect::<Vec<_>>(), names, "{change}");
            assert_eq!(rows.len(), 2, "{change}: {rows:?}");
            assert_eq!(rows.get(1).unwrap().len(), names.len());
        }
    }
}

#[test]
fn a_change_of_the_schema_by_another_program_is_noticed() {
    let file = TestFile::new();
    run(async {
        let db = file.options().readers(1).open().await.unwrap();
        db.execute("CREATE TABLE t (a)", ()).await.unwrap();
        for n in 0..5 {
            let inserts = join_all((0..20).map(|n| db.execute("INSERT INTO t (a) VALUES (?)", (n,)))).await;
            assert!(inserts.iter().all(Result::is_ok));
            file.plain().execute_batch(&format!("ALTER TABLE t ADD COLUMN c{n} DEFAULT 7")).unwrap();
            let rows = db.query("SELECT * FROM t", ()).await.unwrap();
            assert_eq!((rows.columns().len(), rows.len()), (n + 2, (n + 1) * 20));
            assert_eq!(rows.get(0).unwrap().get::<i64>(format!("c{n}").as_str()).unwrap(), 7);
        }
    });
}

async fn more_texts_than_are_kept_prepared_all_answer(place: &Place) {
    for kept in [1, 2, 128] {
        let db = place.options().tuning(|t| t.statement_cache(kept)).open().await.unwrap();
        db.execute("CREATE TABLE IF NOT EXISTS t (a)", ()).await.unwrap();
        for _ in 0..2 {
            let reads =
                join_all((0..300).map(|n| db.query_optional_value::<i64>(&format!("SELECT {n} + ?"), (1,)))).await;
            assert!((1..).zip(reads).all(|(n, read)| read.unwrap() == Some(n)));
            let inserts = (0..300).map(|n| db.execute(format!("INSERT INTO t VALUES ({n})"), ()));
            assert!(join_all(inserts).await.into_iter().all(|inserted| inserted.unwrap().changes == 1));
        }
        let tx = db.begin().await.unwrap();
        for n in 0..300 {
            assert_eq!(tx.query_optional_value::<i64>(&format!("SELECT {n}"), ()).await.unwrap(), Some(n));
        }
        tx.commit().await.unwrap();
        db.close().await.unwrap();
    }
}

async fn texts_too_long_to_keep_run_as_others_do(place: &Place) {
    let db = place.options().readers(2).open().await.unwrap();
    db.execute("CREATE TABLE t (a)", ()).await.unwrap();
    let padding = "/* padding */".repeat(3000);
    let (read, write) = (format!("SELECT :n {padding}"), format!("INSERT INTO t VALUES (?) {padding}"));
    let returning = format!("{write} RETURNING a");
    for n in 0..40 {
        let (read, write, returned, failed, twice) = futures_util::join!(
            db.query_optional_value::<i64>(&read, named! { "n": n }),
            db.execute(&write, (n,)),
            db.query_optional_value::<i64>(&returning, (n,)),
            db.query(format!("SELECT nowhere {padding}"), ()),
            db.execute(format!("{write}; {write}"), (n,)),
        );
        assert_eq!((read.unwrap(), write.unwrap().changes, returned.unwrap()), (Some(n), 1, Some(n)));
        assert!(failed.is_err() && twice.is_err());
    }
    let in_lists = (0..5000).map(|n| n.to_string()).collect::<Vec<_>>().join(", ");
    let found = db.query_optional_value::<i64>(&format!("SELECT count(*) FROM t WHERE a IN ({in_lists})"), ()).await;
    assert_eq!(found.unwrap(), Some(80));
}
