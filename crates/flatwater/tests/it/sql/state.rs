//! State that outlives a statement: transaction control, ATTACH, PRAGMAs and TEMP objects are refused except in the API
//! that is responsible for them, which the error names.
//!
//! Leaves out: what the options set (`settings`).

use flatwater::rusqlite::OptionalExtension;
use flatwater::rusqlite::types::Value;
use flatwater::{Database, Error, ErrorKind, params};

use crate::place::{Place, in_both_places};

in_both_places!(
    transaction_control_and_attach_as_text_are_refused_with_the_call_that_does_it,
    pragmas_that_change_a_connection_are_refused_and_change_nothing,
    pragmas_that_only_answer_are_answered,
    pragmas_that_change_the_database_are_the_writers_and_persist,
    an_unknown_pragma_is_refused,
    temp_objects_are_refused_outside_of_a_transaction_also_after_one_made_them,
    temp_objects_live_until_their_transaction_ends_whichever_way,
    temp_objects_of_any_name_end_with_their_transaction,
);

/// Returns the errors of every call for a text that is refused everywhere, outside a transaction and inside.
async fn refused_everywhere(db: &Database, sql: &str) -> Vec<Error> {
    let mut errors = vec![
        db.execute(sql, ()).await.unwrap_err(),
        db.query(sql, ()).await.unwrap_err(),
        db.execute_many(sql, [()]).await.unwrap_err(),
        db.batch([("DELETE FROM t", params![]), (sql, params![])]).await.unwrap_err(),
        db.execute_script(format!("DELETE FROM t; {sql}")).await.unwrap_err(),
        db.execute(sql, ()).wait().unwrap_err(),
    ];
    let tx = db.begin().await.unwrap();
    errors.extend([
        tx.execute(sql, ()).await.unwrap_err(),
        tx.query(sql, ()).await.unwrap_err(),
        tx.batch([("DELETE FROM t", params![]), (sql, params![])]).await.unwrap_err(),
        tx.execute_script(format!("DELETE FROM t; {sql}")).await.unwrap_err(),
    ]);
    assert_eq!(tx.query_optional_value::<i64>("SELECT count(*) FROM t", ()).await.unwrap(), Some(1), "{sql}");
    tx.execute("UPDATE t SET a = a", ()).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(db.query_optional_value::<i64>("SELECT count(*) FROM t", ()).await.unwrap(), Some(1), "{sql}");
    errors
}

async fn one_row(place: &Place) -> Database {
    let db = place.open().await;
    db.execute_script("CREATE TABLE t (a); INSERT INTO t VALUES (1)").await.unwrap();
    db
}

async fn transaction_control_and_attach_as_text_are_refused_with_the_call_that_does_it(place: &Place) {
    let db = one_row(place).await;
    for (sql, call) in [
        ("BEGIN", "transaction("),
        ("begin immediate transaction", "begin()"),
        ("/* x */ BEGIN EXCLUSIVE", "transaction("),
        ("COMMIT", "tx.commit()"),
        ("END TRANSACTION", "tx.commit()"),
        ("ROLLBACK", "tx.rollback()"),
        ("SAVEPOINT a", "tx.begin()"),
        ("RELEASE flatwater_savepoint", "tx.begin()"),
        ("ROLLBACK TO flatwater_savepoint", "tx.begin()"),
        ("ATTACH ':memory:' AS other", "Tuning::attach"),
        ("ATTACH 'a' || '.db' AS other", "Tuning::attach"),
        ("DETACH main", "Tuning::attach"),
    ] {
        for error in refused_everywhere(&db, sql).await {
            assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
            assert!(error.hint().unwrap().contains(call), "{error}");
            assert!(error.sql().unwrap().contains(sql), "{error}");
        }
    }
}

const CONNECTION_STATE: &[(&str, &str, &str)] = &[
    ("PRAGMA foreign_keys = OFF", "foreign_keys", "Options::foreign_keys"),
    ("PRAGMA main.foreign_keys(0)", "foreign_keys", "Options::foreign_keys"),
    ("pragma SYNCHRONOUS = off", "synchronous", "Options::durability"),
    ("PRAGMA cache_size = 7", "cache_size", "Tuning::writer_cache_bytes"),
    ("PRAGMA mmap_size = 4096", "mmap_size", "Tuning::mmap_bytes"),
    ("PRAGMA busy_timeout = 1", "busy_timeout", "Options::busy_timeout"),
    ("PRAGMA query_only = 1", "query_only", "Options::read_only"),
    ("PRAGMA journal_mode = DELETE", "journal_mode", "WAL"),
    ("PRAGMA journal_mode(memory)", "journal_mode", "WAL"),
    ("PRAGMA wal_autocheckpoint = 1", "wal_autocheckpoint", "Options::checkpoint"),
    ("PRAGMA recursive_triggers = 1", "recursive_triggers", "options"),
    ("PRAGMA writable_schema = 1", "writable_schema", "options"),
    ("PRAGMA temp_store = FILE", "temp_store", "Tuning::temp_store"),
    ("PRAGMA cache_spill = OFF", "cache_spill", "64 MiB"),
];

