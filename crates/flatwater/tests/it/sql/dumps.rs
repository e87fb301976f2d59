//! Scripts that have a transaction of their own: the dumps of the `sqlite3` shell and of Python's `iterdump`.

use flatwater::{Database, ErrorKind};

use crate::place::{Place, in_both_places};
use crate::support::{TestFile, run};

in_both_places!(
    a_dump_of_the_shell_is_loaded_as_one_transaction,
    a_dump_without_a_word_on_foreign_keys_is_loaded_whatever_the_order_of_its_tables,
    a_dump_with_a_row_that_violates_a_foreign_key_leaves_nothing,
    a_dump_that_fails_leaves_nothing,
    a_script_that_changes_rows_has_its_foreign_keys,
    a_script_whose_transaction_is_not_one_is_refused,
    a_dump_of_virtual_tables_is_loaded,
);

/// As the shell writes it: children before their parents.
const DUMP: &str = "PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE child (id INTEGER PRIMARY KEY AUTOINCREMENT, p REFERENCES parent (id), t TEXT);
INSERT INTO child VALUES(7,1,'a;b''c');
INSERT INTO child VALUES(8,2,replace('x\\ny','\\n',char(10)));
CREATE TABLE parent (id INTEGER PRIMARY KEY, b BLOB);
INSERT INTO parent VALUES(1,X'00ff');
INSERT INTO parent VALUES(2,NULL);
ANALYZE sqlite_schema;
INSERT INTO sqlite_stat1 VALUES('parent',NULL,'2');
DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence VALUES('child',41);
CREATE INDEX child_p ON child (p);
CREATE TRIGGER noise AFTER INSERT ON parent BEGIN UPDATE child SET t = 'noise' WHERE p = new.id; END;
CREATE VIEW both AS SELECT * FROM child JOIN parent ON parent.id = child.p;
COMMIT;
";

async fn is_loaded(db: &Database) {
    let rows: Vec<(i64, i64, String)> = db.query_as("SELECT id, p, t FROM child ORDER BY id", ()).await.unwrap();
    assert_eq!(rows, [(7, 1, "a;b'c".into()), (8, 2, "x\ny".into())]);
    let id = db.execute("INSERT INTO child (p) VALUES (1)", ()).await.unwrap().last_insert_rowid;
    assert_eq!(id, Some(42), "the sequence goes on");
    let error = db.execute("INSERT INTO child (p) VALUES (3)", ()).await.unwrap_err();
    assert_eq!(error.sqlite_name(), Some("SQLITE_CONSTRAINT_FOREIGNKEY"), "foreign keys are on again: {error}");
    assert_eq!(db.query_optional_value::<i64>("PRAGMA foreign_keys", ()).await.unwrap(), Some(1));
    assert_eq!(db.query_optional_value::<i64>("SELECT count(*) FROM both", ()).await.unwrap(), Some(3));
}

async fn a_dump_of_the_shell_is_loaded_as_one_transaction(place: &Place) {
    let db = place.open().await;
    db.execute_script(DUMP).await.unwrap();
    is_loaded(&db).await;
    let again = db.execute_script(DUMP).await.unwrap_err();
    assert!(again.message().contains("already exists"), "{again}");
    assert_eq!(again.offset().map(|at| DUMP[at..].starts_with("child (id")), Some(true), "{again:?}");
}

async fn a_dump_without_a_word_on_foreign_keys_is_loaded_whatever_the_order_of_its_tables(place: &Place) {
    let db = place.open().await;
    db.execute_script(DUMP.split_once('\n').unwrap().1).await.unwrap();
    is_loaded(&db).await;
}

async fn tables(db: &Database) -> i64 {
    db.query_optional_value("SELECT count(*) FROM sqlite_schema", ()).await.unwrap().unwrap()
}

