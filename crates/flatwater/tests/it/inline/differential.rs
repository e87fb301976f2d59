//! Compares inline runs with workers: a list of random statements has the same results whether short statements run
//! inline or none does. Limits are tiny or large, and the schema changes between statements, by Flatwater and by
//! another program.
//!
//! `FLATWATER_SEED` repeats one list, `FLATWATER_LISTS` sets the number of lists.

use std::time::Duration;

use flatwater::options::{Inline, InlineLimits};
use flatwater::rusqlite::limits::Limit;
use flatwater::rusqlite::{Connection, types::Value};
use flatwater::values::{ExecuteResult, RunResult};
use flatwater::{Database, Error, Params, Rows};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::place::Place;
use crate::support::run;

const SCHEMA: &str = "
    CREATE TABLE t (a INTEGER PRIMARY KEY, b UNIQUE, c, d CHECK (d IS NULL OR length(d) <> 3));
    CREATE TABLE parent (id INTEGER PRIMARY KEY);
    CREATE TABLE child (id INTEGER PRIMARY KEY, p REFERENCES parent (id));
    CREATE INDEX child_p ON child (p);
    CREATE TABLE late (id INTEGER PRIMARY KEY, p REFERENCES parent (id) DEFERRABLE INITIALLY DEFERRED);
    CREATE TABLE word (k TEXT PRIMARY KEY COLLATE NOCASE, v) WITHOUT ROWID;
    CREATE TABLE counted (id INTEGER PRIMARY KEY AUTOINCREMENT, v NOT NULL);
    CREATE TABLE harsh (a UNIQUE ON CONFLICT ROLLBACK, b UNIQUE ON CONFLICT FAIL);
    CREATE TABLE typed (a INT, b TEXT) STRICT;";

const TABLES: &[&str] = &["t", "parent", "child", "late", "word", "counted", "harsh", "typed", "sqlite_sequence"];

const WRITES: &[&str] = &[
    "INSERT INTO t VALUES (?, ?, ?, ?)",
    "INSERT INTO t (b, c) VALUES (?, ?)",
    "INSERT INTO t (b) VALUES (?) ON CONFLICT (b) DO UPDATE SET c = excluded.b",
    "INSERT OR IGNORE INTO t (a, b) VALUES (?, ?)",
    "REPLACE INTO t (a, b) VALUES (?, ?)",
    "INSERT OR ROLLBACK INTO t (a, b) VALUES (?, ?)",
    "UPDATE t SET c = ? WHERE a = ?",
    "UPDATE t SET b = ? WHERE a = ?",
    "UPDATE t SET c = c || c WHERE a = ?",
    "UPDATE t SET c = abs(-9223372036854775807 - ?) WHERE a = 3",
    "DELETE FROM t WHERE a = ?",
    "DELETE FROM t WHERE a > ? AND a < 40",
    "INSERT INTO parent VALUES (?)",
    "DELETE FROM parent WHERE id = ?",
    "INSERT INTO child (p) VALUES (?)",
    "UPDATE child SET p = ? WHERE id = (SELECT id FROM child WHERE p = ? ORDER BY id LIMIT ?)",
    "DELETE FROM child WHERE id IN (SELECT id FROM child WHERE p = ? ORDER BY id LIMIT ?)",
    "INSERT INTO late (p) VALUES (?)",
    "DELETE FROM late WHERE id = ?",
    "REPLACE INTO word VALUES ('k' || ?, ?)",
    "INSERT INTO counted (v) VALUES (?)",
    "INSERT INTO harsh VALUES (?, ?)",
    "INSERT INTO typed VALUES (?, ?)",
];

