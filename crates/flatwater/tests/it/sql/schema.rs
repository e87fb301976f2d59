//! Schema changes between two runs of a text: by Flatwater, by another program, and in transactions that roll back.

use flatwater::{Database, Error, ErrorKind, params};

use crate::place::{Place, in_both_places};
use crate::support::TestFile;

in_both_places!(
    columns_that_come_and_go_are_in_the_names_and_in_the_rows,
    a_listing_is_of_the_schema_of_now,
    what_is_learnt_under_a_schema_that_is_rolled_back_does_not_count,
    a_schema_changed_by_another_program_or_a_closure_is_learnt_before_the_next_group,
    a_text_that_fits_only_the_schema_of_another_program_is_prepared_under_it,
);

/// Returns the rows of `SELECT *` with their names, from a reader and from the writer.
async fn both_sides(db: &mut Database) -> Vec<String> {
    let show = |rows: flatwater::Rows| {
        let names = rows.columns().collect::<Vec<_>>().join(",");
        let cells = rows
            .iter()
            .map(|row| (0..row.len()).map(|at| format!("{:?}", row.value(at).unwrap())).collect::<Vec<_>>().join(","));
        format!("{names}: {}", cells.collect::<Vec<_>>().join(" "))
    };
    let read = show(db.query("SELECT * FROM t", ()).await.unwrap());
    let tx = db.begin().await.unwrap();
    let in_transaction = show(tx.query("SELECT * FROM t", ()).await.unwrap());
    tx.rollback().await.unwrap();
    let returned = show(db.query("UPDATE t SET a = a RETURNING *", ()).await.unwrap());
    vec![read, in_transaction, returned]
}

/// Changes the schema with another program. In memory there is no other program, so the database itself changes it.
async fn change_elsewhere(place: &Place, db: &Database, sql: &str) {
    match place.file() {
        Some(file) => file.plain().execute_batch(sql).unwrap(),
        None => db.execute_script(sql).await.unwrap(),
    }
}

async fn columns_that_come_and_go_are_in_the_names_and_in_the_rows(place: &Place) {
    let mut db = place.options().readers(1).open().await.unwrap();
    db.execute_script("CREATE TABLE t (a, b); INSERT INTO t VALUES (1, 2), (3, 4)").await.unwrap();
    let two = "a,b: Integer(1),Integer(2) Integer(3),Integer(4)";
    assert_eq!(both_sides(&mut db).await, [two; 3]);
    db.execute("ALTER TABLE t ADD COLUMN c DEFAULT 9", ()).await.unwrap();
    let three = "a,b,c: Integer(1),Integer(2),Integer(9) Integer(3),Integer(4),Integer(9)";
    assert_eq!(both_sides(&mut db).await, [three; 3]);
    change_elsewhere(place, &db, "ALTER TABLE t DROP COLUMN b").await;
    let other = "a,c: Integer(1),Integer(9) Integer(3),Integer(9)";
    assert_eq!(both_sides(&mut db).await, [other; 3]);
    assert_eq!(both_sides(&mut db).await, [other; 3]);
}

/// SQLite does not compare schemas when it runs a PRAGMA that lists objects, and reads names from the schema of its
/// prepare.
async fn a_listing_is_of_the_schema_of_now(place: &Place) {
    let db = place.options().readers(1).open().await.unwrap();
    db.execute("CREATE TABLE t (a)", ()).await.unwrap();
    for indices in 0..4 {
        let plan = db.query_optional("EXPLAIN QUERY PLAN SELECT * FROM t WHERE a = 1", ()).await.unwrap().unwrap();
        assert_eq!(plan.get::<String>("detail").unwrap().contains("USING"), indices > 0, "{indices}");
        let program = db.query("EXPLAIN INSERT INTO t VALUES (1)", ()).await.unwrap();
        let inserts = program.iter().filter(|op| op.get::<String>("opcode").unwrap() == "IdxInsert");
        assert_eq!(inserts.count(), indices);
        change_elsewhere(place, &db, &format!("CREATE INDEX i{indices} ON t (a)")).await;
        db.query("SELECT * FROM t", ()).await.unwrap();
    }
}

