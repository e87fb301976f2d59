//! The statements that `execute` and `query` accept, their results, and statements other than row writes.

use flatwater::values::ExecuteResult;
use flatwater::{Database, Error, ErrorKind};

use crate::place::{Place, in_both_places};
use crate::support::integrity;

in_both_places!(
    a_call_refuses_statements_that_are_not_its_own,
    a_write_with_returning_is_a_query_and_runs_to_its_end,
    maintenance_and_virtual_tables_work,
    a_column_that_is_checked_against_the_rows_can_be_added,
    the_rowid_is_that_of_the_statements_own_last_row,
    the_rowid_is_told_also_where_it_is_the_one_of_the_insert_before,
);

async fn one_row(place: &Place) -> Database {
    let db = place.open().await;
    db.execute_script("CREATE TABLE t (a); INSERT INTO t VALUES (1)").await.unwrap();
    db
}

async fn a_call_refuses_statements_that_are_not_its_own(place: &Place) {
    let db = one_row(place).await;
    let check = |error: Error, call: &str| {
        assert_eq!((error.kind(), error.sqlite_code()), (ErrorKind::Misuse, None), "{error}");
        assert!(error.hint().unwrap().contains(call), "{error}");
    };
    for sql in [
        "SELECT a FROM t",
        "VALUES (1)",
        "INSERT INTO t VALUES (9) RETURNING a",
        "WITH x AS (SELECT 9) DELETE FROM t RETURNING a",
        "EXPLAIN QUERY PLAN DELETE FROM t",
    ] {
        check(db.execute(sql, ()).await.unwrap_err(), "query");
        check(db.execute_many(sql, [(), ()]).await.unwrap_err(), "query");
        check(db.execute(sql, ()).wait().unwrap_err(), "query");
        check(db.begin().await.unwrap().execute(sql, ()).await.unwrap_err(), "query");
    }
    for sql in [
        "INSERT INTO t VALUES (9)",
        "DELETE FROM t",
        "CREATE TABLE u (a)",
        "WITH x AS (SELECT 9) INSERT INTO t SELECT * FROM x",
        "VACUUM",
    ] {
        check(db.query(sql, ()).await.unwrap_err(), "execute");
        check(db.query_optional(sql, ()).await.unwrap_err(), "execute");
        check(db.query(sql, ()).wait().unwrap_err(), "execute");
        check(db.begin().await.unwrap().query(sql, ()).await.unwrap_err(), "execute");
    }
    assert_eq!(db.query_as::<(i64,)>("SELECT a FROM t", ()).await.unwrap(), [(1,)]);
    assert!(db.query("SELECT 1 FROM sqlite_schema WHERE name = 'u'", ()).await.unwrap().is_empty());
}

async fn a_write_with_returning_is_a_query_and_runs_to_its_end(place: &Place) {
    let db = one_row(place).await;
    let sql = "INSERT INTO t VALUES (2), (3), (4) RETURNING a * 10";
    assert_eq!(db.query_optional_value::<i64>(sql, ()).await.unwrap(), Some(20));
    assert_eq!(db.query_as::<(i64,)>(sql, ()).await.unwrap(), [(20,), (30,), (40,)]);
    assert_eq!(db.query_optional_value::<i64>("SELECT count(*) FROM t", ()).await.unwrap(), Some(7));
    let sql = "WITH x AS (SELECT 5) UPDATE t SET a = 0 WHERE a > 1 RETURNING a";
    assert_eq!(db.begin().await.unwrap().query(sql, ()).await.unwrap().len(), 6, "rolled back");
    assert_eq!(db.query_optional(sql, ()).await.unwrap().unwrap().get::<i64>("a").unwrap(), 0);
    assert!(db.query_optional(sql, ()).await.unwrap().is_none());
}