const QUERIES: &[&str] = &[
    "SELECT * FROM t WHERE a = ?",
    "SELECT * FROM t WHERE b = ?",
    "SELECT a, c FROM t WHERE c = ?",
    "SELECT * FROM t",
    "SELECT a, b FROM t ORDER BY a LIMIT ?",
    "SELECT length(c), c FROM t WHERE a = ?",
    "SELECT id FROM child WHERE p = ? ORDER BY id",
    "SELECT id FROM child WHERE p = ? ORDER BY id DESC LIMIT ?",
    "SELECT id, p FROM child WHERE p = ? AND id >= ? ORDER BY id LIMIT ? OFFSET ?",
    "SELECT v FROM word WHERE k LIKE ? ORDER BY k LIMIT ?",
    "SELECT count(*) FROM t WHERE b LIKE ?",
    "SELECT x.a, y.a FROM t x, t y WHERE x.a = ?",
    "SELECT a, c FROM t WHERE b > ? ORDER BY c",
    "SELECT zeroblob(?)",
    "SELECT printf('%*d', ?, 1)",
    "SELECT c || c || c || c FROM t WHERE a = ?",
    "SELECT v FROM word WHERE k = ?",
    "SELECT (SELECT count(*) FROM child WHERE p = parent.id) FROM parent WHERE id = ?",
    "SELECT abs(-9223372036854775807 - ?)",
    "SELECT ?, ?",
    "INSERT INTO t (b, c) VALUES (?, ?) RETURNING *",
    "INSERT INTO counted (v) VALUES (?) RETURNING id",
    "UPDATE t SET c = ? WHERE a = ? RETURNING a, c",
    "DELETE FROM t WHERE a = ? RETURNING b",
];

const DEFINITIONS: &[&str] = &[
    "CREATE INDEX IF NOT EXISTS by_c ON t (c)",
    "DROP INDEX IF EXISTS by_c",
    "CREATE UNIQUE INDEX IF NOT EXISTS word_v ON word (v)",
    "DROP INDEX IF EXISTS word_v",
    "ALTER TABLE t ADD COLUMN e DEFAULT 7",
    "ALTER TABLE t DROP COLUMN e",
    "CREATE TRIGGER IF NOT EXISTS trace AFTER INSERT ON t BEGIN INSERT INTO counted (v) VALUES (new.a); END",
    "DROP TRIGGER IF EXISTS trace",
];

