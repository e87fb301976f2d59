//! PRAGMAs that list objects tell of the newest schema on every connection: of the main file and of an attached one, after
//! definitions of ours and of another program.

use flatwater::{Database, Error, Options, rusqlite};

use crate::support::{TestFile, run};

/// Every PRAGMA that lists something, with its arguments.
fn listings() -> Vec<String> {
    let mut all = Vec::new();
    for schema in ["", "main.", "s."] {
        let tables = ["table_info", "table_xinfo", "index_list", "foreign_key_list", "foreign_key_check", "table_list"];
        all.extend(tables.iter().map(|name| format!("PRAGMA {schema}{name}(t)")));
        all.extend(["index_info", "index_xinfo"].iter().map(|name| format!("PRAGMA {schema}{name}(i)")));
        let whole = ["foreign_key_check", "table_list", "integrity_check", "quick_check", "page_count", "user_version"];
        all.extend(whole.iter().map(|name| format!("PRAGMA {schema}{name}")));
    }
    for (name, of) in [
        ("table_info", "'t'"),
        ("table_xinfo", "'t'"),
        ("index_list", "'t'"),
        ("foreign_key_list", "'t'"),
        ("index_info", "'i'"),
        ("index_xinfo", "'i'"),
    ] {
        all.extend(["", ", 'main'", ", 's'"].iter().map(|schema| format!("SELECT * FROM pragma_{name}({of}{schema})")));
    }
    all.extend(
        ["SELECT * FROM listed", "SELECT name FROM pragma_table_list WHERE schema = 's' ORDER BY 1"].map(str::to_owned),
    );
    all
}

/// One definition after the other, of the schema that is put in the place of `@`.
const DEFINITIONS: &[&str] = &[
    "CREATE TABLE @.t (id INTEGER PRIMARY KEY, a UNIQUE, b REFERENCES t (id))",
    "CREATE INDEX @.i ON t (b)",
    "ALTER TABLE @.t ADD COLUMN c DEFAULT 7",
    "DROP INDEX @.i",
    "CREATE INDEX @.i ON t (c, a)",
    "DROP TABLE @.t",
    "CREATE TABLE @.t (k PRIMARY KEY, v) WITHOUT ROWID",
];

fn by_sqlite(plain: &rusqlite::Connection, sql: &str) -> Vec<Vec<String>> {
    let Ok(mut statement) = plain.prepare(sql) else { return vec![vec!["an error".into()]] };
    let columns = statement.column_count();
    let mut rows = statement.query([]).unwrap();
    let mut all = Vec::new();
    while let Some(row) = rows.next().unwrap() {
        all.push((0..columns).map(|at| format!("{:?}", row.get_ref(at).unwrap())).collect());
    }
    all
}

async fn by_us(db: &Database, sql: &str) -> Vec<Vec<String>> {
    let Ok(rows) = db.query(sql, ()).await else { return vec![vec!["an error".into()]] };
    let columns = rows.columns().len();
    let value = |value: flatwater::ValueRef<'_>| match value {
        flatwater::ValueRef::Text(text) => format!("{:?}", rusqlite::types::ValueRef::Text(text)),
        other => format!("{other:?}"),
    };
    rows.iter().map(|row| (0..columns).map(|at| value(row.value(at).unwrap())).collect()).collect()
}

/// A plain connection that has just read the schemas.
fn fresh(file: &TestFile, other: &TestFile) -> rusqlite::Connection {
    let plain = file.plain();
    plain.execute("ATTACH ?1 AS s", [other.path().to_str().unwrap()]).unwrap();
    plain
}

fn compare(attached_mode: &str) {
    let (file, other) = (TestFile::new(), TestFile::new());
    other.plain().execute_batch(&format!("PRAGMA journal_mode = {attached_mode}; CREATE TABLE o (a)")).unwrap();
    let options = || -> Options { file.options().tuning(|t| t.attach("s", other.path())).readers(2) };
    run(async {
        let db = options().open().await.unwrap();
        db.execute("CREATE VIEW listed AS SELECT name FROM pragma_index_list('t', 's')", ()).await.unwrap();
        let listings = listings();
        // Every reader knows the schemas from before.
        for sql in &listings {
            let readers = [db.query(sql, ()), db.query(sql, ())];
            futures_util::future::join_all(readers).await;
        }
        for schema in ["s", "main"] {
            for (at, definition) in DEFINITIONS.iter().enumerate() {
                let definition = definition.replace('@', schema);
                match at % 2 {
                    0 => drop(db.execute(&definition, ()).await.unwrap()),
                    _ => fresh(&file, &other).execute_batch(&definition).unwrap(),
                }
                for sql in &listings {
                    let expected = by_sqlite(&fresh(&file, &other), sql);
                    for _ in 0..2 {
                        let two = futures_util::future::join(by_us(&db, sql), by_us(&db, sql)).await;
                        assert_eq!(two, (expected.clone(), expected.clone()), "{sql} after {definition}");
                    }
                }
                let tx = db.begin().await.unwrap();
                let indexes = tx.query(format!("PRAGMA {schema}.index_list(t)"), ()).await.unwrap().len();
                tx.rollback().await.unwrap();
                let sql = format!("PRAGMA {schema}.index_list(t)");
                assert_eq!(indexes, by_sqlite(&fresh(&file, &other), &sql).len(), "{definition}");
                let snapshot = db.snapshot().await.unwrap();
                assert_eq!(snapshot.query(&sql, ()).await.unwrap().len(), indexes, "{definition}");
                let closure = db.read_with(move |c| Ok::<_, Error>(by_sqlite(c, &sql).len()));
                if attached_mode == "wal" {
                    assert_eq!(closure.await.unwrap(), indexes, "{definition}");
                }
            }
        }
    });
}

#[test]
fn listings_are_those_of_the_newest_schema_beside_an_attached_wal() {
    compare("wal");
}

#[test]
fn listings_are_those_of_the_newest_schema_beside_an_attached_journal() {
    compare("delete");
}

/// SQLite does not check the schema for an INSERT with another number of values than the table had columns.
#[test]
fn a_table_of_an_attached_file_has_the_columns_that_another_program_gave_it() {
    let (file, other) = (TestFile::new(), TestFile::new());
    other.plain().execute_batch("CREATE TABLE o (a)").unwrap();
    run(async {
        let db = file.options().tuning(|t| t.attach("s", other.path())).open().await.unwrap();
        db.execute("INSERT INTO s.o VALUES (1)", ()).await.unwrap();
        other.plain().execute_batch("ALTER TABLE o ADD COLUMN b").unwrap();
        db.execute("INSERT INTO s.o VALUES (1, 2)", ()).await.unwrap();
        db.execute("INSERT INTO s.o VALUES (1)", ()).await.unwrap_err();
    });
}