/// Returns an INSERT of four rows, one of which fails. A text with another comment is another text, which was not
/// prepared before.
fn into_noisy(comment: &str) -> String {
    format!("INSERT INTO noisy SELECT value FROM json_each('[1,2,3,4]') WHERE value <> ? -- {comment}")
}

/// `noisy` passes its rows on to `hostile`, whose trigger keeps the rows before the failing one.
async fn noisy(place: &Place) -> Database {
    let db = place.open().await;
    db.execute_script(
        "CREATE TABLE noisy (a); CREATE TABLE hostile (a); CREATE TABLE other (a);
         CREATE TRIGGER pass AFTER INSERT ON noisy BEGIN INSERT INTO hostile VALUES (new.a); END;
         CREATE TRIGGER guard BEFORE INSERT ON hostile WHEN new.a = 3 BEGIN SELECT RAISE(FAIL, 'three'); END",
    )
    .await
    .unwrap();
    db
}

/// Runs the text in the queue together with another write. Returns the rows it left.
async fn beside_another(db: &Database, text: &str) -> Vec<i64> {
    for _ in 0..3 {
        db.execute("INSERT INTO other VALUES (1)", ()).await.unwrap();
    }
    db.execute("DELETE FROM noisy", ()).await.unwrap();
    let blocker = db.begin().await.unwrap();
    let (a, b) = (db.execute("INSERT INTO other VALUES (1)", ()), db.execute(text, (99,)));
    let (a, b, ()) = futures_util::join!(a, b, async {
        while db.stats().writes_waiting < 2 {
            tokio::task::yield_now().await;
        }
        blocker.rollback().await.unwrap();
    });
    a.unwrap();
    assert_eq!(b.unwrap_err().message(), "three");
    let rows: Vec<(i64,)> = db.query_as("SELECT a FROM noisy ORDER BY a", ()).await.unwrap();
    rows.into_iter().map(|(a,)| a).collect()
}

/// The rows that FAIL keeps in autocommit mode.
const KEPT: [i64; 3] = [1, 2, 3];

async fn what_is_learnt_under_a_schema_that_is_rolled_back_does_not_count(place: &Place) {
    let db = noisy(place).await;
    assert_eq!(beside_another(&db, &into_noisy("first")).await, KEPT);
    let text = into_noisy("in a transaction");
    let tx = db.begin().await.unwrap();
    tx.execute("DROP TRIGGER pass", ()).await.unwrap();
    tx.execute(&text, (99,)).await.unwrap();
    tx.rollback().await.unwrap();
    db.execute(&text, (3,)).await.unwrap();
    assert_eq!(beside_another(&db, &text).await, KEPT, "after a transaction");
    let text = into_noisy("in a batch");
    let failing =
        [("DROP TRIGGER pass", params![]), (&text, params![99]), ("INSERT INTO nowhere VALUES (1)", params![])];
    db.batch(failing).await.unwrap_err();
    db.execute(&text, (3,)).await.unwrap();
    assert_eq!(beside_another(&db, &text).await, KEPT, "after a batch");
}

async fn a_schema_changed_by_another_program_or_a_closure_is_learnt_before_the_next_group(place: &Place) {
    let db = noisy(place).await;
    let text = into_noisy("always");
    let harmless = async || {
        db.execute("DROP TRIGGER guard", ()).await.unwrap();
        for _ in 0..3 {
            db.execute(&text, (99,)).await.unwrap();
        }
    };
    let guard = "CREATE TRIGGER guard BEFORE INSERT ON hostile WHEN new.a = 3 BEGIN SELECT RAISE(FAIL, 'three'); END";
    harmless().await;
    change_elsewhere(place, &db, guard).await;
    assert_eq!(beside_another(&db, &text).await, KEPT, "another program");
    harmless().await;
    db.write_with(move |tx| tx.execute_batch(guard).map_err(Error::from)).await.unwrap();
    assert_eq!(beside_another(&db, &text).await, KEPT, "a closure");
}

