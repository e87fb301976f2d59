//! Errors that say what to do where SQLite's own text misleads.
//!
//! Leaves out: names that are nearly right (`first_mistakes`), files that cannot be opened (`bad_paths`).

use flatwater::{Database, Error, ErrorKind, Migrations, params};

use crate::place::{Place, in_both_places};

in_both_places!(
    a_table_that_has_given_its_highest_rowid_is_no_full_disk,
    what_a_closure_may_not_do_names_the_closure_that_may,
    a_rebuild_that_fails_because_of_a_view_or_a_trigger_names_it_and_the_way_out,
    placeholders_of_other_libraries_are_answered_with_those_of_sqlite,
);

async fn open(place: &Place, schema: &str) -> Database {
    let db = place.open().await;
    db.execute_script(schema).await.unwrap();
    db
}

fn hint(error: &Error) -> &str {
    error.hint().unwrap_or_else(|| panic!("no hint: {error}"))
}

async fn a_table_that_has_given_its_highest_rowid_is_no_full_disk(place: &Place) {
    let schema = "CREATE TABLE numbered (id INTEGER PRIMARY KEY AUTOINCREMENT, a); CREATE TABLE t (a);
        CREATE TRIGGER logs AFTER INSERT ON t BEGIN INSERT INTO numbered (a) VALUES (new.a); END;
        INSERT INTO numbered VALUES (9223372036854775807, 1)";
    let db = open(place, schema).await;
    let before = db.stats().wal;
    let tx = db.begin().await.unwrap();
    let mut errors = vec![tx.execute("INSERT INTO numbered (a) VALUES (?)", (1,)).await.unwrap_err()];
    tx.rollback().await.expect("SQLite has rolled it back, which is what it asks for");
    // The second time it may run on its caller's thread.
    for sql in
        ["INSERT INTO numbered (a) VALUES (?)", "INSERT INTO numbered (a) VALUES (?)", "INSERT INTO t VALUES (?)"]
    {
        errors.push(db.execute(sql, (1,)).await.unwrap_err());
        errors.push(db.execute_many(sql, [(1,), (2,)]).await.unwrap_err());
        errors.push(db.batch([(sql, params![1])]).await.unwrap_err());
        errors.push(db.query(format!("{sql} RETURNING a"), (1,)).await.unwrap_err());
    }
    errors.push(db.execute_script("INSERT INTO numbered (a) VALUES (1)").await.unwrap_err());
    errors.push(db.migrate(Migrations::new([("1_a", "INSERT INTO numbered (a) VALUES (1)")])).await.unwrap_err());
    for error in errors {
        assert_eq!((error.kind(), error.sqlite_name()), (ErrorKind::Sql, Some("SQLITE_FULL")), "{error}");
        assert!(error.message().contains("numbered has used the highest rowid"), "{error}");
        assert!(hint(&error).contains("AUTOINCREMENT") && !error.to_string().contains("disk"), "{error}");
    }
    let after = db.stats().wal;
    assert_eq!((after.resets, after.starved), (before.resets, before.starved), "no room was made");
    // The table itself is as usable as before.
    db.execute("INSERT INTO numbered VALUES (7, 1)", ()).await.unwrap();
}

async fn what_a_closure_may_not_do_names_the_closure_that_may(place: &Place) {
    let db = open(place, "CREATE TABLE t (a)").await;
    for sql in ["ATTACH 'x' AS x", "COMMIT", "PRAGMA foreign_keys = OFF"] {
        let errors = [
            db.read_with(|sqlite| -> Result<(), Error> { Ok(sqlite.execute_batch(sql)?) }).await.unwrap_err(),
            db.write_with(|sqlite| -> Result<(), Error> { Ok(sqlite.execute_batch(sql)?) }).await.unwrap_err(),
        ];
        for error in errors {
            assert_eq!(error.sqlite_name(), Some("SQLITE_AUTH"), "{error}");
            assert!(hint(&error).contains("`with_connection`"), "{error}");
        }
    }
    let whole = "PRAGMA locking_mode = exclusive";
    let error = db.with_connection(|sqlite| -> Result<(), Error> { Ok(sqlite.execute_batch(whole)?) }).await;
    let error = error.unwrap_err();
    assert!(!hint(&error).contains("with_connection") && hint(&error).contains("journal mode"), "{error}");
}

async fn a_rebuild_that_fails_because_of_a_view_or_a_trigger_names_it_and_the_way_out(place: &Place) {
    let schema = "CREATE TABLE t (a, b); CREATE VIEW \"the view\" AS SELECT a, b FROM t; CREATE TABLE other (a)";
    let db = open(place, schema).await;
    let rebuild = "CREATE TABLE new_t (a, b, c); DROP TABLE t; ALTER TABLE new_t RENAME TO t";
    let migration = |sql: String| Migrations::new([("1_rebuild", sql)]);
    let errors = [
        db.execute_script(rebuild).await.unwrap_err(),
        db.migrate(migration(rebuild.into())).await.unwrap_err(),
        db.execute("ALTER TABLE t DROP COLUMN b", ()).await.unwrap_err(),
        db.write_with(|sqlite| -> Result<(), Error> { Ok(sqlite.execute_batch(rebuild)?) }).await.unwrap_err(),
    ];
    for error in errors {
        assert!(hint(&error).contains("drop the view the view before"), "{error}");
        assert!(hint(&error).contains("legacy_alter_table"), "{error}");
    }
    // The ways out are ones.
    let around = "DROP VIEW \"the view\"; ";
    db.migrate(migration(format!("PRAGMA legacy_alter_table = ON; {rebuild}; PRAGMA legacy_alter_table = OFF")))
        .await
        .unwrap();
    db.execute_script(format!(
        "{around}{rebuild}; CREATE TRIGGER tells AFTER INSERT ON other BEGIN INSERT INTO t (a) VALUES (1); END"
    ))
    .await
    .unwrap();
    let error = db.execute_script(rebuild).await.unwrap_err();
    assert!(hint(&error).contains("drop the trigger tells before"), "{error}");
}

async fn placeholders_of_other_libraries_are_answered_with_those_of_sqlite(place: &Place) {
    let db = open(place, "CREATE TABLE t (a, b)").await;
    for sql in [
        "SELECT * FROM t WHERE a = %s",
        "INSERT INTO t VALUES (%s, %s)",
        "UPDATE t SET a = %(a)s",
        "DELETE FROM t WHERE a = {}",
        "SELECT * FROM t WHERE a IN ({ids})",
    ] {
        for error in [db.execute(sql, (1,)).await.unwrap_err(), db.query(sql, (1,)).await.unwrap_err()] {
            assert!(hint(&error).contains("`?`") && hint(&error).contains("`:name`"), "{sql}: {error}");
        }
    }
    for sql in ["SELECT a % FROM t", "SELECT '%s' FROM t WHERE"] {
        assert_eq!(db.query(sql, ()).await.unwrap_err().hint(), None, "{sql}");
    }
}
