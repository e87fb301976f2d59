//! Statements that are run in parts.

use std::ffi::CStr;
use std::path::Path;

use flatwater_sqlite::rusqlite::types::Value;
use flatwater_sqlite::rusqlite::{OpenFlags, ffi};
use flatwater_sqlite::{Discard, Error, Flow, Sink, Sqlite, StatementId};

const COUNT: &str = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 10) SELECT x, ?1 FROM n";

/// Takes so many rows at a time, and keeps the integers and the texts.
struct Part {
    left: usize,
    integers: Vec<i64>,
    texts: Vec<Vec<u8>>,
}

fn part(rows: usize) -> Part {
    Part { left: rows, integers: Vec::new(), texts: Vec::new() }
}

impl Sink for Part {
    fn null(&mut self) {}
    fn integer(&mut self, value: i64) {
        assert!(value >= 0, "expected");
        self.integers.push(value);
    }
    fn real(&mut self, _: f64) {}
    fn text(&mut self, value: &[u8]) {
        self.texts.push(value.to_owned());
    }
    fn blob(&mut self, _: &[u8]) {}
    fn row_done(&mut self) -> Flow {
        self.left -= 1;
        if self.left == 0 { Flow::Stop } else { Flow::Continue }
    }
}

fn open(path: &Path) -> Sqlite {
    Sqlite::open(path, OpenFlags::default(), None).unwrap()
}

fn memory() -> Sqlite {
    open(Path::new(":memory:"))
}

fn prepare(connection: &mut Sqlite, sql: &str) -> StatementId {
    connection.prepare(sql).unwrap().unwrap().id
}

fn start_with(connection: &mut Sqlite, id: StatementId, text: &str) {
    // The values are gone before the first step.
    let values = [Value::Text(text.to_owned())];
    connection.statement(id).start(&values[..]).unwrap();
}

#[test]
fn parts_of_any_length_give_the_rows_of_one_run() {
    let mut connection = memory();
    let (id, other) = (prepare(&mut connection, COUNT), prepare(&mut connection, "SELECT 1"));
    for rows in 1..12 {
        start_with(&mut connection, id, "a text that lies on the heap");
        let mut all = Vec::new();
        loop {
            let mut some = part(rows);
            let flow = connection.statement(id).next(&mut some).unwrap();
            assert!(some.texts.iter().all(|text| text == b"a text that lies on the heap"));
            assert_eq!(flow == Flow::Stop, some.integers.len() == rows);
            all.extend(some.integers);
            // Other work on the connection in between.
            connection.statement(other).run(&(), &mut Discard).unwrap();
            if flow == Flow::Continue {
                break;
            }
        }
        assert_eq!(all, (1..=10).collect::<Vec<_>>(), "{rows} rows at a time");
        assert!(!connection.handle().has_busy_statement());
    }
}

#[test]
fn a_run_in_parts_keeps_its_snapshot_until_it_is_reset() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("test.db");
    let (mut reader, writer) = (open(&path), open(&path));
    writer.execute_batch("PRAGMA journal_mode = wal; CREATE TABLE t (a); INSERT INTO t VALUES (1), (2), (3)").unwrap();
    let id = prepare(&mut reader, "SELECT a FROM t ORDER BY rowid");
    let sum = |reader: &mut Sqlite, rows| {
        let mut some = part(rows);
        reader.statement(id).next(&mut some).map(|_| some.integers.iter().sum::<i64>())
    };
    reader.statement(id).start(&()).unwrap();
    assert!(!reader.handle().has_busy_statement(), "no snapshot before the first step");
    assert_eq!(sum(&mut reader, 1).unwrap(), 1);
    writer.execute_batch("UPDATE t SET a = a + 10; INSERT INTO t VALUES (100)").unwrap();
    assert_eq!(sum(&mut reader, 9).unwrap(), 2 + 3);
    reader.statement(id).start(&()).unwrap();
    assert_eq!(sum(&mut reader, 1).unwrap(), 11);
    reader.statement(id).reset();
    assert!(!reader.handle().has_busy_statement());
    reader.statement(id).start(&()).unwrap();
    assert_eq!(sum(&mut reader, 9).unwrap(), 11 + 12 + 13 + 100);
}

#[test]
fn a_failure_and_a_panic_leave_a_reset_statement() {
    let mut connection = memory();
    let fails = prepare(&mut connection, "SELECT abs(value) FROM json_each('[1, 2, -9223372036854775808]')");
    connection.statement(fails).start(&()).unwrap();
    assert_eq!(connection.statement(fails).next(&mut part(2)).unwrap(), Flow::Stop);
    assert!(matches!(connection.statement(fails).next(&mut part(2)), Err(Error::Sqlite(_))));
    assert!(!connection.handle().has_busy_statement());
    let negative = prepare(&mut connection, "SELECT value FROM json_each('[1, -2, 3]')");
    connection.statement(negative).start(&()).unwrap();
    assert_eq!(connection.statement(negative).next(&mut part(1)).unwrap(), Flow::Stop);
    let next = std::panic::AssertUnwindSafe(|| connection.statement(negative).next(&mut part(9)));
    assert!(std::panic::catch_unwind(next).is_err());
    assert!(!connection.handle().has_busy_statement());
}

#[test]
fn what_does_not_fit_is_refused_and_what_was_ended_is_stale() {
    let mut connection = memory();
    let id = prepare(&mut connection, COUNT);
    assert!(matches!(connection.statement(id).start(&()), Err(Error::ParameterCount { .. })));
    start_with(&mut connection, id, "x");
    assert_eq!(connection.statement(id).next(&mut part(1)).unwrap(), Flow::Stop);
    connection.statement(id).finalize();
    assert!(!connection.handle().has_busy_statement());
    assert!(matches!(connection.statement(id).next(&mut part(1)), Err(Error::StaleStatement)));
    connection.statement(id).reset();
}

/// Returns the texts of the connection's statements, with the values that they are bound to.
fn bound(connection: &Sqlite) -> Vec<String> {
    // SAFETY: the connection is open, and only this thread uses it. Each text is copied and then freed.
    unsafe {
        let db = connection.rusqlite().handle();
        let mut texts = Vec::new();
        let mut statement = ffi::sqlite3_next_stmt(db, std::ptr::null_mut());
        while !statement.is_null() {
            let text = ffi::sqlite3_expanded_sql(statement);
            texts.push(CStr::from_ptr(text).to_string_lossy().into_owned());
            ffi::sqlite3_free(text.cast());
            statement = ffi::sqlite3_next_stmt(db, statement);
        }
        texts
    }
}

#[test]
fn values_that_a_statement_in_parts_was_bound_to_are_given_back() {
    let mut connection = memory();
    let is_bound = |connection: &Sqlite| bound(connection).iter().any(|text| text.contains("a secret"));
    let id = prepare(&mut connection, COUNT);
    start_with(&mut connection, id, "a secret");
    while connection.statement(id).next(&mut part(3)).unwrap() == Flow::Stop {
        assert!(is_bound(&connection));
    }
    assert!(!is_bound(&connection), "at its end");
    let fails = prepare(&mut connection, "SELECT ?1, abs(-9223372036854775807 - 1)");
    start_with(&mut connection, fails, "a secret");
    connection.statement(fails).next(&mut part(3)).unwrap_err();
    assert!(!is_bound(&connection), "after an error");
}
