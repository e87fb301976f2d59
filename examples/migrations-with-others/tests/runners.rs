//! Both runners, on a file and in memory: up, again, back, and with a step that fails.

use flatwater::rusqlite::Connection;
use flatwater::{Database, Error, Options};
use migrations_with_others::{AnyError, MIGRATIONS, with_refinery, with_rusqlite_migration};
use rusqlite_migration::{M, Migrations, SchemaVersion};

/// Runs `test` on a file and in memory.
fn in_both_places(test: fn(&Database)) {
    let directory = tempfile::tempdir().unwrap();
    for path in [directory.path().join("app.db"), ":memory:".into()] {
        let db = Options::new(path).open().wait().unwrap();
        test(&db);
        let on: i64 = db.query_optional_value("PRAGMA foreign_keys", ()).wait().unwrap().unwrap();
        assert_eq!(on, 1);
        db.close().wait().unwrap();
    }
}

fn version(db: &Database) -> usize {
    let ask = |connection: &mut Connection| -> Result<SchemaVersion, AnyError> {
        Ok(MIGRATIONS.current_version(connection)?)
    };
    usize::from(&db.with_connection(ask).wait().unwrap())
}

#[test]
fn rusqlite_migration_runs_up_again_and_down() {
    in_both_places(|db| {
        assert!(MIGRATIONS.validate().is_ok());
        with_rusqlite_migration(db).wait().unwrap();
        with_rusqlite_migration(db).wait().unwrap();
        assert_eq!(version(db), 2);
        db.execute("INSERT INTO friend VALUES (?, NULL, '1815-12-10')", ("Ada",)).wait().unwrap();
        let down = |connection: &mut Connection| -> Result<(), AnyError> {
            let steps = Migrations::new(vec![M::up("CREATE TABLE x (a)").down("DROP TABLE friend")]);
            connection.pragma_update(None, "user_version", 1)?;
            Ok(steps.to_version(connection, 0)?)
        };
        db.with_connection(down).wait().unwrap();
        assert_eq!(version(db), 0);
        assert!(db.query("SELECT * FROM friend", ()).wait().is_err());
    });
}

#[test]
fn a_step_of_rusqlite_migration_that_fails_leaves_the_earlier_ones() {
    in_both_places(|db| {
        let fails = |connection: &mut Connection| -> Result<(), AnyError> {
            let steps = Migrations::new(vec![M::up("CREATE TABLE a (b)"), M::up("CREATE TABLE c (d); no SQL")]);
            Ok(steps.to_latest(connection)?)
        };
        assert!(db.with_connection(fails).wait().unwrap_err().to_string().contains("syntax error"));
        assert_eq!(version(db), 0, "the runner has one transaction for all steps");
        assert!(db.query("SELECT * FROM c", ()).wait().is_err());
    });
}

#[test]
fn refinery_runs_and_runs_again() {
    in_both_places(|db| {
        assert_eq!(with_refinery(db).wait().unwrap(), 2);
        assert_eq!(with_refinery(db).wait().unwrap(), 0);
        let added = db.execute("INSERT INTO users (name, email) VALUES ('Ada', 'ada@example.org')", ()).wait().unwrap();
        assert_eq!(added.changes, 1);
        let names =
            |c: &mut Connection| c.query_row("SELECT max(version) FROM refinery_schema_history", [], |r| r.get(0));
        let latest: i64 = db.with_connection(move |c| names(c).map_err(Error::from)).wait().unwrap();
        assert_eq!(latest, 2);
    });
}
