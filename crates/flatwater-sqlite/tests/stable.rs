//! Statements whose plan does not depend on the values that are bound, and which values matter for the others.

use std::path::Path;

use flatwater_sqlite::rusqlite::types::Value;
use flatwater_sqlite::rusqlite::{OpenFlags, ffi};
use flatwater_sqlite::{
    Discard, Error, FirstRow, Flow, Matters, Plans, Sink, Sqlite, SqliteError, StatementId, prepare_stable,
};

/// The integers of a result, and the names that were told at its first row.
#[derive(Default)]
struct Seen {
    integers: Vec<i64>,
    names: Option<Vec<Box<str>>>,
}

impl Sink for Seen {
    fn first_row(&mut self, row: FirstRow<'_>) {
        self.names = row.new_names();
    }
    fn null(&mut self) {}
    fn integer(&mut self, value: i64) {
        self.integers.push(value);
    }
    fn real(&mut self, _: f64) {}
    fn text(&mut self, _: &[u8]) {}
    fn blob(&mut self, _: &[u8]) {}
    fn row_done(&mut self) -> Flow {
        Flow::Continue
    }
}

fn open(path: &Path) -> Sqlite {
    let connection = Sqlite::open(path, OpenFlags::default(), None).unwrap();
    connection
        .execute_batch(
            "CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY, a INTEGER, name TEXT, s TEXT);
             CREATE INDEX IF NOT EXISTS t_a ON t (a);
             CREATE INDEX IF NOT EXISTS t_name ON t (name COLLATE NOCASE);
             CREATE INDEX IF NOT EXISTS t_open ON t (id) WHERE s = 'open';
             WITH RECURSIVE n (x) AS (VALUES (0) UNION ALL SELECT x + 1 FROM n WHERE x < 99)
             INSERT OR IGNORE INTO t SELECT x, x % 10, 'name' || x, 'done' FROM n",
        )
        .unwrap();
    connection
}

fn memory() -> Sqlite {
    open(Path::new(":memory:"))
}

fn integers<const N: usize>(values: [i64; N]) -> [Value; N] {
    values.map(Value::Integer)
}

fn rows(connection: &mut Sqlite, id: StatementId, values: &[Value]) -> Vec<i64> {
    let mut seen = Seen::default();
    connection.statement(id).run(values, &mut seen).unwrap();
    seen.integers
}

fn prepared(connection: &mut Sqlite, sql: &str) -> [StatementId; 2] {
    [connection.prepare(sql).unwrap().unwrap().id, prepare_stable(connection, sql).unwrap().unwrap().id]
}

#[test]
fn no_value_prepares_a_stable_statement_again_and_its_rows_are_the_same() {
    let mut connection = memory();
    for (sql, runs) in [
        ("SELECT id FROM t WHERE a = ? ORDER BY id DESC", vec![vec![1], vec![2], vec![1], vec![0]]),
        ("SELECT id FROM t ORDER BY id LIMIT ?", vec![vec![10], vec![20], vec![10], vec![0], vec![-1]]),
        (
            "SELECT id FROM t WHERE a = ? ORDER BY id LIMIT ? OFFSET ?",
            vec![vec![1, 3, 1], vec![2, 4, 0], vec![1, 3, 1]],
        ),
    ] {
        let [usual, stable] = prepared(&mut connection, sql);
        for values in &runs {
            let values: Vec<Value> = values.iter().copied().map(Value::Integer).collect();
            assert_eq!(rows(&mut connection, usual, &values), rows(&mut connection, stable, &values), "{sql}");
        }
        let again = [usual, stable].map(|id| connection.statements().reprepares(id));
        assert!(again[0] >= 3 && again[1] == 0, "{sql}: {again:?}");
    }
}

#[test]
fn a_text_that_is_unbound_does_not_prepare_a_statement_again_for_the_values_that_stay() {
    let mut connection = memory();
    let sql = "SELECT id FROM t WHERE a = ? AND name >= ? ORDER BY id";
    let id = connection.prepare(sql).unwrap().unwrap().id;
    for a in 2..6 {
        for name in ["name", "name5"] {
            rows(&mut connection, id, &[Value::Integer(a), Value::Text(name.into())]);
        }
    }
    assert_eq!(connection.statements().reprepares(id), 0);
    assert_eq!(rows(&mut connection, id, &[Value::Integer(5), Value::Null]), []);
}

