//! Migrations: each is applied once, in order, whole or not at all, and what is wrong with one is said.

use std::time::Duration;

use flatwater::calls::{CancelOutcome, CheckpointMode, ForeignKeyCheck, TimeoutEffect};
use flatwater::rusqlite::Connection;
use flatwater::{Database, Error, ErrorKind, Migrations, Options};

use crate::place::{Place, in_both_places};
use crate::support::{ENDLESS, TestFile, integer, run, until};

in_both_places!(
    each_migration_is_applied_once_and_in_order,
    a_migration_that_fails_is_named_by_file_line_and_statement,
    transaction_control_in_a_migration_is_refused_with_the_way_out,
    a_step_without_a_transaction_may_vacuum,
    what_a_migration_sets_on_the_connection_is_gone_after_it,
    a_changed_and_a_newer_list_are_refused,
    texts_that_were_learnt_before_see_the_new_schema,
    an_embedded_folder_is_the_one_that_is_read,
);

const FIRST: (&str, &str) = ("001_init", "CREATE TABLE t (a INTEGER PRIMARY KEY);\nINSERT INTO t VALUES (1)");
const SECOND: (&str, &str) = ("002_b", "ALTER TABLE t ADD COLUMN b DEFAULT 'x'");

pub(crate) async fn names(db: &Database) -> Vec<String> {
    db.query_as::<(String,)>("SELECT name FROM _flatwater_migrations ORDER BY version", ())
        .await
        .unwrap()
        .into_iter()
        .map(|(name,)| name)
        .collect()
}

async fn value(db: &Database, sql: &str) -> i64 {
    db.query_optional_value(sql, ()).await.unwrap().unwrap()
}

async fn each_migration_is_applied_once_and_in_order(place: &Place) {
    let db = place.options().migrations([FIRST]).open().await.unwrap();
    assert_eq!(names(&db).await, ["001_init"]);
    assert_eq!(db.migrate([FIRST, SECOND]).await.unwrap(), ["002_b"]);
    assert_eq!(db.migrate([FIRST, SECOND]).await.unwrap(), [""; 0]);
    assert_eq!(names(&db).await, ["001_init", "002_b"]);
    assert_eq!(value(&db, "SELECT count(*) FROM t WHERE b = 'x'").await, 1);
    assert_eq!(value(&db, "SELECT count(*) FROM _flatwater_migrations WHERE length(checksum) = 48").await, 2);
}

async fn an_embedded_folder_is_the_one_that_is_read(place: &Place) {
    let embedded = flatwater::migrations!("tests/it/files/embedded");
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/files/embedded");
    assert_eq!(embedded, Migrations::from_dir(folder).unwrap());
    let db = place.options().migrations(embedded).open().await.unwrap();
    assert_eq!(names(&db).await, ["001_init", "002_email"]);
    assert_eq!(value(&db, "SELECT count(email) FROM users").await, 0);
}

async fn a_migration_that_fails_is_named_by_file_line_and_statement(place: &Place) {
    let db = place.open().await;
    let fails = |sql: &'static str| [FIRST, ("002_fails", sql), ("003_never", "CREATE TABLE never (a)")];
    for (sql, line, kind, statement) in [
        (
            "CREATE TABLE u (a);\n\n-- why\nINSERT INTO t\nVALUES (1)",
            4,
            ErrorKind::Constraint,
            "INSERT INTO t\nVALUES (1)",
        ),
        ("CREATE TABLE u (a);\nINSERT INTO t\n  SELECT a,\n  nowhere FROM t", 4, ErrorKind::Sql, "INSERT INTO t"),
        ("CREATE TABLE u (a); SELEC", 1, ErrorKind::Sql, "SELEC"),
        ("CREATE TABLE u (a);\nINSERT OR ROLLBACK INTO t VALUES (1)", 2, ErrorKind::Constraint, "INSERT OR ROLLBACK"),
    ] {
        let error = db.migrate(fails(sql)).await.unwrap_err();
        assert_eq!((error.kind(), error.operation()), (kind, Some("migrate")), "{error}");
        assert!(error.message().starts_with(&format!("migration 002_fails, line {line}: ")), "{error}");
        assert!(error.sql().unwrap().starts_with(statement), "{error}");
        assert_eq!(names(&db).await, ["001_init"]);
        assert_eq!(value(&db, "SELECT count(*) FROM sqlite_schema WHERE name IN ('u', 'never')").await, 0);
    }
    assert_eq!(db.migrate([FIRST, ("002_fails", "-- repaired")]).await.unwrap(), ["002_fails"]);
}