/// Returns the PRAGMA's value, if it has one, in a write closure and in a read closure.
async fn on_each_connection(db: &Database, pragma: &'static str) -> [String; 2] {
    let value = move |c: &rusqlite::Connection| {
        let value = c.query_row(&format!("PRAGMA {pragma}"), [], |row| row.get::<_, Value>(0)).optional()?;
        Ok::<_, Error>(format!("{value:?}"))
    };
    [db.write_with(move |tx| value(tx)).await.unwrap(), db.read_with(value).await.unwrap()]
}

async fn pragmas_that_change_a_connection_are_refused_and_change_nothing(place: &Place) {
    let db = one_row(place).await;
    // A database in memory has no other mode, which is in force.
    let in_force = |sql: &&str| place.file().is_none() && sql.contains("(memory)");
    for (sql, name, advice) in CONNECTION_STATE.iter().filter(|(sql, ..)| !in_force(sql)) {
        let before = on_each_connection(&db, name).await;
        for error in refused_everywhere(&db, sql).await {
            assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
            assert!(error.hint().unwrap().contains(advice), "{error}");
        }
        let sql = *sql;
        let closures = [
            db.write_with(move |tx| tx.execute_batch(sql).map_err(Error::from)).await.unwrap_err(),
            db.read_with(move |c| c.execute_batch(sql).map_err(Error::from)).await.unwrap_err(),
        ];
        for error in closures {
            assert_eq!(error.sqlite_name(), Some("SQLITE_AUTH"), "{error}");
        }
        assert_eq!(on_each_connection(&db, name).await, before, "{sql}");
    }
    db.execute_script("CREATE TABLE p (id INTEGER PRIMARY KEY); CREATE TABLE c (p REFERENCES p)").await.unwrap();
    let error = db.execute("INSERT INTO c VALUES (7)", ()).await.unwrap_err();
    assert_eq!(error.sqlite_name(), Some("SQLITE_CONSTRAINT_FOREIGNKEY"), "{error}");
}

async fn pragmas_that_only_answer_are_answered(place: &Place) {
    let db = one_row(place).await;
    for sql in ["PRAGMA foreign_keys", "PRAGMA main.page_count", "PRAGMA table_info(t)", "pragma integrity_check"] {
        assert_eq!(db.query(sql, ()).await.unwrap().len(), 1, "{sql}");
        let tx = db.begin().await.unwrap();
        assert_eq!(tx.query(sql, ()).await.unwrap().len(), 1, "{sql}");
    }
    let named = db.query_optional_value::<String>("SELECT name FROM pragma_table_info(?)", ("t",)).await.unwrap();
    assert_eq!(named.as_deref(), Some("a"));
    let error = db.execute("PRAGMA user_version", ()).await.unwrap_err();
    assert!(error.kind() == ErrorKind::Misuse && error.hint().unwrap().contains("query"), "{error}");
}

async fn pragmas_that_change_the_database_are_the_writers_and_persist(place: &Place) {
    let db = one_row(place).await;
    db.execute("PRAGMA user_version = 41", ()).await.unwrap();
    assert_eq!(db.query_optional_value::<i64>("PRAGMA user_version", ()).await.unwrap(), Some(41));
    let rolled_back = db.begin().await.unwrap();
    rolled_back.execute("PRAGMA user_version = 99", ()).await.unwrap();
    rolled_back.rollback().await.unwrap();
    db.execute_script("PRAGMA user_version = 42; PRAGMA application_id = 7").await.unwrap();
    db.write_with(|tx| tx.pragma_update(None, "user_version", 43).map_err(Error::from)).await.unwrap();
    let checkpointed = db.query_optional("PRAGMA wal_checkpoint(TRUNCATE)", ()).await.unwrap().unwrap();
    let checkpointed = checkpointed.read::<(i64, i64, i64)>().unwrap();
    let db = match place.file() {
        Some(file) => {
            assert_eq!(checkpointed, (0, 0, 0));
            assert_eq!(std::fs::metadata(file.beside("-wal")).unwrap().len(), 0);
            db.close().await.unwrap();
            file.open().await
        }
        None => {
            assert_eq!(checkpointed, (0, -1, -1), "there is no WAL");
            db
        }
    };
    let versions: Vec<(i64, i64)> = db
        .query_as("SELECT user_version, application_id FROM pragma_user_version, pragma_application_id", ())
        .await
        .unwrap();
    assert_eq!(versions, [(43, 7)]);
}

async fn an_unknown_pragma_is_refused(place: &Place) {
    let db = one_row(place).await;
    for sql in ["PRAGMA foregin_keys = ON", "PRAGMA no_such_thing", "PRAGMA main.nonsense(1)"] {
        for error in refused_everywhere(&db, sql).await {
            assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
            assert!(error.message().contains("no PRAGMA") && error.hint().is_some(), "{error}");
        }
    }
}