async fn a_text_that_fits_only_the_schema_of_another_program_is_prepared_under_it(place: &Place) {
    for inline in [flatwater::options::Inline::Never, flatwater::options::Inline::default()] {
        let place = &place.another();
        let db = place.options().tuning(|t| t.inline(inline)).open().await.unwrap();
        db.execute_script("CREATE TABLE t (a, b); INSERT INTO t VALUES (1, 2)").await.unwrap();
        change_elsewhere(place, &db, "ALTER TABLE t DROP COLUMN b").await;
        let written = db.execute("INSERT INTO t VALUES (?)", (2,)).await.unwrap();
        assert_eq!(written.changes, 1);
        assert_eq!(db.query_values::<i64>("SELECT a FROM t ORDER BY a", ()).await.unwrap(), [1, 2]);
    }
}

/// As in plain SQLite: with a damaged schema, a text that needs no schema works, and a text that needs it returns an
/// error.
#[tokio::test]
async fn a_damaged_schema_is_an_error_of_the_texts_that_need_it() {
    let file = TestFile::new();
    let db = file.open().await;
    db.execute_script("CREATE TABLE t (a); CREATE TABLE u (a)").await.unwrap();
    let root: Option<i64> =
        db.query_optional_value("SELECT rootpage FROM sqlite_schema WHERE name = 't'", ()).await.unwrap();
    // With the cookie, so that everybody reads the schema again.
    let set_root = |root: i64| {
        let sql = format!("UPDATE sqlite_schema SET rootpage = {root} WHERE name = 't'; PRAGMA writable_schema = 0");
        let plain = file.plain();
        let next: i64 = plain.query_row("PRAGMA schema_version", [], |row| row.get(0)).unwrap();
        plain
            .execute_batch(&format!("PRAGMA writable_schema = 1; {sql}; PRAGMA schema_version = {}", next + 1))
            .unwrap();
    };
    set_root(9999);
    db.execute("PRAGMA user_version = 9", ()).await.unwrap();
    assert_eq!(db.query_optional_value::<i64>("PRAGMA user_version", ()).await.unwrap(), Some(9));
    for sql in ["INSERT INTO u VALUES (1)", "PRAGMA table_info(u)", "EXPLAIN SELECT * FROM u"] {
        assert_eq!(db.query(sql, ()).await.unwrap_err().kind(), ErrorKind::Corrupt, "{sql}");
    }
    db.close().await.unwrap();
    set_root(root.unwrap());
    assert_eq!(file.open().await.execute("INSERT INTO t VALUES (1)", ()).await.unwrap().changes, 1);
}

/// SQLite does not load CHECKs of a schema that it reads through a read-only connection (`sqlite3AddCheckConstraint`).
#[tokio::test]
async fn integrity_check_looks_at_check_constraints_on_the_writer() {
    let file = TestFile::new();
    file.plain()
        .execute_batch(
            "CREATE TABLE t (a CHECK (a < 10)); PRAGMA ignore_check_constraints = ON; INSERT INTO t VALUES (11)",
        )
        .unwrap();
    let db = file.open().await;
    let check = "PRAGMA integrity_check";
    assert_eq!(db.query_optional_value::<String>(check, ()).await.unwrap().as_deref(), Some("ok"), "on a reader");
    let found = db.write_with(|tx| Ok::<_, Error>(tx.query_row(check, [], |row| row.get::<_, String>(0))?)).await;
    assert_eq!(found.unwrap(), "CHECK constraint failed in t");
    db.execute("DELETE FROM t", ()).await.unwrap();
}
