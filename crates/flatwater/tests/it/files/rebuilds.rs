//! Migrations that rebuild a table to which others refer, as SQLite's manual recommends: no child is deleted, and what
//! violates a foreign key afterwards is refused, unless it did before.

use flatwater::calls::ForeignKeyCheck;
use flatwater::{Database, ErrorKind, Migrations};

use crate::place::{Place, in_both_places};
use crate::support::TestFile;
use crate::support::{integer, run};

in_both_places!(
    a_rebuilt_table_keeps_its_children,
    a_migration_that_leaves_orphans_fails_and_changes_nothing,
    foreign_keys_are_enforced_again_after_every_end,
    only_touched_tables_are_checked_if_asked,
    a_drop_outside_of_migrations_does_what_the_foreign_keys_say,
    foreign_keys_may_be_deferred_in_a_transaction_and_only_there,
);

const INIT: (&str, &str) = (
    "001_init",
    "CREATE TABLE parent (id INTEGER PRIMARY KEY, name TEXT);
     CREATE TABLE child (id INTEGER PRIMARY KEY, parent INTEGER NOT NULL REFERENCES parent ON DELETE CASCADE);
     CREATE TABLE other (parent INTEGER REFERENCES parent ON DELETE SET NULL, x TEXT DEFAULT 'x');
     INSERT INTO parent VALUES (1, 'a'), (2, 'b');
     INSERT INTO child VALUES (10, 1), (20, 2), (30, 2);
     INSERT INTO other VALUES (1, 'x')",
);
const REBUILD: &str = "CREATE TABLE new_parent (id INTEGER PRIMARY KEY, name TEXT NOT NULL CHECK (name <> ''));
     INSERT INTO new_parent SELECT id, name FROM parent;
     DROP TABLE parent;
     ALTER TABLE new_parent RENAME TO parent";

async fn value(db: &Database, sql: &str) -> i64 {
    db.query_optional_value(sql, ()).await.unwrap().unwrap()
}

const ROWS: &str = "SELECT (SELECT count(*) FROM parent) * 100 + (SELECT count(*) FROM child) * 10 +
    (SELECT count(*) FROM other WHERE parent IS NOT NULL)";

async fn enforces(db: &Database) {
    let error = db.execute("INSERT INTO child VALUES (99, 99)", ()).await.unwrap_err();
    assert_eq!(error.sqlite_name(), Some("SQLITE_CONSTRAINT_FOREIGNKEY"), "{error}");
    db.execute_script(
        "INSERT INTO parent VALUES (7, 'c'); INSERT INTO child VALUES (70, 7); DELETE FROM parent WHERE id = 7",
    )
    .await
    .unwrap();
    assert_eq!(value(db, "SELECT count(*) FROM child WHERE id = 70").await, 0, "CASCADE works");
}

async fn a_rebuilt_table_keeps_its_children(place: &Place) {
    for check in [ForeignKeyCheck::All, ForeignKeyCheck::Touched] {
        let place = place.another();
        let db = place.open().await;
        let list = Migrations::new([INIT, ("002_rebuild", REBUILD)]).foreign_key_check(check);
        assert_eq!(db.migrate(list).await.unwrap(), ["001_init", "002_rebuild"]);
        assert_eq!(value(&db, ROWS).await, 231);
        assert_eq!(
            db.execute("INSERT INTO parent VALUES (3, '')", ()).await.unwrap_err().kind(),
            ErrorKind::Constraint
        );
        enforces(&db).await;
    }
}

async fn a_migration_that_leaves_orphans_fails_and_changes_nothing(place: &Place) {
    for check in [ForeignKeyCheck::All, ForeignKeyCheck::Touched] {
        let place = place.another();
        let db = place.open().await;
        db.migrate([INIT]).await.unwrap();
        for (sql, table) in [
            ("DELETE FROM parent WHERE id = 1", "table child, rowid 10, parent parent"),
            (&*REBUILD.replace("FROM parent", "FROM parent WHERE id = 2"), "table child, rowid 10"),
            ("DROP TABLE parent", "parent parent"),
            ("CREATE TABLE late (p REFERENCES parent); INSERT INTO late VALUES (9)", "table late, rowid 1"),
        ] {
            let list = Migrations::new([INIT, ("002_orphans", sql)]).foreign_key_check(check);
            let error = db.migrate(list).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Constraint, "{error}");
            assert!(error.message().starts_with("migration 002_orphans: "), "{error}");
            assert!(error.message().contains(table), "{sql}: {error}");
            assert_eq!(value(&db, ROWS).await, 231);
            enforces(&db).await;
        }
    }
}

async fn foreign_keys_are_enforced_again_after_every_end(place: &Place) {
    let db = place.open().await;
    db.migrate([INIT]).await.unwrap();
    for fails in
        ["SELECT nowhere", "INSERT OR ROLLBACK INTO parent VALUES (1, 'again')", "BEGIN", "-- no-transaction\nBEGIN"]
    {
        assert!(db.migrate([INIT, ("002_fails", fails)]).await.is_err(), "{fails}");
        enforces(&db).await;
        assert_eq!(value(&db, ROWS).await, 231);
    }
}