const TEMP: &[&str] = &[
    "CREATE TEMP TABLE x (a)",
    "CREATE TEMPORARY VIEW x AS SELECT * FROM t",
    "CREATE TABLE temp.x AS SELECT * FROM t",
    "CREATE TABLE TEMP.x (a)",
    "CREATE VIEW temp.x AS SELECT * FROM t",
    "CREATE TRIGGER temp.x AFTER INSERT ON main.t BEGIN DELETE FROM t; END",
    "CREATE TEMP TRIGGER x AFTER INSERT ON main.t BEGIN DELETE FROM t; END",
    "CREATE VIRTUAL TABLE temp.x USING fts5(a)",
];

/// Returns the number of TEMP objects, counted in a write closure and in a read closure.
async fn temp_objects(db: &Database) -> [i64; 2] {
    let count = |c: &rusqlite::Connection| {
        let sql = "SELECT count(*) FROM temp.sqlite_schema WHERE name <> 'sqlite_sequence'";
        Ok::<_, Error>(c.query_row(sql, [], |row| row.get(0))?)
    };
    [db.write_with(move |tx| count(tx)).await.unwrap(), db.read_with(count).await.unwrap()]
}

async fn temp_objects_are_refused_outside_of_a_transaction_also_after_one_made_them(place: &Place) {
    let db = one_row(place).await;
    for sql in TEMP {
        for round in ["first", "again"] {
            for error in [
                db.execute(sql, ()).await.unwrap_err(),
                db.execute(sql, ()).wait().unwrap_err(),
                db.batch([(*sql, params![])]).await.unwrap_err(),
                db.execute_script(sql).await.unwrap_err(),
            ] {
                assert_eq!(error.kind(), ErrorKind::Misuse, "{round}: {error}");
                assert!(error.hint().unwrap().contains("inside a transaction"), "{error}");
            }
            assert_eq!(db.query(sql, ()).await.unwrap_err().kind(), ErrorKind::Misuse);
            // Refused too, or undone with the closure's transaction.
            let _ = db.read_with(|c| c.execute_batch(sql).map_err(Error::from)).await;
            assert_eq!(temp_objects(&db).await, [0, 0], "{sql}");
            let tx = db.begin().await.unwrap();
            tx.execute(sql, ()).await.unwrap();
            tx.commit().await.unwrap();
        }
    }
}

async fn temp_objects_live_until_their_transaction_ends_whichever_way(place: &Place) {
    let db = one_row(place).await;
    for how in ["commit", "rollback", "drop"] {
        for sql in TEMP {
            let tx = db.begin().await.unwrap();
            tx.execute(sql, ()).await.unwrap();
            let count = "SELECT count(*) FROM temp.sqlite_schema WHERE tbl_name IN ('x', 't')";
            assert!(tx.query_optional_value::<i64>(count, ()).await.unwrap() > Some(0), "{sql}");
            match how {
                "commit" => tx.commit().await.unwrap(),
                "rollback" => tx.rollback().await.unwrap(),
                _ => drop(tx),
            }
            assert_eq!(temp_objects(&db).await, [0, 0], "{sql}");
        }
        let tables = "CREATE TEMP TABLE t AS SELECT 2 AS a; INSERT INTO t VALUES (3)";
        let tx = db.begin().await.unwrap();
        tx.execute_script(tables).await.unwrap();
        assert_eq!(
            tx.query_optional_value::<i64>("SELECT sum(a) FROM t", ()).await.unwrap(),
            Some(5),
            "it hides main.t"
        );
        tx.execute("INSERT INTO t VALUES (4)", ()).await.unwrap();
        tx.commit().await.unwrap();
        db.execute("INSERT INTO t VALUES (4)", ()).await.unwrap();
        assert_eq!(
            db.query_optional_value::<i64>("SELECT sum(a) FROM t", ()).await.unwrap(),
            Some(5),
            "1 and 4 of main.t"
        );
        db.execute("DELETE FROM t WHERE a = 4", ()).await.unwrap();
    }
}

async fn temp_objects_of_any_name_end_with_their_transaction(place: &Place) {
    let db = one_row(place).await;
    for sql in [
        "CREATE TEMP TABLE \"wei\"\"rd; --\" (a INTEGER PRIMARY KEY AUTOINCREMENT)",
        "CREATE TEMP VIEW broken AS SELECT * FROM nowhere",
        "CREATE TEMP TABLE x (a REFERENCES no); CREATE TEMP TRIGGER \"1\" AFTER INSERT ON x BEGIN SELECT 1; END",
        "CREATE TEMP TABLE sqlite2odd (a)",
        "CREATE TEMP TABLE SQLiteX (a)",
    ] {
        let tx = db.begin().await.unwrap();
        tx.execute_script(sql).await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(temp_objects(&db).await, [0, 0], "{sql}");
        db.write_with(move |tx| tx.execute_batch(sql).map_err(Error::from)).await.unwrap();
        assert_eq!(temp_objects(&db).await, [0, 0], "{sql}");
    }
}