async fn maintenance_and_virtual_tables_work(place: &Place) {
    let db = one_row(place).await;
    db.execute_many("INSERT INTO t VALUES (?)", (0..5000).map(|n| (format!("{n:0100}"),))).await.unwrap();
    db.execute("CREATE INDEX i ON t (a)", ()).await.unwrap();
    for sql in ["ANALYZE", "REINDEX", "REINDEX i", "VACUUM", "PRAGMA optimize", "PRAGMA incremental_vacuum"] {
        let answered = match db.execute(sql, ()).await {
            Ok(executed) => executed == ExecuteResult::default(),
            Err(error) => error.hint().unwrap().contains("query") && db.query(sql, ()).await.is_ok(),
        };
        assert!(answered, "{sql}");
    }
    assert!(db.query_optional_value::<i64>("SELECT count(*) FROM sqlite_stat1", ()).await.unwrap() > Some(0));
    db.execute("DELETE FROM t", ()).await.unwrap();
    let pages = || db.query_optional_value::<i64>("PRAGMA page_count", ());
    let before = pages().await.unwrap();
    db.execute("VACUUM", ()).await.unwrap();
    assert!(pages().await.unwrap() < before);
    let directory = tempfile::tempdir().unwrap();
    let copy = directory.path().join("copy.db");
    db.execute("VACUUM INTO ?", (copy.to_str().unwrap(),)).await.unwrap();
    assert_eq!(integrity(&rusqlite::Connection::open(copy).unwrap()), "ok");
    let error = db.begin().await.unwrap().execute("VACUUM", ()).await.unwrap_err();
    assert!(error.message().contains("from within a transaction"), "{error}");
    db.execute("CREATE VIRTUAL TABLE notes USING fts5(body)", ()).await.unwrap();
    db.execute("CREATE VIRTUAL TABLE boxes USING rtree(id, x0, x1)", ()).await.unwrap();
    db.execute("INSERT INTO notes VALUES ('one two'), ('two three')", ()).await.unwrap();
    db.execute("INSERT INTO boxes VALUES (1, 0.0, 1.0)", ()).await.unwrap();
    let found = db.query("SELECT rowid FROM notes WHERE notes MATCH ?", ("two",)).await.unwrap();
    assert_eq!(found.len(), 2);
    db.execute("DROP TABLE notes", ()).await.unwrap();
}

async fn a_column_that_is_checked_against_the_rows_can_be_added(place: &Place) {
    let db = one_row(place).await;
    db.execute("CREATE TABLE p (id INTEGER PRIMARY KEY)", ()).await.unwrap();
    let add = |column: &str| format!("ALTER TABLE t ADD COLUMN {column}");
    let tx = db.begin().await.unwrap();
    for (column, message) in [
        ("b NOT NULL", "Cannot add a NOT NULL column"),
        ("b DEFAULT 1 CHECK (b > 1)", "CHECK constraint failed"),
        ("b DEFAULT 1 REFERENCES p", "Cannot add a REFERENCES column"),
    ] {
        for error in [
            tx.execute(add(column), ()).await.unwrap_err(),
            tx.batch([(&*add(column), ())]).await.unwrap_err(),
            tx.execute_script(add(column)).await.unwrap_err(),
        ] {
            assert!(error.kind() == ErrorKind::Sql && error.message().contains(message), "{error}");
        }
    }
    let error = tx.query(add("b NOT NULL DEFAULT 2"), ()).await.unwrap_err();
    assert!(error.kind() == ErrorKind::Misuse && error.message().contains("returns no rows"), "{error}");
    tx.commit().await.unwrap();
    db.execute("DELETE FROM t", ()).await.unwrap();
    for column in ["b NOT NULL", "c CHECK (c > 1)", "d REFERENCES p"] {
        assert_eq!(db.execute(add(column), ()).await.unwrap(), ExecuteResult::default());
    }
    db.execute("INSERT INTO t VALUES (1, 2, 3, NULL)", ()).await.unwrap();
    let results = db.batch([(&*add("e CHECK (e IS NULL)"), ()), (&*add("f NOT NULL DEFAULT 4"), ())]).await.unwrap();
    assert!(results.iter().all(|result| result.rows.is_none()), "{results:?}");
    let row: (i64, i64, i64, Option<i64>, Option<i64>, i64) = db.query_one_as("SELECT * FROM t", ()).await.unwrap();
    assert_eq!(row, (1, 2, 3, None, None, 4));
    db.close().await.unwrap();
}

