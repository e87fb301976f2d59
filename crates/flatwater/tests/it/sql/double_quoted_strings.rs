//! A name in double quotes is a name: what is no column is an error on every road, and files whose schema has texts in double
//! quotes are used as before.

use flatwater::{Database, Error, ErrorKind, Options, Result};

use crate::place::{Place, in_both_places};
use crate::support::{TestFile, run};

in_both_places!(
    a_name_in_double_quotes_that_is_no_column_is_an_error_everywhere,
    texts_in_double_quotes_are_taken_if_the_program_says_so,
    a_closure_that_changes_it_changes_it_for_itself,
    the_hint_names_the_column_that_was_meant_or_the_option,
    tables_and_indexes_with_texts_in_double_quotes_work,
    a_vacuum_and_a_compact_copy_run_the_definitions_of_the_file,
);

const OLD: &str = r#"
    CREATE TABLE t (a, b CHECK (b <> "bad"), g AS (a || "x"), d DEFAULT "dd");
    CREATE INDEX i ON t ("k" || a); CREATE INDEX j ON t (b) WHERE b <> "no";
    INSERT INTO t (a, b) VALUES (1, 2)"#;
const OLD_CODE: &str = r#"
    CREATE TABLE log (x); CREATE TABLE u (a);
    CREATE VIEW v AS SELECT a, "lit" AS l FROM u;
    CREATE TRIGGER on_insert AFTER INSERT ON u BEGIN INSERT INTO log VALUES ("fired"); END"#;

/// A database with a schema that was made where texts in double quotes are taken.
async fn with_schema(place: &Place, schema: &str) -> Database {
    match place.file() {
        Some(file) => {
            file.plain().execute_batch(schema).unwrap();
            place.open().await
        }
        None => {
            let mut plain = rusqlite::Connection::open_in_memory().unwrap();
            plain.execute_batch(schema).unwrap();
            let bytes = plain.serialize("main").unwrap().to_vec();
            place.options().tuning(|t| t.deserialize(bytes)).open().await.unwrap()
        }
    }
}

fn is_of_quotes(error: &Error) -> bool {
    assert_eq!(error.kind(), ErrorKind::Sql, "{error}");
    error.message().contains("no such column: \"gone\"")
}