async fn transaction_control_in_a_migration_is_refused_with_the_way_out(place: &Place) {
    let db = place.open().await;
    for sql in ["CREATE TABLE u (a); COMMIT", "BEGIN", "ROLLBACK"] {
        let error = db.migrate([FIRST, ("002_b", sql)]).await.unwrap_err();
        assert!(error.kind() == ErrorKind::Misuse && error.hint().unwrap().contains("-- no-transaction"), "{error}");
        assert_eq!(names(&db).await, ["001_init"]);
    }
    let error = db.migrate([FIRST, ("002_b", "-- no-transaction\nBEGIN; DELETE FROM t")]).await.unwrap_err();
    assert!(error.message().contains("left a transaction open"), "{error}");
    assert_eq!(value(&db, "SELECT count(*) FROM t").await, 1);
    let savepoints = "SAVEPOINT a; DELETE FROM t; ROLLBACK TO a; RELEASE a";
    assert_eq!(db.migrate([FIRST, ("002_b", savepoints)]).await.unwrap(), ["002_b"]);
    assert_eq!(value(&db, "SELECT count(*) FROM t").await, 1);
}

async fn a_step_without_a_transaction_may_vacuum(place: &Place) {
    let db = place.open().await;
    let vacuum = ("002_vacuum", "-- no-transaction\nVACUUM;\nPRAGMA user_version = 7");
    assert!(db.migrate([FIRST, ("002_vacuum", "VACUUM")]).await.unwrap_err().message().contains("VACUUM"));
    assert_eq!(db.migrate([FIRST, vacuum]).await.unwrap(), ["002_vacuum"]);
    assert_eq!(value(&db, "PRAGMA user_version").await, 7);
    let error = db.migrate([FIRST, vacuum, ("003_c", "-- no-transaction\n\nDROP TABLE u")]).await.unwrap_err();
    assert!(error.message().starts_with("migration 003_c, line 3: no such table: u"), "{error}");
}

async fn what_a_migration_sets_on_the_connection_is_gone_after_it(place: &Place) {
    const SETS: &str = "PRAGMA foreign_keys = OFF; PRAGMA cache_size = 77; PRAGMA writable_schema = ON;
        CREATE TEMP TABLE t (z); CREATE TABLE c (p REFERENCES t)";
    let db = place.options().readers(1).open().await.unwrap();
    let fails = format!("{SETS}; no SQL").replace("TABLE c", "TABLE d");
    for list in [vec![FIRST, ("002_a", SETS)], vec![FIRST, ("002_a", SETS), ("003_fails", &*fails)]] {
        let should_fail = list.len() == 3;
        assert_eq!(db.migrate(list).await.is_err(), should_fail);
        let error = db.execute("INSERT INTO c VALUES (1000)", ()).await.unwrap_err();
        assert_eq!(error.sqlite_name(), Some("SQLITE_CONSTRAINT_FOREIGNKEY"), "{error}");
        let left = db.write_with(|tx| {
            let temp: i64 = tx.query_row("SELECT count(*) FROM temp.sqlite_schema", [], |row| row.get(0))?;
            let cache: i64 = tx.query_row("PRAGMA cache_size", [], |row| row.get(0))?;
            Ok::<_, Error>((temp, cache))
        });
        assert_eq!(left.await.unwrap(), (0, -16384));
    }
}

async fn a_changed_and_a_newer_list_are_refused(place: &Place) {
    let db = place.open().await;
    db.migrate([FIRST, SECOND]).await.unwrap();
    let error = db.migrate([(FIRST.0, "CREATE TABLE other (a)"), SECOND]).await.unwrap_err();
    assert!(error.kind() == ErrorKind::Misuse && error.message().contains("001_init was changed"), "{error}");
    let error = db.migrate([FIRST]).await.unwrap_err();
    assert!(error.kind() == ErrorKind::Misuse && error.message().contains("newer than this program"), "{error}");
    let older = Migrations::new([FIRST]).ignore_missing(true);
    assert_eq!(db.migrate(&older).await.unwrap(), [""; 0]);
    let error = db.migrate([("init", "")]).await.unwrap_err();
    assert!(error.hint().unwrap().contains("001_init"), "{error}");
}