#[derive(Clone, Debug)]
enum Step {
    Execute(&'static str, Vec<Value>),
    Run(&'static str, Vec<Value>),
    /// Several rows for one text, one after the other.
    Many(&'static str, Vec<Vec<Value>>),
    Batch(Vec<(&'static str, Vec<Value>)>),
    Query(&'static str, Vec<Value>),
    QueryOne(&'static str, Vec<Value>),
    QueryJson(&'static str, Vec<Value>),
    Define(&'static str),
    /// The same, by another program.
    DefineOutside(&'static str),
    /// Limits the length of values from now on.
    LimitLength(i32),
    /// The statements of a transaction, each with whether it runs in a savepoint, and whether the transaction commits.
    Transaction(Vec<(Step, bool)>, bool),
    /// The statements while a snapshot is open, each with whether it runs in there.
    Snapshot(Vec<(Step, bool)>),
}

#[derive(Debug, PartialEq)]
enum Outcome {
    Executed(ExecuteResult),
    Ran(RunResult),
    Changed(u64),
    Results(Vec<RunResult>),
    Rows(Rows),
    Row(Option<Vec<Value>>),
    Json(String),
    Done,
    /// The transaction was lost before. It is a race whether the caller or the writer's thread finds that out, and so
    /// is the name of the operation; the message is the same.
    Lost(String),
    Each(Vec<Result<Outcome, Error>>),
}

fn value(random: &mut StdRng) -> Value {
    match random.random_range(0..20) {
        0 => Value::Null,
        1 => Value::Real(f64::from(random.random_range(0..6)) / 2.0),
        2 => Value::Text("x".repeat(random.random_range(0..6))),
        3 => Value::Text("long ".repeat(random.random_range(10..1000))),
        4 => Value::Blob(vec![7; random.random_range(0..3000)]),
        5 => Value::Integer(random.random_range(0..200_000)),
        _ => Value::Integer(random.random_range(0..50)),
    }
}

fn params(random: &mut StdRng, sql: &str) -> Vec<Value> {
    // Now and then one too many.
    let more = usize::from(random.random_range(0..100) == 0);
    (0..sql.matches('?').count() + more).map(|_| value(random)).collect()
}

/// A few rows, or statements that are the same a few times.
fn several(random: &mut StdRng) -> Step {
    let text = |random: &mut StdRng| {
        let (writes, at) = (WRITES.len(), random.random_range(0..WRITES.len() + QUERIES.len()));
        if at < writes { WRITES[at] } else { QUERIES[at - writes] }
    };
    let count = random.random_range(0..6);
    if random.random() {
        let sql = text(random);
        return Step::Many(sql, (0..count).map(|_| params(random, sql)).collect());
    }
    let mut sql = text(random);
    let statement = |_| {
        if random.random_range(0..3) == 0 {
            sql = text(random);
        }
        (sql, params(random, sql))
    };
    Step::Batch((0..count).map(statement).collect())
}

fn statement(random: &mut StdRng) -> Step {
    if random.random() {
        let sql = WRITES[random.random_range(0..WRITES.len())];
        let params = params(random, sql);
        return if random.random_range(0..3) == 0 { Step::Run(sql, params) } else { Step::Execute(sql, params) };
    }
    let sql = QUERIES[random.random_range(0..QUERIES.len())];
    let params = params(random, sql);
    // A write's `changes()` belongs to whoever asks on the writer's connection.
    match random.random_range(0..5) {
        0 => Step::QueryOne(sql, params),
        1 => Step::QueryJson(sql, params),
        2 => Step::Run(sql, params),
        _ => Step::Query(sql, params),
    }
}

fn step(random: &mut StdRng) -> Step {
    match random.random_range(0..200) {
        0 | 1 => Step::Define(DEFINITIONS[random.random_range(0..DEFINITIONS.len())]),
        2 | 3 => Step::DefineOutside(DEFINITIONS[random.random_range(0..DEFINITIONS.len())]),
        // Not so short that the schema itself cannot be read any more: then it depends on what a connection has prepared
        // already which error a wrong call gets.
        4 => Step::LimitLength([1_000, 2_000, 1_000_000_000][random.random_range(0..3)]),
        5..25 => {
            let steps = (0..random.random_range(0..12)).map(|_| (statement(random), random.random_range(0..4) == 0));
            let steps = steps.collect();
            Step::Transaction(steps, random.random_range(0..4) > 0)
        }
        25..45 => several(random),
        45..60 => {
            let one = |random: &mut StdRng| match random.random_range(0..20) {
                0 => (Step::Define(DEFINITIONS[random.random_range(0..DEFINITIONS.len())]), false),
                1 => (Step::DefineOutside(DEFINITIONS[random.random_range(0..DEFINITIONS.len())]), false),
                _ => (statement(random), random.random_range(0..4) > 0),
            };
            Step::Snapshot((0..random.random_range(0..12)).map(|_| one(random)).collect())
        }
        _ => statement(random),
    }
}

fn row(row: Option<flatwater::Row<'_>>) -> Option<Vec<Value>> {
    row.map(|row| (0..row.len()).map(|at| row.get::<Value>(at).unwrap()).collect())
}

async fn inside(tx: &flatwater::Session, step: &Step) -> Result<Outcome, Error> {
    match step.clone() {
        Step::Execute(sql, values) => tx.execute(sql, Params::positional(values)).await.map(Outcome::Executed),
        Step::Run(sql, values) => tx.run(sql, Params::positional(values)).await.map(Outcome::Ran),
        Step::Query(sql, values) => tx.query(sql, Params::positional(values)).await.map(Outcome::Rows),
        Step::QueryOne(sql, values) => {
            tx.query_optional(sql, Params::positional(values)).await.map(|one| Outcome::Row(row(one)))
        }
        Step::QueryJson(sql, values) => tx.query_json(sql, Params::positional(values)).await.map(Outcome::Json),
        other => unreachable!("{other:?}"),
    }
}

fn told(result: Result<Outcome, Error>) -> Result<Outcome, Error> {
    match result {
        Err(error) if error.message().contains("SQLite rolled back") => Ok(Outcome::Lost(error.message().to_owned())),
        result => result,
    }
}

async fn transaction(db: &Database, steps: &[(Step, bool)], commits: bool) -> Result<Outcome, Error> {
    let mut tx = db.begin().await?;
    let mut each = Vec::new();
    for (step, nested) in steps {
        if *nested {
            match tx.begin().await {
                Ok(savepoint) => {
                    each.push(told(inside(&savepoint, step).await));
                    let ended = if commits { savepoint.commit().await } else { savepoint.rollback().await };
                    each.push(told(ended.map(|()| Outcome::Done)));
                }
                Err(error) => each.push(told(Err(error))),
            }
        } else {
            each.push(told(inside(&tx, step).await));
        }
    }
    let ended = if commits { tx.commit().await } else { tx.rollback().await };
    each.push(told(ended.map(|()| Outcome::Done)));
    Ok(Outcome::Each(each))
}

async fn snapshot(place: &Place, db: &Database, steps: &[(Step, bool)]) -> Result<Outcome, Error> {
    let snapshot = db.snapshot().await?;
    let mut each = Vec::new();
    for (step, is_inside) in steps {
        if *is_inside {
            each.push(inside(&snapshot, step).await);
        } else if place.file().is_some() {
            // With one connection a write would wait for the end of the snapshot.
            each.push(Box::pin(perform(place, db, step)).await);
        }
    }
    Ok(Outcome::Each(each))
}

async fn perform(place: &Place, db: &Database, step: &Step) -> Result<Outcome, Error> {
    match step.clone() {
        Step::Execute(sql, values) => db.execute(sql, Params::positional(values)).await.map(Outcome::Executed),
        Step::Run(sql, values) => db.run(sql, Params::positional(values)).await.map(Outcome::Ran),
        Step::Query(sql, values) => db.query(sql, Params::positional(values)).await.map(Outcome::Rows),
        Step::QueryOne(sql, values) => {
            db.query_optional(sql, Params::positional(values)).await.map(|one| Outcome::Row(row(one)))
        }
        Step::QueryJson(sql, values) => db.query_json(sql, Params::positional(values)).await.map(Outcome::Json),
        Step::Many(sql, rows) => {
            db.execute_many(sql, rows.into_iter().map(Params::positional)).await.map(Outcome::Changed)
        }
        Step::Batch(statements) => {
            let statements = statements.into_iter().map(|(sql, values)| (sql, Params::positional(values)));
            db.batch(statements).await.map(Outcome::Results)
        }
        Step::Define(sql) => db.execute(sql, ()).await.map(|_| Outcome::Done),
        Step::DefineOutside(sql) => {
            if let Some(file) = place.file() {
                // It fails where it fails inside.
                let _ = file.plain().execute_batch(sql);
            }
            Ok(Outcome::Done)
        }
        Step::LimitLength(bytes) => {
            let set = db.write_with(move |c| c.set_limit(Limit::SQLITE_LIMIT_LENGTH, bytes).map_err(Error::from));
            set.await.map(|_| Outcome::Done)
        }
        Step::Transaction(steps, commits) => transaction(db, &steps, commits).await,
        Step::Snapshot(steps) => snapshot(place, db, &steps).await,
    }
}

fn content(connection: &Connection) -> Vec<Vec<Vec<Value>>> {
    let rows = |table: &&str| {
        let rowid = if *table == "word" { "k" } else { "rowid" };
        let mut statement = connection.prepare(&format!("SELECT {rowid}, * FROM {table} ORDER BY {rowid}")).unwrap();
        // It may be prepared again at its first step, with other columns.
        let cells = |row: &flatwater::rusqlite::Row<'_>| {
            (0..row.as_ref().column_count()).map(|column| row.get(column)).collect()
        };
        let rows = statement.query_map([], cells).unwrap();
        rows.map(Result::unwrap).collect()
    };
    TABLES.iter().map(rows).collect()
}

async fn content_of(db: &Database) -> Vec<Vec<Vec<Value>>> {
    let all = db.read_with(|c| {
        // In memory it is the writer's.
        let limit = c.set_limit(Limit::SQLITE_LIMIT_LENGTH, 1_000_000_000)?;
        let content = content(c);
        c.set_limit(Limit::SQLITE_LIMIT_LENGTH, limit)?;
        Ok::<_, Error>(content)
    });
    all.await.unwrap()
}

#[derive(Default, Debug)]
struct Totals {
    reads: u64,
    writes: u64,
    moved: u64,
}

fn limits(random: &mut StdRng) -> InlineLimits {
    let mut pick = |from: [usize; 5]| from[random.random_range(0..5)];
    InlineLimits::default()
        .time(
            [Duration::ZERO, Duration::from_micros(50), Duration::from_secs(9), Duration::from_secs(9), Duration::MAX]
                [pick([0, 1, 2, 3, 4])],
        )
        .rows(pick([0, 1, 5, 256, usize::MAX]))
        .bytes(pick([0, 200, 4000, 64 << 10, usize::MAX]))
}

async fn compare(place: fn() -> Place, seed: u64, totals: &mut Totals) {
    let mut random = StdRng::seed_from_u64(seed);
    let limits = limits(&mut random);
    let (inline_place, worker_place) = (place(), place());
    let inline = inline_place.options().readers(1).tuning(|t| t.inline(Inline::Auto(limits))).open().await.unwrap();
    let worker = worker_place.options().readers(1).tuning(|t| t.inline(Inline::Never)).open().await.unwrap();
    inline.execute_script(SCHEMA).await.unwrap();
    worker.execute_script(SCHEMA).await.unwrap();
    for at in 0..700 {
        let step = step(&mut random);
        let told = format!("seed {seed}, {limits:?}, step {at}: {step:?}");
        let (ours, theirs) =
            (perform(&inline_place, &inline, &step).await, perform(&worker_place, &worker, &step).await);
        assert_eq!(ours, theirs, "{told}");
        if at % 50 == 0 {
            assert_eq!(content_of(&inline).await, content_of(&worker).await, "{told}");
        }
    }
    assert_eq!(content_of(&inline).await, content_of(&worker).await, "seed {seed}");
    let stats = inline.stats().inline;
    totals.reads += stats.reads;
    totals.writes += stats.writes;
    totals.moved += stats.moved;
    let never = worker.stats().inline;
    assert_eq!((never.reads, never.writes, never.moved), (0, 0, 0));
    inline.close().await.unwrap();
    worker.close().await.unwrap();
}

/// The lists that have found something, and run each time.
const FOUND: [u64; 1] = [
    // A cached statement that is compiled again under a schema that is not the newest any more.
    6_330_697_069_651_586_827,
];

fn compare_lists(place: fn() -> Place, is_enough: fn(&Totals) -> bool) {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let mut totals = Totals::default();
    if let Some(seed) = number("FLATWATER_SEED") {
        return run(compare(place, seed, &mut totals));
    }
    let (first, lists) = (rand::random::<u64>(), number("FLATWATER_LISTS").unwrap_or(20));
    for seed in FOUND {
        run(compare(place, seed, &mut totals));
    }
    // The limits of a list may be so small that nothing runs inline.
    for list in 0.. {
        if list >= lists && is_enough(&totals) {
            return;
        }
        assert!(list < lists + 400, "hardly anything ran on its caller's thread: {totals:?}");
        run(compare(place, first.wrapping_add(list), &mut totals));
    }
}

#[test]
fn what_runs_on_its_callers_thread_does_what_a_worker_does() {
    compare_lists(Place::on_file, |totals| totals.reads > 100 && totals.writes > 100 && totals.moved > 10);
}

#[test]
fn what_runs_on_its_callers_thread_in_memory_does_what_a_worker_does() {
    compare_lists(Place::in_memory, |totals| totals.reads + totals.writes > 0);
}