async fn a_dump_with_a_row_that_violates_a_foreign_key_leaves_nothing(place: &Place) {
    let db = place.open().await;
    let orphan = DUMP.replace("VALUES(8,2,", "VALUES(8,3,");
    for dump in [&*orphan, orphan.split_once('\n').unwrap().1] {
        let error = db.execute_script(dump).await.unwrap_err();
        assert!(error.kind() == ErrorKind::Constraint && error.message().contains("child"), "{error}");
        assert_eq!(tables(&db).await, 0);
    }
    db.execute_script(DUMP).await.unwrap();
}

async fn a_dump_that_fails_leaves_nothing(place: &Place) {
    let db = place.open().await;
    for broken in [
        DUMP.replace("CREATE VIEW both", "CREATE VIEW parent"),
        DUMP.replace("COMMIT;", "ROLLBACK; -- due to errors"),
        DUMP.replace("COMMIT;", ""),
        DUMP.replace("COMMIT;", "COMMIT; INSERT INTO nowhere VALUES (1);"),
        DUMP.replace("COMMIT;", "PRAGMA synchronous = OFF; COMMIT;"),
        DUMP.replace("COMMIT;", "INSERT INTO parent VALUES (?, 1); COMMIT;"),
    ] {
        db.execute_script(&broken).await.unwrap_err();
        assert_eq!(tables(&db).await, 0, "{broken}");
    }
    db.execute_script(DUMP).await.unwrap();
}

/// With foreign keys, as the database has them: the children go with their parent.
async fn a_script_that_changes_rows_has_its_foreign_keys(place: &Place) {
    let schema = "CREATE TABLE p (id INTEGER PRIMARY KEY, n); CREATE TABLE c (p REFERENCES p ON DELETE CASCADE);
                  INSERT INTO p VALUES (1, 1), (2, 2), (3, 3); INSERT INTO c VALUES (1), (2), (3)";
    let db = place.open().await;
    db.execute_script(schema).await.unwrap();
    let left = async || db.query_values::<i64>("SELECT p FROM c ORDER BY p", ()).await.unwrap();
    db.execute_script("BEGIN; CREATE TABLE x (a); DELETE FROM p WHERE id = 1; COMMIT;").await.unwrap();
    assert_eq!(left().await, [2, 3]);
    db.execute_script("BEGIN IMMEDIATE; REPLACE INTO p VALUES (2, 20); END TRANSACTION").await.unwrap();
    assert_eq!(left().await, [3]);
    db.execute_script("BEGIN; UPDATE p SET n = 9; COMMIT; PRAGMA foreign_keys = ON").await.unwrap();
    assert_eq!(db.query_optional_value::<i64>("SELECT sum(n) FROM p", ()).await.unwrap(), Some(18));
}

async fn a_script_whose_transaction_is_not_one_is_refused(place: &Place) {
    let db = place.open().await;
    for (script, says) in [
        ("BEGIN; CREATE TABLE t (a)", "does not commit"),
        ("BEGIN; BEGIN; COMMIT", "inside of its own"),
        ("BEGIN; CREATE TABLE t (a); COMMIT; COMMIT", "has not begun"),
        ("BEGIN; CREATE TABLE t (a); ROLLBACK", "rolls"),
        ("BEGIN; SAVEPOINT a; COMMIT", "SAVEPOINT"),
        ("BEGIN; ATTACH ':memory:' AS x; COMMIT", "ATTACH"),
        ("BEGIN; CREATE TEMP TABLE t (a); COMMIT", "TEMP"),
        ("CREATE TABLE t (a); BEGIN; COMMIT", "BEGIN"),
    ] {
        let error = db.execute_script(script).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Misuse, "{script}: {error}");
        assert!(error.message().contains(says) && error.hint().is_some(), "{script}: {error:?}");
        assert_eq!(tables(&db).await, 0, "{script}");
    }
    let tx = db.begin().await.unwrap();
    tx.execute_script(DUMP).await.unwrap_err();
    tx.rollback().await.unwrap();
    db.execute_script("BEGIN; CREATE TABLE t (a); COMMIT; BEGIN; INSERT INTO t VALUES (1); COMMIT").await.unwrap();
}