#[test]
fn a_stable_statement_follows_the_schema() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("test.db");
    let (mut connection, other) = (open(&path), open(&path));
    let [_, id] = prepared(&mut connection, "SELECT * FROM t WHERE a = ? ORDER BY id LIMIT ?");
    let values = integers([1, 1]);
    assert_eq!(rows(&mut connection, id, &values), [1, 1]);
    for (number, change) in
        ["ALTER TABLE t ADD COLUMN b DEFAULT 7", "DROP INDEX t_a", "ALTER TABLE t DROP COLUMN b"].iter().enumerate()
    {
        other.execute_batch(change).unwrap();
        let once = connection.statement(id).run_once(&values[..], &mut Discard);
        assert!(matches!(once, Err(Error::Sqlite(SqliteError { code: ffi::SQLITE_SCHEMA, .. }))), "{once:?}");
        let mut seen = Seen::default();
        connection.statement(id).run(&values[..], &mut seen).unwrap();
        let has_seven = number < 2;
        assert_eq!(seen.integers, if has_seven { vec![1, 1, 7] } else { vec![1, 1] }, "{change}");
        assert_eq!(seen.names.unwrap().len(), if has_seven { 5 } else { 4 });
        assert_eq!(connection.statements().reprepares(id), u32::try_from(number + 1).unwrap());
    }
    // In parts, where the values are bound before.
    connection.statement(id).start(&integers([2, 1])[..]).unwrap();
    other.execute_batch("ALTER TABLE t ADD COLUMN c DEFAULT 8").unwrap();
    let mut seen = Seen::default();
    assert_eq!(connection.statement(id).next(&mut seen), Ok(Flow::Continue));
    assert_eq!(seen.integers, [2, 2, 8]);
    other.execute_batch("DROP TABLE t").unwrap();
    let gone = connection.statement(id).run(&values[..], &mut Discard);
    assert!(matches!(&gone, Err(Error::Sqlite(error)) if error.message.contains("no such table")), "{gone:?}");
}

#[test]
fn a_stable_statement_tells_what_failed() {
    let mut connection = memory();
    let sql = "INSERT INTO t (id, a) SELECT id, 1 FROM t WHERE a = ? ORDER BY id LIMIT ?";
    let [usual, stable] = prepared(&mut connection, sql);
    let errors =
        [usual, stable].map(|id| connection.statement(id).run(&integers([1, 1])[..], &mut Discard).unwrap_err());
    assert_eq!(errors[0], errors[1]);
    assert!(
        matches!(&errors[1], Error::Sqlite(error) if error.code == ffi::SQLITE_CONSTRAINT_PRIMARYKEY),
        "{errors:?}"
    );
    let not_a_number = [Value::Integer(1), Value::Text("many".into())];
    let errors = [usual, stable].map(|id| connection.statement(id).run(&not_a_number[..], &mut Discard).unwrap_err());
    assert_eq!(errors[0], errors[1]);
    assert!(matches!(prepare_stable(&mut connection, "SELECT * FROM gone"), Err(Error::Sqlite(_))));
}

#[test]
fn sqlite_tells_which_parameters_matter_and_how() {
    let mut connection = memory();
    let mut told = |sql: &str| {
        let found = Plans::of(&mut connection).parameters(sql).unwrap()?;
        Some(found.into_iter().map(|found| (found.position, found.name, found.matters)).collect::<Vec<_>>())
    };
    assert_eq!(told("SELECT id FROM t WHERE id = ?"), Some(vec![]));
    assert_eq!(told("SELECT id FROM t WHERE a = ?"), Some(vec![]), "there is no choice");
    let sql = "SELECT id FROM t WHERE id > ?2 AND a = :a ORDER BY id LIMIT $n";
    let expected = vec![(2, Some(":a".into()), Matters::AsFlag), (3, Some("$n".into()), Matters::AsValue)];
    assert_eq!(told(sql), Some(expected));
    assert_eq!(told("SELECT id FROM t WHERE name LIKE ?"), Some(vec![(0, None, Matters::AsValue)]));
    assert_eq!(told("SELECT id FROM t WHERE s = ?"), Some(vec![(0, None, Matters::AsValue)]), "of a partial index");
    assert_eq!(told(&format!("SELECT {}", ["?"; 32].join(", "))), None);
}

#[test]
fn the_plan_of_values_may_be_that_of_unknown_ones_or_not() {
    let mut connection = memory();
    let mut is_the_same = |sql: &str, values: &[Value]| {
        let unknown = Plans::of(&mut connection).plan::<[Value]>(sql, None).unwrap();
        assert!(!unknown.is_empty(), "{sql}");
        unknown == Plans::of(&mut connection).plan(sql, Some(values)).unwrap()
    };
    for values in [1, 2].map(|value| integers([value, value])) {
        assert!(is_the_same("SELECT id FROM t WHERE a = ? ORDER BY id LIMIT ?", &values));
    }
    let text = |text: &str| [Value::Text(text.into())];
    assert!(is_the_same("SELECT id FROM t WHERE name LIKE ?", &text("%ame1")));
    assert!(!is_the_same("SELECT id FROM t WHERE name LIKE ?", &text("name1%")));
    assert!(is_the_same("SELECT id FROM t WHERE s = ? ORDER BY id", &text("done")));
    assert!(!is_the_same("SELECT a FROM t WHERE s = ? ORDER BY id", &text("open")));
}