async fn only_touched_tables_are_checked_if_asked(place: &Place) {
    let db = place.open().await;
    db.migrate([INIT]).await.unwrap();
    // A foreign key that does not fit its parent cannot be checked at all. It was there before, and fails nothing.
    let odd = "CREATE TABLE odd (p REFERENCES parent (name))";
    let touched = Migrations::new([INIT, ("002_b", odd), ("003_c", "CREATE TABLE free (a)")]);
    let error = db.migrate(&touched).await.unwrap_err();
    assert!(error.message().contains("002_b") && error.message().contains("mismatch"), "{error}");
    db.execute_script(odd).await.unwrap();
    let list = [INIT, ("002_b", "ALTER TABLE odd ADD COLUMN x"), ("003_c", REBUILD)];
    assert_eq!(db.migrate(Migrations::new(list).foreign_key_check(ForeignKeyCheck::Touched)).await.unwrap().len(), 2);
    assert_eq!(value(&db, ROWS).await, 231);
    db.execute("DROP TABLE odd", ()).await.unwrap();
}

#[test]
fn violations_that_were_there_before_fail_no_migration() {
    run(async {
        let place = Place::on_file();
        let file = place.file().unwrap();
        file.violates_foreign_keys();
        let db = place.open().await;
        db.migrate([INIT]).await.unwrap();
        let plain = file.plain();
        plain.execute_batch("PRAGMA foreign_keys = OFF; INSERT INTO child VALUES (40, 8), (50, 9)").unwrap();
        let steps = [INIT, ("002_rebuild", REBUILD), ("003_worse", "INSERT INTO child VALUES (60, 9)")];
        assert_eq!(db.migrate([steps[0], steps[1]]).await.unwrap(), ["002_rebuild"]);
        let error = db.migrate(steps).await.unwrap_err();
        assert!(
            error.message().contains("adds 1 foreign key violations") && error.message().contains("rowid 60"),
            "{error}"
        );
        let repair = ("003_repair", "DELETE FROM child WHERE id = 40");
        assert_eq!(db.migrate([steps[0], steps[1], repair]).await.unwrap(), ["003_repair"]);
        assert_eq!(integer(&plain, "SELECT count(*) FROM pragma_foreign_key_check"), 1);
    });
}

#[test]
fn without_foreign_keys_nothing_is_checked() {
    run(async {
        let place = Place::on_file();
        place.file().unwrap().violates_foreign_keys();
        let db = place.options().foreign_keys(false).open().await.unwrap();
        db.migrate([INIT, ("002_orphans", "DELETE FROM parent")]).await.unwrap();
        assert_eq!(db.execute("INSERT INTO child VALUES (99, 99)", ()).await.unwrap().changes, 1);
    });
}

async fn a_drop_outside_of_migrations_does_what_the_foreign_keys_say(place: &Place) {
    for (enforced, rows) in [(true, 0), (false, 31)] {
        let place = place.another();
        let db = place.options().foreign_keys(enforced).open().await.unwrap();
        db.migrate([INIT]).await.unwrap();
        let tx = db.begin().await.unwrap();
        tx.execute("DROP TABLE parent", ()).await.unwrap();
        tx.rollback().await.unwrap();
        assert_eq!(value(&db, ROWS).await, 231);
        db.execute("DROP TABLE parent", ()).await.unwrap();
        assert_eq!(value(&db, &ROWS.replace("parent)", "other WHERE false)")).await, rows);
        db.execute_script("DROP TABLE child; DROP TABLE other").await.unwrap();
    }
}

async fn foreign_keys_may_be_deferred_in_a_transaction_and_only_there(place: &Place) {
    let db = place.open().await;
    db.migrate([INIT]).await.unwrap();
    let defer = "PRAGMA defer_foreign_keys = ON";
    let error = db.execute(defer, ()).await.unwrap_err();
    assert!(error.kind() == ErrorKind::Misuse && error.hint().unwrap().contains("inside of a transaction"), "{error}");
    let tx = db.begin().await.unwrap();
    tx.execute(defer, ()).await.unwrap();
    tx.execute("INSERT INTO child VALUES (90, 9)", ()).await.unwrap();
    tx.execute("INSERT INTO parent VALUES (9, 'late')", ()).await.unwrap();
    tx.commit().await.unwrap();
    let tx = db.begin().await.unwrap();
    tx.execute(defer, ()).await.unwrap();
    tx.execute("INSERT INTO child VALUES (80, 8)", ()).await.unwrap();
    assert_eq!(tx.commit().await.unwrap_err().kind(), ErrorKind::Constraint);
    let tx = db.begin().await.unwrap();
    assert_eq!(tx.execute("INSERT INTO child VALUES (80, 8)", ()).await.unwrap_err().kind(), ErrorKind::Constraint);
    tx.rollback().await.unwrap();
    assert_eq!(value(&db, "SELECT count(*) FROM child").await, 4);
}

#[test]
fn a_drop_that_did_nothing_once_drops_the_table_when_there_is_one() {
    let file = TestFile::new();
    run(async {
        let db = file.open().await;
        let drop = "DROP TABLE IF EXISTS parent";
        for _ in 0..3 {
            db.execute(drop, ()).await.unwrap();
        }
        file.plain()
            .execute_batch(
                "CREATE TABLE parent (id INTEGER PRIMARY KEY);
                 CREATE TABLE child (id INTEGER PRIMARY KEY, parent REFERENCES parent ON DELETE CASCADE);
                 INSERT INTO parent VALUES (1); INSERT INTO child VALUES (1, 1)",
            )
            .unwrap();
        db.execute(drop, ()).await.unwrap();
        let left = "SELECT count(*) FROM sqlite_schema WHERE name = 'parent'";
        assert_eq!((value(&db, left).await, value(&db, "SELECT count(*) FROM child").await), (0, 0));
    });
}
