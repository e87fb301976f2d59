//! A database as bytes, and a database of bytes.

use std::time::Duration;

use flatwater::{Database, ErrorKind, Options};

use crate::place::{Place, in_both_places};
use crate::support::{TestFile, integer, integrity, run};

in_both_places!(
    bytes_are_the_same_database,
    an_empty_database_is_bytes_too,
    a_call_that_is_too_late_or_closed_is_an_error,
);

fn memory() -> Options {
    Options::new(":memory:")
}

async fn filled(options: Options) -> Database {
    let db = options.open().await.unwrap();
    db.execute_script(
        "PRAGMA user_version = 7; CREATE TABLE t (a UNIQUE);
         WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n LIMIT 2000) INSERT INTO t SELECT hex(n) FROM n",
    )
    .await
    .unwrap();
    db
}

async fn bytes_are_the_same_database(place: &Place) {
    for page_size in [512, 4096, 65536] {
        let place = place.another();
        let db = filled(place.options().tuning(|t| t.page_size(page_size))).await;
        let bytes = db.serialize().await.unwrap();
        assert_eq!(bytes.len() % page_size as usize, 0);
        let copy = memory().tuning(|t| t.deserialize(bytes.clone())).open().await.unwrap();
        assert_eq!(copy.query_value::<i64>("SELECT count(*) FROM t", ()).await.unwrap(), 2000);
        assert_eq!(copy.query_value::<u32>("PRAGMA page_size", ()).await.unwrap(), page_size);
        assert_eq!(copy.query_value::<i64>("PRAGMA user_version", ()).await.unwrap(), 7);
        copy.execute_many("INSERT INTO t VALUES (?)", (0..3000).map(|n| (n,))).await.unwrap();
        assert_eq!(db.query_value::<i64>("SELECT count(*) FROM t", ()).await.unwrap(), 2000, "they are two");
        assert_eq!(copy.query_value::<String>("PRAGMA integrity_check", ()).await.unwrap(), "ok");
        // Any other SQLite reads them, as a file.
        let file = TestFile::new();
        std::fs::write(file.path(), &bytes).unwrap();
        assert_eq!((integrity(&file.plain()).as_str(), integer(&file.plain(), "SELECT count(*) FROM t")), ("ok", 2000));
    }
}

async fn an_empty_database_is_bytes_too(place: &Place) {
    let db = place.open().await;
    let bytes = db.serialize().await.unwrap();
    let copy = memory().tuning(|t| t.deserialize(bytes)).open().await.unwrap();
    copy.execute("CREATE TABLE t (a)", ()).await.unwrap();
    let none = memory().tuning(|t| t.deserialize(Vec::new())).open().await.unwrap();
    none.execute("CREATE TABLE t (a)", ()).await.unwrap();
}

async fn a_call_that_is_too_late_or_closed_is_an_error(place: &Place) {
    let db = filled(place.options()).await;
    let error = db.serialize().timeout(Duration::ZERO).await.unwrap_err();
    assert_eq!((error.kind(), error.operation()), (ErrorKind::Timeout, Some("serialize")));
    db.close().await.unwrap();
    assert_eq!(db.serialize().await.unwrap_err().kind(), ErrorKind::Closed);
}

#[test]
fn bytes_that_are_no_database_are_refused() {
    let whole = run(async { filled(memory()).await.serialize().await.unwrap() });
    for bytes in [b"short".to_vec(), vec![7; 5000], whole[..100].to_vec(), whole[..whole.len() / 2].to_vec()] {
        let opened = run(async { memory().tuning(|t| t.deserialize(bytes.clone())).open().await });
        let error = opened.unwrap_err();
        assert_eq!((error.kind(), error.operation()), (ErrorKind::Corrupt, Some("open")), "{}: {error}", bytes.len());
    }
}

#[test]
fn a_file_in_wal_mode_is_bytes_as_of_its_newest_commit_and_others_write_meanwhile() {
    let file = TestFile::new();
    run(async {
        let db = filled(file.options()).await;
        let tx = db.begin().await.unwrap();
        tx.execute("DELETE FROM t", ()).await.unwrap();
        let bytes = db.serialize().await.unwrap();
        let copy = memory().tuning(|t| t.deserialize(bytes)).open().await.unwrap();
        assert_eq!(copy.query_value::<i64>("SELECT count(*) FROM t", ()).await.unwrap(), 2000);
        tx.commit().await.unwrap();
        assert_eq!(db.stats().readers_held, 0);
        db.close().await.unwrap();
        // The bytes of the file itself say that it has a WAL.
        let copy = memory().tuning(|t| t.deserialize(std::fs::read(file.path()).unwrap())).open().await.unwrap();
        assert_eq!(copy.query_value::<i64>("SELECT count(*) FROM t", ()).await.unwrap(), 0);
    });
}

#[test]
fn options_open_as_many_databases_as_one_likes() {
    let options = memory().tuning(|t| t.deserialize(run(async { filled(memory()).await.serialize().await.unwrap() })));
    run(async {
        for _ in 0..2 {
            let db = options.clone().open().await.unwrap();
            db.execute("DELETE FROM t", ()).await.unwrap();
        }
        let db = options.open().await.unwrap();
        assert_eq!(db.query_value::<i64>("SELECT count(*) FROM t", ()).await.unwrap(), 2000);
    });
}
