//! A statement that SQLite compiles again in its first step, while the schema in memory is older than the one of the file.

use std::path::Path;

use flatwater_sqlite::rusqlite::types::Value;
use flatwater_sqlite::rusqlite::{self, OpenFlags, ffi};
use flatwater_sqlite::{Discard, Flow, Sink, Sqlite, StatementId, drop_older_schemas, prepare_stable};

const INSERT: &str = "INSERT INTO t VALUES (?, 'text')";

struct Files {
    directory: tempfile::TempDir,
}

impl Files {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    /// Another program's connection to a file of this name, which has the table.
    fn with_table(name: &str) -> (Self, rusqlite::Connection) {
        let files = Self::new();
        let other = files.other(name);
        other.execute_batch("CREATE TABLE t (a, b)").unwrap();
        (files, other)
    }

    fn other(&self, name: &str) -> rusqlite::Connection {
        let other = rusqlite::Connection::open(self.directory.path().join(name)).unwrap();
        other.pragma_update(None, "journal_mode", "wal").unwrap();
        other
    }

    fn open(&self, name: &str) -> Sqlite {
        Sqlite::open(&self.directory.path().join(name), OpenFlags::default(), None).unwrap()
    }
}

/// Prepares with `prepare`, then has another program add a column, which the connection sees, and drop it, which it does not.
/// What is prepared is expired, as a registered function or an attached file expires it.
fn expired_under_an_older_schema(
    connection: &mut Sqlite,
    other: &rusqlite::Connection,
    prepare: impl FnOnce(&mut Sqlite) -> StatementId,
) -> StatementId {
    let id = prepare(connection);
    other.execute_batch("ALTER TABLE t ADD COLUMN e").unwrap();
    connection.rusqlite().execute_batch("SELECT * FROM t").unwrap();
    other.execute_batch("ALTER TABLE t DROP COLUMN e").unwrap();
    connection.rusqlite().execute_batch("CREATE TEMP TABLE expires (a); DROP TABLE expires").unwrap();
    let error = connection.rusqlite().prepare(INSERT).unwrap_err();
    assert!(error.to_string().contains("table t has 3 columns but 2 values were supplied"), "{error}");
    id
}

fn usual(connection: &mut Sqlite) -> StatementId {
    connection.prepare(INSERT).unwrap().unwrap().id
}

fn stable(connection: &mut Sqlite) -> StatementId {
    prepare_stable(connection, INSERT).unwrap().unwrap().id
}

fn integer(value: i64) -> [Value; 1] {
    [Value::Integer(value)]
}

fn count(other: &rusqlite::Connection) -> i64 {
    other.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).unwrap()
}

#[test]
fn it_runs_under_the_newest_schema() {
    for prepare in [usual, stable] {
        let (files, other) = Files::with_table("main.db");
        let mut connection = files.open("main.db");

        let id = expired_under_an_older_schema(&mut connection, &other, prepare);
        connection.statement(id).run(integer(1).as_slice(), &mut Discard).unwrap();
        assert_eq!(count(&other), 1);

        let id = expired_under_an_older_schema(&mut connection, &other, prepare);
        connection.statement(id).start(integer(2).as_slice()).unwrap();
        assert_eq!(connection.statement(id).next(&mut Discard).unwrap(), Flow::Continue);
        assert_eq!(count(&other), 2);
        assert_eq!(other.query_row("SELECT max(a) FROM t", [], |row| row.get::<_, i64>(0)).unwrap(), 2);
    }
}

#[test]
fn it_runs_under_the_newest_schema_of_an_attached_file_whose_name_is_not_in_its_text() {
    for prepare in [usual, stable] {
        let (files, other) = Files::with_table("attached.db");
        let mut connection = files.open("main.db");
        attach(&connection, &files.directory.path().join("attached.db"));

        let id = expired_under_an_older_schema(&mut connection, &other, prepare);
        connection.statement(id).run(integer(1).as_slice(), &mut Discard).unwrap();
        assert_eq!(count(&other), 1);
    }
}

fn attach(connection: &Sqlite, path: &Path) {
    connection.rusqlite().execute("ATTACH ? AS attached", [path.to_str().unwrap()]).unwrap();
}

#[test]
fn dropping_older_schemas_leaves_no_snapshot_of_an_attached_file_in_a_transaction() {
    let (files, other) = Files::with_table("attached.db");
    let mut connection = files.open("main.db");
    attach(&connection, &files.directory.path().join("attached.db"));
    connection.rusqlite().execute_batch("BEGIN").unwrap();
    drop_older_schemas(&mut connection).unwrap();
    other.execute_batch("INSERT INTO t VALUES (1, 1)").unwrap();
    let seen: i64 = connection.rusqlite().query_row("SELECT count(*) FROM t", [], |row| row.get(0)).unwrap();
    assert_eq!(seen, 1, "the snapshot began before");
}

#[test]
fn what_does_not_fit_the_newest_schema_either_fails_with_its_error() {
    for prepare in [usual, stable] {
        let (files, other) = Files::with_table("main.db");
        let mut connection = files.open("main.db");
        let id = expired_under_an_older_schema(&mut connection, &other, prepare);
        other.execute_batch("ALTER TABLE t DROP COLUMN b").unwrap();
        let error = connection.statement(id).run(integer(1).as_slice(), &mut Discard).unwrap_err();
        assert_eq!(error.code(), Some(ffi::SQLITE_ERROR));
        assert!(error.to_string().contains("table t has 1 columns but 2 values were supplied"), "{error}");
        assert_eq!(count(&other), 0);
    }
}

/// The function fails at its second row, with the code of a text that does not compile.
#[test]
fn what_ran_and_failed_does_not_run_again() {
    let (files, other) = Files::with_table("main.db");
    other.execute_batch("INSERT INTO t VALUES (1, '{}'), (2, 'no JSON')").unwrap();
    let mut connection = files.open("main.db");
    let id = connection.prepare("SELECT json(b) FROM t").unwrap().unwrap().id;
    let mut rows = Rows(0);
    let error = connection.statement(id).run(&(), &mut rows).unwrap_err();
    assert_eq!((error.code(), rows.0), (Some(ffi::SQLITE_ERROR), 1));
}

struct Rows(u32);

impl Sink for Rows {
    fn null(&mut self) {}
    fn integer(&mut self, _: i64) {}
    fn real(&mut self, _: f64) {}
    fn text(&mut self, _: &[u8]) {}
    fn blob(&mut self, _: &[u8]) {}
    fn row_done(&mut self) -> Flow {
        self.0 += 1;
        Flow::Continue
    }
}
