//! Checks of a whole database: a stream of sentences, one for each problem.

use flatwater::calls::IntegrityCheck;
use flatwater::{Database, ErrorKind, Options};
use futures_util::TryStreamExt;

use crate::place::{Place, in_both_places};
use crate::support::{TestFile, run, until};

in_both_places!(a_sound_database_has_no_problems, each_problem_is_a_sentence, a_check_of_what_is_not_there_is_an_error,);

async fn found(check: IntegrityCheck) -> Vec<String> {
    check.try_collect().await.unwrap()
}

async fn tables(options: Options) -> Database {
    let db = options.open().await.unwrap();
    db.execute_script(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, a CHECK (a <> 13)); CREATE INDEX by_a ON t (a);
         CREATE TABLE \"it's\" (a); CREATE TABLE plain (a NOT NULL);
         WITH RECURSIVE n(n) AS (SELECT 101 UNION ALL SELECT n + 1 FROM n LIMIT 500) INSERT INTO t SELECT n, n FROM n;
         INSERT INTO plain VALUES (1)",
    )
    .await
    .unwrap();
    db
}

/// Breaks the CHECK of three rows, and puts a NULL where none may be.
async fn break_rows(db: &Database) {
    db.with_connection(|c| {
        c.execute_batch(
            "PRAGMA ignore_check_constraints = ON; UPDATE t SET a = 13 WHERE id < 104; PRAGMA ignore_check_constraints = OFF;
             PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = 'CREATE TABLE plain (a)' WHERE name = 'plain';
             PRAGMA writable_schema = RESET; UPDATE plain SET a = NULL; PRAGMA writable_schema = ON;
             UPDATE sqlite_schema SET sql = 'CREATE TABLE plain (a NOT NULL)' WHERE name = 'plain';
             PRAGMA writable_schema = RESET",
        )
        .map_err(flatwater::Error::from)
    })
    .await
    .unwrap();
}

async fn a_sound_database_has_no_problems(place: &Place) {
    let db = tables(place.options()).await;
    assert_eq!(found(db.integrity_check()).await, [""; 0]);
    assert_eq!(found(db.integrity_check().quick()).await, [""; 0]);
    assert_eq!(found(db.integrity_check().table("it's")).await, [""; 0]);
    let mut check = db.integrity_check();
    assert!(check.next().await.is_none() && check.next().await.is_none());
}

async fn each_problem_is_a_sentence(place: &Place) {
    let db = tables(place.options()).await;
    break_rows(&db).await;
    let all = found(db.integrity_check()).await;
    // A connection that only reads does not keep CHECK constraints.
    let checks = if place.has_readers() { 0 } else { 3 };
    assert_eq!(all.iter().filter(|problem| *problem == "CHECK constraint failed in t").count(), checks, "{all:?}");
    assert_eq!(all.iter().filter(|problem| *problem == "NULL value in plain.a").count(), 1, "{all:?}");
    assert_eq!(found(db.integrity_check().quick()).await.len(), checks + 1);
    assert_eq!(found(db.integrity_check().table("plain").quick()).await, ["NULL value in plain.a"]);
    let mut check = db.integrity_check();
    check.next().await.unwrap().unwrap();
    drop(check);
    until(|| db.stats().readers_held == 0).await;
    db.execute_script("UPDATE t SET a = id; UPDATE plain SET a = 1").await.unwrap();
    assert_eq!(found(db.integrity_check()).await, [""; 0]);
}

async fn a_check_of_what_is_not_there_is_an_error(place: &Place) {
    let db = tables(place.options()).await;
    let mut check = db.integrity_check().table("nowhere");
    let error = check.next().await.unwrap().unwrap_err();
    assert_eq!((error.kind(), error.operation()), (ErrorKind::Sql, Some("integrity_check")), "{error}");
    assert!(check.next().await.is_none());
    db.close().await.unwrap();
    assert_eq!(db.integrity_check().next().await.unwrap().unwrap_err().kind(), ErrorKind::Closed);
}

#[test]
fn damaged_pages_are_found_in_the_main_file_and_in_an_attached_one() {
    let (file, second) = (TestFile::new(), TestFile::new());
    run(async {
        for one in [&file, &second] {
            tables(one.options()).await.close().await.unwrap();
            // The tree of the index gets an entry that is not that of its row.
            let mut bytes = std::fs::read(one.path()).unwrap();
            let plain = one.plain();
            let root: usize = plain
                .query_row("SELECT rootpage FROM sqlite_schema WHERE name = 'by_a'", [], |row| row.get(0))
                .unwrap();
            drop(plain);
            let page = &mut bytes[(root - 1) * 4096..root * 4096];
            page[4095] ^= 0x55;
            std::fs::write(one.path(), &bytes).unwrap();
        }
        let db = file.options().tuning(|t| t.attach("more", second.path())).open().await.unwrap();
        for database in ["main", "more"] {
            let problems = found(db.integrity_check().database(database)).await;
            assert!(problems.iter().any(|problem| problem.contains("by_a")), "{database}: {problems:?}");
        }
        assert_eq!(found(db.integrity_check().quick().table("t")).await, [""; 0], "it leaves the indexes out");
        let stats = db.stats();
        assert!(db.query_value::<i64>("SELECT count(*) FROM plain", ()).await.is_ok() && stats.readers_held == 0);
        db.close().await.unwrap();
        for one in [&file, &second] {
            one.plain().execute_batch("REINDEX").unwrap();
        }
    });
}

#[test]
fn a_check_is_of_one_point_in_time_and_writes_go_on() {
    let file = TestFile::new();
    run(async {
        let db = tables(file.options()).await;
        // More problems than one batch has.
        db.execute_many("INSERT INTO plain VALUES (?)", (0..1999).map(|n| (n,))).await.unwrap();
        break_rows(&db).await;
        let mut check = db.integrity_check();
        check.next().await.unwrap().unwrap();
        db.execute_script("UPDATE plain SET a = 1; UPDATE t SET a = id").await.unwrap();
        let mut problems = 1;
        while let Some(problem) = check.next().await {
            assert_eq!(problem.unwrap(), "NULL value in plain.a");
            problems += 1;
        }
        assert_eq!(problems, 2000);
        assert_eq!(found(db.integrity_check()).await, [""; 0]);
    });
}
