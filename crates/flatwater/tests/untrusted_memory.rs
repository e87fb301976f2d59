//! What SQLite takes for a statement on a file of strangers ends at a limit, whatever is in the file.
//!
//! Its own program: Flatwater has to be the first that uses SQLite, so nothing else opens a database before it.

use flatwater::{Database, Error, ErrorKind, Options};

/// Less than what the views take, and more than the caches.
const LIMIT: usize = 8 << 20;

/// Views that need more memory: a list that is gathered, where SQLite tells at its end that there was none left, and one row of
/// many long values.
const SCHEMA: &str = "
    CREATE TABLE t (a);
    INSERT INTO t VALUES (1);
    CREATE VIEW n AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 200) SELECT i FROM n;
    CREATE VIEW gathered AS SELECT json_group_array(hex(zeroblob(100000))) AS x FROM n;
    CREATE VIEW wide AS SELECT COLUMNS FROM t;
    CREATE VIEW fine AS SELECT a, length(zeroblob(800000)) AS l FROM t;";

fn schema() -> String {
    let columns: Vec<_> = (0..100).map(|number| format!("hex(zeroblob({number} + 100000)) AS c{number}")).collect();
    SCHEMA.replace("COLUMNS", &columns.join(", "))
}

fn is_of_limit(error: &Error, limit: usize) {
    assert_eq!(error.kind(), ErrorKind::Sql, "{error}");
    assert!(error.message().contains(&format!("SQLite took more than {limit} bytes")), "{error}");
    assert!(error.hint().unwrap().contains("`Tuning::memory_limit`"), "{error}");
}

async fn is_refused(db: &Database, sql: &str) {
    for error in [
        db.query(sql, ()).await.map(drop).unwrap_err(),
        db.query_json(sql, ()).await.map(drop).unwrap_err(),
        db.stream(sql, ()).next().await.unwrap().map(drop).unwrap_err(),
        db.live(sql, ()).next().await.unwrap().map(drop).unwrap_err(),
        db.connection().query(sql, ()).await.map(drop).unwrap_err(),
        db.snapshot().await.unwrap().query(sql, ()).await.map(drop).unwrap_err(),
    ] {
        is_of_limit(&error, LIMIT);
    }
    // The connections go on.
    assert_eq!(db.query_value::<i64>("SELECT l FROM fine", ()).await.unwrap(), 800_000);
}

#[test]
fn what_sqlite_takes_for_a_statement_on_a_file_of_strangers_has_a_limit() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("test.db");
        let db = Options::new(&path).open().await.unwrap();
        db.execute_script(schema()).await.unwrap();
        db.close().await.unwrap();

        let untrusted = || {
            let options = Options::new(&path).tuning(|t| t.untrusted()).readers(1);
            options.tuning(|t| t.memory_limit(LIMIT).reader_cache_bytes(1 << 20).writer_cache_bytes(1 << 20))
        };
        let db = untrusted().open().await.unwrap();
        for sql in ["SELECT * FROM gathered", "SELECT * FROM wide"] {
            is_refused(&db, sql).await;
        }
        db.close().await.unwrap();

        let db = untrusted().read_only(false).open().await.unwrap();
        let transaction = db.begin().await.unwrap();
        transaction.execute("INSERT INTO t VALUES (2)", ()).await.unwrap();
        is_of_limit(&transaction.query("SELECT * FROM wide", ()).await.unwrap_err(), LIMIT);
        drop(transaction);
        is_of_limit(&db.execute("INSERT INTO t SELECT x FROM gathered", ()).await.unwrap_err(), LIMIT);
        assert_eq!(db.query_value::<i64>("SELECT count(*) FROM t", ()).await.unwrap(), 1);
        db.execute("INSERT INTO t VALUES (3)", ()).await.unwrap();
        db.close().await.unwrap();

        let long = ["hex(zeroblob(1000000))"; 3].join(" || ");
        let sum = format!("SELECT length({long}) + length({long})");
        let db = Options::new(&path).tuning(|t| t.untrusted()).readers(1).open().await.unwrap();
        assert_eq!(db.query_value::<i64>(&sum, ()).await.unwrap(), 12_000_000, "the default is higher");
        db.close().await.unwrap();
        // A file that is trusted has no limit.
        let db = Options::new(&path).open().await.unwrap();
        assert_eq!(db.query_value::<i64>(&sum, ()).await.unwrap(), 12_000_000);
        db.close().await.unwrap();
    });
}