/// Checks the result of each statement, outside a transaction and inside, in this order.
async fn rowids(db: &Database, statements: &[(&str, u64, Option<i64>)]) {
    for (sql, changes, last_insert_rowid) in statements {
        let expected = (*changes, *last_insert_rowid);
        let both = |result: ExecuteResult| (result.changes, result.last_insert_rowid);
        let tx = db.begin().await.unwrap();
        assert_eq!(both(tx.execute(sql, ()).await.unwrap()), expected, "in a transaction: {sql}");
        tx.rollback().await.unwrap();
        assert_eq!(both(db.execute(sql, ()).await.unwrap()), expected, "{sql}");
    }
}

async fn the_rowid_is_that_of_the_statements_own_last_row(place: &Place) {
    let db = place.open().await;
    let schema = "CREATE TABLE t (id INTEGER PRIMARY KEY, a UNIQUE, n DEFAULT 0); CREATE TABLE log (a);
        CREATE TABLE w (a PRIMARY KEY) WITHOUT ROWID; CREATE TABLE copy (id INTEGER PRIMARY KEY, a UNIQUE, n);
        CREATE VIEW v AS SELECT * FROM t; CREATE VIRTUAL TABLE notes USING fts5(body);
        CREATE TRIGGER t1 AFTER INSERT ON t BEGIN INSERT INTO log VALUES (1), (2), (3); END;
        CREATE TRIGGER t2 AFTER UPDATE ON t BEGIN INSERT INTO log VALUES (1); END;
        CREATE TRIGGER v1 INSTEAD OF INSERT ON v BEGIN INSERT INTO log VALUES (1); END;
        CREATE TRIGGER w1 AFTER INSERT ON w BEGIN INSERT INTO log VALUES (1); END";
    db.execute_script(schema).await.unwrap();
    rowids(
        &db,
        &[
            ("INSERT INTO t (a) VALUES ('x')", 1, Some(1)),
            ("INSERT INTO t (a) VALUES ('y'), ('z')", 2, Some(3)),
            ("INSERT OR IGNORE INTO t (a) VALUES ('x')", 0, None),
            ("INSERT OR IGNORE INTO t (id, a) VALUES (3, 'new')", 0, None),
            ("INSERT INTO t (a) VALUES ('x') ON CONFLICT DO NOTHING", 0, None),
            ("INSERT INTO t (a) VALUES ('x') ON CONFLICT DO UPDATE SET n = n + 1", 1, None),
            ("INSERT INTO t (a) SELECT 'never' WHERE 0", 0, None),
            ("UPDATE t SET n = n + 1", 3, None),
            ("UPDATE t SET id = 30 WHERE id = 3", 1, None),
            ("DELETE FROM t WHERE id = 30", 1, None),
            ("INSERT INTO T (id, a) VALUES (-5, 'minus')", 1, Some(-5)),
            ("REPLACE INTO t (a) VALUES ('x')", 1, Some(3)),
            ("INSERT OR REPLACE INTO main.\"t\" (id, a) VALUES (3, 'same rowid')", 1, Some(3)),
            ("INSERT INTO w VALUES ('x')", 1, None),
            ("INSERT INTO v (a) VALUES ('x')", 0, None),
            ("CREATE TABLE made AS SELECT * FROM t", 0, None),
            ("INSERT INTO log VALUES (1)", 1, Some(26)),
        ],
    )
    .await;
}

async fn the_rowid_is_told_also_where_it_is_the_one_of_the_insert_before(place: &Place) {
    let db = place.open().await;
    let schema = "CREATE TABLE t (id INTEGER PRIMARY KEY, a); CREATE TABLE copy (id INTEGER PRIMARY KEY, a);
        CREATE VIRTUAL TABLE notes USING fts5(body); CREATE VIRTUAL TABLE boxes USING rtree(id, x0, x1)";
    db.execute_script(schema).await.unwrap();
    rowids(
        &db,
        &[
            ("INSERT INTO t (a) VALUES ('x')", 1, Some(1)),
            ("INSERT INTO copy SELECT * FROM t", 1, Some(1)),
            ("INSERT INTO notes VALUES ('x')", 1, Some(1)),
            ("INSERT INTO boxes VALUES (1, 0, 1)", 1, Some(1)),
            ("UPDATE notes SET body = 'y'", 1, None),
        ],
    )
    .await;
}
