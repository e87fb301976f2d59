//! `last_insert_rowid()`, `changes()` and `total_changes()` tell of an earlier statement of a connection. Outside of a
//! transaction that may be anybody's, so they are refused; inside, and in triggers, they mean what SQLite means.

use flatwater::{Database, Error, ErrorKind, params, rusqlite};

use crate::place::{Place, in_both_places};
use crate::support::{TestFile, run};

in_both_places!(
    an_earlier_statement_is_not_told_of_outside_of_a_transaction,
    a_statement_that_was_accepted_in_a_transaction_is_refused_outside,
    a_transaction_a_script_a_batch_and_a_closure_tell_of_their_own_statements,
    a_trigger_tells_of_its_own_statement,
);

const SCHEMA: &str = "
    CREATE TABLE p (id INTEGER PRIMARY KEY, n);
    CREATE TABLE c (p, n);
    CREATE VIEW told AS SELECT last_insert_rowid() AS id;
    CREATE TABLE noisy (id INTEGER PRIMARY KEY, n);
    CREATE TRIGGER noise AFTER INSERT ON noisy BEGIN INSERT INTO c SELECT id, changes() FROM told; END;";

async fn open(place: &Place) -> Database {
    let db = place.open().await;
    db.execute_script(SCHEMA).await.unwrap();
    db.execute("INSERT INTO p VALUES (41, 1)", ()).await.unwrap();
    db
}

fn is_refused(error: &Error, sql: &str) {
    assert_eq!(error.kind(), ErrorKind::Misuse, "{sql}: {error}");
    let hint = error.hint().unwrap();
    assert!(hint.contains("RETURNING") && hint.contains("transaction"), "{sql}: {hint}");
    assert!(error.sql().unwrap().contains(sql), "{sql}: {error:?}");
}

const READS: &[&str] = &[
    "SELECT last_insert_rowid()",
    "SELECT \"last_insert_rowid\" ( )",
    "SELECT n FROM p WHERE id = LAST_INSERT_ROWID()",
    "SELECT changes()",
    "SELECT total_changes()",
    "SELECT id FROM told",
    "SELECT count(id) FROM told",
    "WITH x AS (SELECT changes() AS n) SELECT n FROM x",
];

const WRITES: &[&str] = &[
    "INSERT INTO c VALUES (last_insert_rowid(), 2)",
    "INSERT INTO c SELECT id, 2 FROM told",
    "WITH x AS (SELECT last_insert_rowid() AS id) INSERT INTO c SELECT id, 2 FROM x",
    "UPDATE c SET n = changes()",
    "DELETE FROM c WHERE p < total_changes()",
];

async fn an_earlier_statement_is_not_told_of_outside_of_a_transaction(place: &Place) {
    let db = open(place).await;
    for _ in 0..3 {
        for sql in READS {
            is_refused(&db.query(sql, ()).await.unwrap_err(), sql);
            is_refused(&db.query(sql, ()).wait().unwrap_err(), sql);
            is_refused(&db.query_json(sql, ()).await.unwrap_err(), sql);
            is_refused(&db.stream(sql, ()).next().await.unwrap().unwrap_err(), sql);
            is_refused(&db.prepare(sql).await.map(drop).unwrap_err(), sql);
            is_refused(&db.live(sql, ()).next().await.unwrap().unwrap_err(), sql);
            let snapshot = db.snapshot().await.unwrap();
            is_refused(&snapshot.query(sql, ()).await.unwrap_err(), sql);
        }
        for sql in WRITES {
            is_refused(&db.execute(sql, ()).await.unwrap_err(), sql);
            is_refused(&db.execute(sql, ()).wait().unwrap_err(), sql);
            is_refused(&db.execute_many(sql, [()]).await.unwrap_err(), sql);
            is_refused(&db.query(format!("{sql} RETURNING n"), ()).await.unwrap_err(), sql);
        }
    }
    assert_eq!(db.query_optional_value::<i64>("SELECT count(*) FROM c", ()).await.unwrap(), Some(0));
    db.query("EXPLAIN SELECT last_insert_rowid()", ()).await.unwrap();
    db.query("SELECT 'changes()'", ()).await.unwrap();
}

async fn a_statement_that_was_accepted_in_a_transaction_is_refused_outside(place: &Place) {
    let db = open(place).await;
    for _ in 0..4 {
        let tx = db.begin().await.unwrap();
        for sql in READS {
            tx.query(sql, ()).await.unwrap();
        }
        tx.execute(WRITES[0], ()).await.unwrap();
        tx.rollback().await.unwrap();
        for sql in READS {
            is_refused(&db.query(sql, ()).await.unwrap_err(), sql);
        }
        is_refused(&db.execute(WRITES[0], ()).await.unwrap_err(), WRITES[0]);
    }
}

async fn a_transaction_a_script_a_batch_and_a_closure_tell_of_their_own_statements(place: &Place) {
    let db = open(place).await;
    let tx = db.begin().await.unwrap();
    for id in 50..54 {
        tx.execute("INSERT INTO p VALUES (?, 2)", (id,)).await.unwrap();
        assert_eq!(tx.query_optional_value::<i64>("SELECT last_insert_rowid()", ()).await.unwrap(), Some(id));
        assert_eq!(tx.query_optional_value::<i64>("SELECT id FROM told", ()).await.unwrap(), Some(id));
    }
    tx.commit().await.unwrap();
    db.execute_script("INSERT INTO p VALUES (60, 3); INSERT INTO c VALUES (last_insert_rowid(), changes())")
        .await
        .unwrap();
    let batch = [
        ("INSERT INTO p VALUES (?, 4)", params![70]),
        ("INSERT INTO c VALUES (last_insert_rowid(), changes())", params![]),
    ];
    db.batch(batch).await.unwrap();
    db.write_with(|tx| {
        tx.execute("INSERT INTO p VALUES (80, 5)", [])?;
        tx.execute("INSERT INTO c VALUES (last_insert_rowid(), changes())", []).map_err(Error::from)
    })
    .await
    .unwrap();
    let rows: Vec<(i64, i64)> = db.query_as("SELECT p, n FROM c ORDER BY rowid", ()).await.unwrap();
    assert_eq!(rows, [(60, 1), (70, 1), (80, 1)]);
}

async fn a_trigger_tells_of_its_own_statement(place: &Place) {
    let db = open(place).await;
    for id in 1..6 {
        db.execute("INSERT INTO noisy VALUES (?, 0)", (id,)).await.unwrap();
    }
    let told: Vec<i64> = db.query_values("SELECT p FROM c ORDER BY rowid", ()).await.unwrap();
    assert_eq!(told, [1, 2, 3, 4, 5]);
}

#[test]
fn a_trigger_of_another_program_is_known_when_it_is_met() {
    let file = TestFile::new();
    run(async {
        let db = file.open().await;
        db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)", ()).await.unwrap();
        let plain: rusqlite::Connection = file.plain();
        plain
            .execute_batch(
                "CREATE TABLE log (id);
                 CREATE TRIGGER x AFTER INSERT ON t BEGIN INSERT INTO log VALUES (last_insert_rowid()); END",
            )
            .unwrap();
        db.execute("INSERT INTO t VALUES (9)", ()).await.unwrap();
        assert_eq!(db.query_optional_value::<i64>("SELECT id FROM log", ()).await.unwrap(), Some(9));
    });
}