async fn a_name_in_double_quotes_that_is_no_column_is_an_error_everywhere(place: &Place) {
    let db = place.open().await;
    db.execute_script("CREATE TABLE t (id INTEGER PRIMARY KEY, a); INSERT INTO t (a) VALUES ('x'), ('y')")
        .await
        .unwrap();
    let (select, delete) = (r#"SELECT "gone" FROM t"#, r#"DELETE FROM t WHERE "gone" IS NOT NULL"#);
    assert!(is_of_quotes(&db.query(select, ()).await.unwrap_err()));
    assert!(is_of_quotes(&db.query_json(select, ()).await.unwrap_err()));
    assert!(is_of_quotes(&db.execute(delete, ()).await.unwrap_err()));
    assert!(is_of_quotes(&db.execute_many(delete, [(), ()]).await.unwrap_err()));
    assert!(is_of_quotes(&db.execute_script(delete).await.unwrap_err()));
    assert!(is_of_quotes(&db.execute(r#"CREATE TABLE u (a CHECK (a <> "gone"))"#, ()).await.unwrap_err()));
    assert!(is_of_quotes(&db.execute(r#"CREATE INDEX i ON t ("gone" || a)"#, ()).await.unwrap_err()));
    let in_transaction = db.transaction(async |tx| -> Result<_> { tx.execute(delete, ()).await }).await;
    assert!(is_of_quotes(&in_transaction.unwrap_err()));
    assert!(is_of_quotes(&db.snapshot().await.unwrap().query(select, ()).await.unwrap_err()));
    let prepare = move |c: &rusqlite::Connection| -> Result<()> { Ok(c.prepare(select).map(drop)?) };
    assert!(is_of_quotes(&db.read_with(move |c| prepare(c)).await.unwrap_err()));
    assert!(is_of_quotes(&db.with_connection(move |c| prepare(c)).await.unwrap_err()));
    assert!(is_of_quotes(&db.migrate([("1", delete)]).await.unwrap_err()));
    let mut stream = db.stream(select, ());
    assert!(is_of_quotes(&stream.next().await.unwrap().unwrap_err()));
    if place.file().is_some() {
        let own = db.connection();
        assert!(is_of_quotes(&own.execute(delete, ()).await.unwrap_err()));
    }
    assert_eq!(db.query_value::<i64>("SELECT count(*) FROM t", ()).await.unwrap(), 2);
    assert_eq!(db.query_value::<i64>(r#"SELECT count("a") FROM "t""#, ()).await.unwrap(), 2);
}

async fn texts_in_double_quotes_are_taken_if_the_program_says_so(place: &Place) {
    let db = place.options().tuning(|t| t.double_quoted_strings(true)).open().await.unwrap();
    db.execute(r#"CREATE TABLE t (a CHECK (a <> "bad"))"#, ()).await.unwrap();
    db.execute(r#"INSERT INTO t VALUES ("a text")"#, ()).await.unwrap();
    assert_eq!(db.query_value::<String>(r#"SELECT a || "!" FROM t"#, ()).await.unwrap(), "a text!");
    db.with_connection(|c| -> Result<()> { Ok(c.query_row(r#"SELECT "a""#, [], |_| Ok(()))?) }).await.unwrap();
    assert_eq!(db.query_value::<String>(r#"SELECT a || "!" FROM t"#, ()).await.unwrap(), "a text!");
}

async fn a_closure_that_changes_it_changes_it_for_itself(place: &Place) {
    use rusqlite::config::DbConfig;

    let db = place.open().await;
    let change = |c: &rusqlite::Connection| -> Result<()> {
        Ok(c.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DML, true).map(drop)?)
    };
    db.write_with(move |c| change(c)).await.unwrap();
    db.read_with(move |c| change(c)).await.unwrap();
    db.with_connection(move |c| change(c)).await.unwrap();
    for _ in 0..4 {
        db.query(r#"SELECT "gone""#, ()).await.unwrap_err();
        db.execute(r#"CREATE TABLE t AS SELECT "gone""#, ()).await.unwrap_err();
    }
}

async fn the_hint_names_the_column_that_was_meant_or_the_option(place: &Place) {
    let db = with_schema(place, &format!("CREATE TABLE people (name); {OLD_CODE}")).await;
    let hint = async |sql: &str| db.query(sql, ()).await.unwrap_err().hint().unwrap().to_owned();
    assert!(hint(r#"SELECT "nmae" FROM people"#).await.contains("there is a column name in people"));
    for sql in [r#"SELECT "a text" FROM people"#, "SELECT * FROM v", "INSERT INTO u VALUES (1)"] {
        assert!(hint(sql).await.contains("`Tuning::double_quoted_strings`"), "{sql}");
    }
}

async fn tables_and_indexes_with_texts_in_double_quotes_work(place: &Place) {
    let db = with_schema(place, OLD).await;
    let row: (i64, i64, String, String) = db.query_one_as("SELECT a, b, g, d FROM t", ()).await.unwrap();
    assert_eq!(row, (1, 2, "1x".into(), "dd".into()));
    db.execute("INSERT INTO t (a, b) VALUES (2, 3)", ()).await.unwrap();
    let error = db.execute("INSERT INTO t (a, b) VALUES (2, 'bad')", ()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Constraint);
    let by_index = "SELECT a FROM t INDEXED BY i WHERE 'k' || a = 'k2'";
    assert_eq!(db.query_value::<i64>(by_index, ()).await.unwrap(), 2);
    db.execute("REINDEX", ()).await.unwrap();
    db.execute("ANALYZE", ()).await.unwrap();
    db.execute("ALTER TABLE t ADD COLUMN e", ()).await.unwrap();
    assert_eq!(db.query_value::<String>("PRAGMA integrity_check", ()).await.unwrap(), "ok");
}

async fn a_vacuum_and_a_compact_copy_run_the_definitions_of_the_file(place: &Place) {
    let db = with_schema(place, &format!("{OLD}; {OLD_CODE}")).await;
    db.vacuum().await.unwrap();
    let directory = tempfile::tempdir().unwrap();
    let copy = directory.path().join("copy.db");
    db.vacuum_into(&copy).await.unwrap();
    db.query(r#"SELECT "gone""#, ()).await.unwrap_err();
    db.execute(r#"CREATE TABLE x (a CHECK (a <> "gone"))"#, ()).await.unwrap_err();
    let copy = Options::new(&copy).tuning(|t| t.double_quoted_strings(true)).open().await.unwrap();
    assert_eq!(copy.query_value::<String>("SELECT g FROM t", ()).await.unwrap(), "1x");
    copy.execute("INSERT INTO u VALUES (1)", ()).await.unwrap();
    assert_eq!(copy.query_value::<String>("SELECT l FROM v", ()).await.unwrap(), "lit");
    assert_eq!(copy.query_value::<String>("SELECT x FROM log", ()).await.unwrap(), "fired");
}

/// SQLite compiles views and triggers with the statement that uses them, and reads all definitions again when a table is
/// renamed or loses a column.
#[test]
fn views_triggers_and_the_renaming_of_tables_need_the_option() {
    let file = TestFile::new();
    file.plain().execute_batch(&format!("{OLD}; {OLD_CODE}")).unwrap();
    run(async {
        let db = file.open().await;
        let needs = |sql: &str, error: Error| {
            assert!(error.hint().unwrap().contains("`Tuning::double_quoted_strings`"), "{sql}: {error}");
        };
        needs("a view", db.query("SELECT * FROM v", ()).await.unwrap_err());
        for sql in ["INSERT INTO u VALUES (1)", "ALTER TABLE u RENAME TO w", "ALTER TABLE t DROP COLUMN d", "VACUUM"] {
            needs(sql, db.execute(sql, ()).await.unwrap_err());
        }
        let rename = [("1", "ALTER TABLE u RENAME COLUMN a TO b")];
        let error = db.migrate(rename).await.unwrap_err();
        assert!(error.hint().unwrap().contains("`Tuning::double_quoted_strings`"), "{error}");
        db.close().await.unwrap();

        let db = file.options().tuning(|t| t.double_quoted_strings(true)).open().await.unwrap();
        db.migrate(rename).await.unwrap();
        assert_eq!(db.query_value::<i64>("SELECT count(b) FROM u", ()).await.unwrap(), 0);
        db.execute("INSERT INTO u VALUES (1)", ()).await.unwrap();
        db.close().await.unwrap();
        // SQLite writes the definitions anew when it renames a column: with texts in single quotes.
        let db = file.open().await;
        db.execute("INSERT INTO u VALUES (2)", ()).await.unwrap();
        assert_eq!(db.query_value::<String>("SELECT l FROM v", ()).await.unwrap(), "lit");
        db.execute("ALTER TABLE u RENAME TO w", ()).await.unwrap();
    });
}

#[test]
fn two_handles_of_a_file_have_the_same() {
    let file = TestFile::new();
    run(async {
        let _db = file.open().await;
        let error = file.options().tuning(|t| t.double_quoted_strings(true)).open().await.unwrap_err();
        assert!(error.kind() == ErrorKind::Misuse && error.to_string().contains("double_quoted_strings"), "{error}");
    });
}