async fn texts_that_were_learnt_before_see_the_new_schema(place: &Place) {
    let db = place.open().await;
    db.migrate([FIRST]).await.unwrap();
    for n in 2..8 {
        db.execute("INSERT INTO t VALUES (?)", (n,)).await.unwrap();
        db.query("SELECT * FROM t WHERE a = ?", (n,)).await.unwrap();
    }
    db.migrate([FIRST, SECOND]).await.unwrap();
    assert_eq!(db.query("SELECT * FROM t WHERE a = ?", (2,)).await.unwrap().columns().len(), 2);
    let error = db.execute("INSERT INTO t VALUES (?)", (9,)).await.unwrap_err();
    assert!(error.message().contains("has 2 columns"), "{error}");
}

#[test]
fn a_folder_of_files_is_applied_and_a_broken_file_fails_the_open() {
    let file = TestFile::new();
    let folder = file.directory().join("migrations");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("1_init.sql"), FIRST.1).unwrap();
    std::fs::write(folder.join("2_fails.sql"), "\n\nSELECT nowhere").unwrap();
    let open = || file.options().migrations(Migrations::from_dir(&folder).unwrap()).open();
    let error = open().wait().unwrap_err();
    assert!(error.to_string().contains("2_fails, line 3: no such column: nowhere"), "{error}");
    assert_eq!(error.operation(), Some("migrate"));
    std::fs::write(folder.join("2_fails.sql"), "\n\nSELECT 1").unwrap();
    let db = open().wait().unwrap();
    assert_eq!(run(names(&db)), ["1_init", "2_fails"]);
}

#[test]
fn a_folder_without_a_migration_is_refused_and_an_empty_list_is_not() {
    let file = TestFile::new();
    let folder = file.directory().join("migratoins");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("1_init.down.sql"), "").unwrap();
    let error = Migrations::from_dir(&folder).unwrap_err();
    assert!(error.message().contains("migratoins") && error.hint().unwrap().contains("001_init.sql"), "{error}");
    let none: [(&str, &str); 0] = [];
    assert!(file.options().migrations(none).open().wait().is_ok());
}

#[test]
fn another_open_of_the_file_needs_the_same_migrations_or_only_reads() {
    run(async {
        let file = TestFile::new();
        let first = file.options().migrations([FIRST]).open().await.unwrap();
        assert!(file.options().migrations([FIRST]).open().await.is_ok(), "an equal list");
        for other in [file.options(), file.options().migrations([FIRST, SECOND])] {
            let error = other.open().await.unwrap_err();
            assert!(
                error.kind() == ErrorKind::Misuse && error.message().contains("the option `migrations`"),
                "{error}"
            );
        }
        let reading = file.options().read_only(true).open().await.unwrap();
        assert_eq!(names(&reading).await, ["001_init"]);
        assert_eq!(reading.migrate([FIRST]).await.unwrap_err().kind(), ErrorKind::Misuse);
        let error = file.options().read_only(true).migrations([FIRST]).open().await.unwrap_err();
        assert!(error.message().contains("read_only"), "{error}");
        first.close().await.unwrap();
    });
}

/// The table as sqlx 0.8 creates it, with a step as sqlx notes it.
fn sqlx_table(plain: &Connection, checksum_of: &str, success: bool) {
    use sha2::Digest;
    plain
        .execute_batch(
            "CREATE TABLE _sqlx_migrations (version BIGINT PRIMARY KEY, description TEXT NOT NULL,
             installed_on TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, success BOOLEAN NOT NULL, checksum BLOB NOT NULL,
             execution_time BIGINT NOT NULL);
             CREATE TABLE t (a INTEGER PRIMARY KEY); INSERT INTO t VALUES (1)",
        )
        .unwrap();
    let row = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) VALUES (1, 'init', ?, ?, 9)";
    plain.execute(row, (success, sha2::Sha384::digest(checksum_of).to_vec())).unwrap();
}

#[test]
fn what_sqlxs_runner_applied_is_not_applied_again() {
    run(async {
        let file = TestFile::new();
        sqlx_table(&file.plain(), FIRST.1, true);
        let db = file.options().migrations([FIRST, SECOND]).open().await.unwrap();
        assert_eq!(names(&db).await, ["1_init", "002_b"]);
        assert_eq!(value(&db, "SELECT count(*) FROM t WHERE b = 'x'").await, 1);
        assert_eq!(value(&db, "SELECT count(*) FROM _sqlx_migrations").await, 1);

        let changed = TestFile::new();
        sqlx_table(&changed.plain(), "another text", true);
        let error = changed.options().migrations([FIRST]).open().await.unwrap_err();
        assert!(error.message().contains("was changed"), "{error}");

        let half = TestFile::new();
        sqlx_table(&half.plain(), FIRST.1, false);
        let error = half.options().migrations([FIRST]).open().await.unwrap_err();
        assert!(error.kind() == ErrorKind::Misuse && error.message().contains("did not finish"), "{error}");
        assert_eq!(
            integer(&half.plain(), "SELECT count(*) FROM sqlite_schema WHERE name = '_flatwater_migrations'"),
            0
        );
    });
}