const VIRTUAL: &str = "PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
PRAGMA writable_schema=ON;
INSERT INTO sqlite_schema(type,name,tbl_name,rootpage,sql)VALUES('table','f','f',0,'CREATE VIRTUAL TABLE f USING fts5(x)');
CREATE TABLE IF NOT EXISTS 'f_data'(id INTEGER PRIMARY KEY, block BLOB);
@data
CREATE TABLE IF NOT EXISTS 'f_idx'(segid, term, pgno, PRIMARY KEY(segid, term)) WITHOUT ROWID;
@idx
CREATE TABLE IF NOT EXISTS 'f_content'(id INTEGER PRIMARY KEY, c0);
INSERT INTO f_content VALUES(1,'hello world');
CREATE TABLE IF NOT EXISTS 'f_docsize'(id INTEGER PRIMARY KEY, sz BLOB);
INSERT INTO f_docsize VALUES(1,X'02');
CREATE TABLE IF NOT EXISTS 'f_config'(k PRIMARY KEY, v) WITHOUT ROWID;
INSERT INTO f_config VALUES('version',4);
CREATE VIEW found AS SELECT x FROM f;
PRAGMA writable_schema=OFF;
COMMIT;";

/// Returns the rows of a table as a dump has them.
fn rows(plain: &rusqlite::Connection, table: &str, columns: &str) -> String {
    let quoted = columns.split(' ').map(|column| format!("quote({column})")).collect::<Vec<_>>().join(" || ',' || ");
    let sql = format!("SELECT 'INSERT INTO {table} VALUES(' || {quoted} || ');' FROM {table}");
    let mut statement = plain.prepare(&sql).unwrap();
    statement.query_map([], |row| row.get::<_, String>(0)).unwrap().map(|row| row.unwrap() + "\n").collect()
}

async fn a_dump_of_virtual_tables_is_loaded(place: &Place) {
    let plain = rusqlite::Connection::open_in_memory().unwrap();
    plain.execute_batch("CREATE VIRTUAL TABLE f USING fts5(x); INSERT INTO f VALUES ('hello world')").unwrap();
    let dump = VIRTUAL
        .replace("@data", &rows(&plain, "f_data", "id block"))
        .replace("@idx", &rows(&plain, "f_idx", "segid term pgno"));
    let db = place.open().await;
    db.query("SELECT * FROM sqlite_schema", ()).await.unwrap();
    db.execute_script(&dump).await.unwrap();
    let found = "SELECT x FROM f WHERE f MATCH 'world'";
    assert_eq!(db.query_optional_value::<String>(found, ()).await.unwrap().as_deref(), Some("hello world"));
    db.execute("INSERT INTO f VALUES ('new world')", ()).await.unwrap();
    assert_eq!(db.query(found, ()).await.unwrap().len(), 2);
    assert_eq!(db.query("SELECT * FROM found", ()).await.unwrap().len(), 2);
    let error = db.execute("DELETE FROM sqlite_schema", ()).await.unwrap_err();
    assert!(error.message().contains("may not be modified"), "{error}");
}

#[test]
fn other_connections_see_the_schema_of_a_dump() {
    let file = TestFile::new();
    run(async {
        let (db, plain) = (file.open().await, file.plain());
        plain.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(())).unwrap();
        db.execute_script(
            "BEGIN; PRAGMA writable_schema = ON;
             INSERT INTO sqlite_schema VALUES ('table', 'v', 'v', 0, 'CREATE VIRTUAL TABLE v USING fts5vocab(f, row)');
             PRAGMA writable_schema = OFF; COMMIT",
        )
        .await
        .unwrap();
        let listed = "SELECT count(*) FROM pragma_table_list WHERE name = 'v'";
        assert_eq!(plain.query_row(listed, [], |row| row.get::<_, i64>(0)).unwrap(), 1);
    });
}