#[test]
fn a_migration_waits_for_a_lock_until_its_deadline_and_its_statements_end_there() {
    run(async {
        let file = TestFile::new();
        let db = file.open().await;
        let plain = file.plain();
        plain.execute_batch("BEGIN IMMEDIATE").unwrap();
        let short = db.with_timeout(Duration::from_millis(50));
        let error = short.migrate([FIRST]).await.unwrap_err();
        assert_eq!((error.kind(), error.applied()), (ErrorKind::Timeout, Some(TimeoutEffect::No)), "{error}");
        let waits = tokio::spawn(db.migrate([FIRST]));
        until(|| db.stats().writes_waiting == 0).await;
        plain.execute_batch("COMMIT").unwrap();
        assert_eq!(waits.await.unwrap().unwrap(), ["001_init"]);
        let error = short.migrate([FIRST, ("002_long", ENDLESS)]).await.unwrap_err();
        assert_eq!((error.kind(), error.applied()), (ErrorKind::Timeout, Some(TimeoutEffect::No)), "{error}");
        // Until there is time enough for the second one.
        let mut time = Duration::from_millis(50);
        let error = loop {
            let ample = db.with_timeout(time);
            let error = ample.migrate([FIRST, SECOND, ("003_long", ENDLESS)]).await.unwrap_err();
            if names(&db).await.len() > 1 {
                break error;
            }
            assert_eq!((error.kind(), error.applied()), (ErrorKind::Timeout, Some(TimeoutEffect::No)), "{error}");
            time *= 2;
        };
        assert_eq!((error.kind(), error.applied()), (ErrorKind::Timeout, Some(TimeoutEffect::Unknown)), "{error}");
        assert_eq!(names(&db).await, ["001_init", "002_b"]);
        let orphan = "CREATE TABLE c (p REFERENCES t); INSERT INTO c VALUES (1000)";
        assert_eq!(db.execute_script(orphan).await.unwrap_err().kind(), ErrorKind::Constraint, "foreign keys are on");
    });
}

#[test]
fn a_migration_whose_caller_leaves_is_undone_and_those_before_it_stay() {
    run(async {
        let file = TestFile::new();
        let db = file.open().await;
        let plain = file.plain();
        plain.execute_batch("BEGIN IMMEDIATE").unwrap();
        let mut call = db.migrate(Migrations::new([FIRST]).foreign_key_check(ForeignKeyCheck::Touched));
        assert!(futures_util::poll!(&mut call).is_pending());
        // It runs, and waits for the lock.
        until(|| db.stats().writes_waiting == 0).await;
        assert_eq!(call.cancel(), CancelOutcome::WriteInterrupted);
        // It needs no write lock, and tells that the wait has ended.
        db.checkpoint(CheckpointMode::Passive).await.unwrap();
        plain.execute_batch("COMMIT").unwrap();
        assert_eq!(count_of(&plain, "_flatwater_migrations"), 0);
        let mut call = db.migrate([FIRST, ("002_long", ENDLESS)]);
        assert!(futures_util::poll!(&mut call).is_pending());
        until(|| count_of(&plain, "t") == 1).await;
        drop(call);
        assert_eq!(db.migrate([FIRST]).await.unwrap(), [""; 0]);
        assert_eq!(names(&db).await, ["001_init"]);
    });
}

/// The number of tables of that name.
fn count_of(plain: &rusqlite::Connection, name: &str) -> i64 {
    integer(plain, &format!("SELECT count(*) FROM sqlite_schema WHERE name = '{name}'"))
}

#[test]
fn an_up_to_date_database_needs_no_write_lock() {
    run(async {
        let file = TestFile::new();
        file.options().migrations([FIRST]).open().await.unwrap().close().await.unwrap();
        let plain = file.plain();
        plain.execute_batch("BEGIN IMMEDIATE").unwrap();
        let db = Options::new(file.path()).migrations([FIRST]).open().await.unwrap();
        assert_eq!(names(&db).await, ["001_init"]);
        plain.execute_batch("COMMIT").unwrap();
    });
}
