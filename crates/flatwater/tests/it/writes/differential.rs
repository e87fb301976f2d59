//! Compares grouped writes with the same writes one by one: the same results, the same errors, the same content.
//!
//! A list of random statements runs three times in the same order: all at once on a database with groups, one after the
//! other on a database without groups, and one after the other on plain rusqlite in autocommit mode. `FLATWATER_SEED`
//! repeats one list, `FLATWATER_LISTS` sets the number of lists.

use flatwater::rusqlite::limits::Limit;
use flatwater::rusqlite::{self, Connection, types::Value};
use flatwater::values::{ExecuteResult, RunResult};
use flatwater::{Database, Error, Params, Rows};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::place::{Place, in_both_places};
use crate::support::{TestFile, grouped, run};

in_both_places!(a_member_that_fails_half_way_leaves_nothing_behind, a_group_never_spans_two_files,);

const SCHEMA: &str = "
    CREATE TABLE t (a INTEGER PRIMARY KEY, b UNIQUE, c NOT NULL, d CHECK (d < 50));
    CREATE TABLE parent (id INTEGER PRIMARY KEY);
    CREATE TABLE late (id INTEGER PRIMARY KEY, p REFERENCES parent (id) DEFERRABLE INITIALLY DEFERRED);
    CREATE TABLE soon (id INTEGER PRIMARY KEY, p REFERENCES parent (id) ON DELETE CASCADE);
    CREATE TABLE source (a, b); INSERT INTO source VALUES (1, 'one'), (2, 'two'), ('three', 'x'), (4, 'four');
    CREATE TABLE typed (a INT, b TEXT) STRICT;
    CREATE TABLE big (a INTEGER PRIMARY KEY, b);
    INSERT INTO big VALUES (1, 'x'), (2, 'x'), (3, printf('%60000d', 1)), (4, 'x');
    CREATE TABLE word (k TEXT PRIMARY KEY, v) WITHOUT ROWID;
    CREATE TABLE counted (id INTEGER PRIMARY KEY AUTOINCREMENT, v);
    CREATE VIRTUAL TABLE text USING fts5 (x);
    CREATE TABLE guarded (a); CREATE TABLE log (id INTEGER PRIMARY KEY, a);
    CREATE TRIGGER guard BEFORE INSERT ON guarded BEGIN
        SELECT CASE WHEN new.a % 3 = 0 THEN RAISE(ABORT, 'divisible by three')
                    WHEN new.a % 5 = 0 THEN RAISE(IGNORE) END;
    END;
    CREATE TRIGGER trace AFTER INSERT ON guarded BEGIN INSERT INTO log (a) VALUES (new.a); END;
    CREATE TABLE harsh (a);
    CREATE TRIGGER harsh_guard BEFORE INSERT ON harsh BEGIN
        SELECT CASE WHEN new.a % 3 = 0 THEN RAISE(ROLLBACK, 'all of it')
                    WHEN new.a % 3 = 1 THEN RAISE(FAIL, 'from here on') END;
    END;
    CREATE TABLE strict_keys (a UNIQUE ON CONFLICT FAIL, b UNIQUE ON CONFLICT ROLLBACK);
";

const TABLES: &[&str] = &[
    "t",
    "parent",
    "late",
    "soon",
    "typed",
    "big",
    "word",
    "counted",
    "sqlite_sequence",
    "text",
    "guarded",
    "log",
    "harsh",
    "strict_keys",
];

/// Statements that return no rows; `?` are small numbers.
const EXECUTE: &[&str] = &[
    "INSERT INTO t VALUES (?, ?, ?, ?)",
    "INSERT INTO t (b, c, d) VALUES (?, ?, ?)",
    "INSERT OR REPLACE INTO t VALUES (?, ?, ?, ?)",
    "INSERT OR IGNORE INTO t VALUES (?, ?, ?, ?)",
    "INSERT OR FAIL INTO t SELECT a, b, 1, ? FROM source UNION ALL SELECT ?, ?, ?, 1",
    "INSERT OR ROLLBACK INTO t VALUES (?, ?, ?, ?)",
    "INSERT OR ABORT INTO t SELECT ? + value, value, 1, value FROM json_each('[1,2,3,60]')",
    "INSERT INTO t VALUES (?, ?, NULL, ?)",
    "INSERT INTO t VALUES (?, ?, ?, ?) ON CONFLICT (a) DO UPDATE SET c = c + excluded.c ON CONFLICT (b) DO NOTHING",
    "UPDATE t SET b = b + ? WHERE a < ?",
    "UPDATE OR REPLACE t SET b = ? WHERE a < ?",
    "UPDATE t SET d = d + ? WHERE a > ?",
    "UPDATE t SET c = abs(-9223372036854775807 - (a > ?))",
    "UPDATE t SET c = json_extract('{bad', '$.x') WHERE a = ?",
    "DELETE FROM t WHERE a % 4 = ?",
    "DELETE FROM t",
    "INSERT INTO parent VALUES (?)",
    "DELETE FROM parent WHERE id = ?",
    "INSERT INTO late (p) VALUES (?)",
    "DELETE FROM late WHERE p = ?",
    "INSERT INTO soon (p) VALUES (?)",
    "UPDATE soon SET p = ? WHERE id = ?",
    "INSERT INTO typed SELECT a, b FROM source WHERE rowid <> ?",
    "INSERT INTO typed VALUES (?, 'text')",
    "UPDATE big SET b = b || b WHERE a <> ?",
    "UPDATE big SET b = CASE WHEN a = 3 THEN zeroblob(2000000000) ELSE ? END",
    "UPDATE big SET b = ? WHERE a = 2",
    "INSERT INTO word VALUES ('k' || ?, ?)",
    "REPLACE INTO word VALUES ('k' || ?, ?)",
    "INSERT INTO counted (v) VALUES (?)",
    "INSERT INTO counted (v) SELECT ? FROM source WHERE (SELECT count(*) FROM counted) < 40",
    "DELETE FROM counted WHERE id > ?",
    "INSERT INTO text VALUES ('word ' || ?)",
    "UPDATE text SET x = 'other ' || ? WHERE rowid = ?",
    "DELETE FROM text WHERE text MATCH 'word' AND rowid > ?",
    "INSERT INTO guarded VALUES (?)",
    "INSERT INTO guarded SELECT value + ? FROM json_each('[1,2]')",
    "INSERT INTO harsh VALUES (?)",
    "INSERT INTO harsh SELECT value FROM json_each('[2,5,4,2]') WHERE value <> ?",
    "INSERT INTO strict_keys VALUES (?, ?)",
    "INSERT INTO strict_keys SELECT value, value + ? FROM json_each('[1,2,3]')",
    "UPDATE t SET c = c WHERE 0 AND a = ?",
    "CREATE INDEX IF NOT EXISTS by_c ON t (c)",
    "DROP INDEX IF EXISTS by_c",
];

/// Statements that return rows.
const QUERY: &[&str] = &[
    "INSERT INTO t VALUES (?, ?, ?, ?) RETURNING a, b",
    "INSERT INTO t VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET c = excluded.c RETURNING *",
    "UPDATE t SET c = c + ? RETURNING a, c",
    "DELETE FROM soon WHERE p = ? RETURNING id",
    "INSERT INTO counted (v) VALUES (?) RETURNING id",
];

#[derive(Clone, Debug)]
enum Step {
    Execute(&'static str, Vec<i64>),
    Query(&'static str, Vec<i64>),
    Many(&'static str, Vec<Vec<i64>>),
    ManyWithRows(&'static str, Vec<Vec<i64>>),
    Batch(Vec<(&'static str, Vec<i64>)>),
}

#[derive(Debug, PartialEq)]
enum Outcome {
    Executed(ExecuteResult),
    Rows(Rows),
    Changes(u64),
    Batch(Vec<RunResult>),
}

fn random_params(random: &mut StdRng, sql: &str) -> Vec<i64> {
    (0..sql.matches('?').count()).map(|_| random.random_range(0..12)).collect()
}

fn random_step(random: &mut StdRng) -> Step {
    let execute = |random: &mut StdRng| {
        // Definitions and texts that end transactions are rare, so that groups come about.
        let rare = random.random_range(0..4) > 0;
        loop {
            let sql = EXECUTE[random.random_range(0..EXECUTE.len())];
            let hostile = ["INDEX", "harsh", "strict_keys", "ROLLBACK", "FAIL"].iter().any(|word| sql.contains(word));
            if !(rare && hostile) {
                return sql;
            }
        }
    };
    match random.random_range(0..11) {
        10 => {
            let sql = QUERY[random.random_range(0..QUERY.len())];
            Step::ManyWithRows(sql, (0..random.random_range(0..5)).map(|_| random_params(random, sql)).collect())
        }
        0 | 1 => {
            let sql = QUERY[random.random_range(0..QUERY.len())];
            Step::Query(sql, random_params(random, sql))
        }
        2 => {
            let sql = execute(random);
            Step::Many(sql, (0..random.random_range(0..5)).map(|_| random_params(random, sql)).collect())
        }
        3 => {
            let count = random.random_range(1..5);
            let statement = |random: &mut StdRng| {
                let sql = execute(random);
                (sql, random_params(random, sql))
            };
            Step::Batch((0..count).map(|_| statement(random)).collect())
        }
        _ => {
            let sql = execute(random);
            Step::Execute(sql, random_params(random, sql))
        }
    }
}

async fn perform(db: Database, step: Step) -> Result<Outcome, Error> {
    match step {
        Step::Execute(sql, params) => db.execute(sql, params).await.map(Outcome::Executed),
        Step::Query(sql, params) => db.query(sql, params).await.map(Outcome::Rows),
        Step::Many(sql, rows) => db.execute_many(sql, rows).await.map(Outcome::Changes),
        Step::ManyWithRows(sql, rows) => db.query_many(sql, rows).await.map(Outcome::Rows),
        Step::Batch(statements) => {
            let statements = statements.into_iter().map(|(sql, params)| (sql, Params::positional(params)));
            db.batch(statements).await.map(Outcome::Batch)
        }
    }
}

/// Returns the result of a step in plain SQLite in autocommit mode: the error's code, or the number of changes.
fn perform_plainly(connection: &mut Connection, step: &Step) -> Result<u64, i32> {
    let code = |error: rusqlite::Error| match error {
        rusqlite::Error::SqliteFailure(error, _) => error.extended_code,
        other => panic!("{other}"),
    };
    let one = |connection: &Connection, sql: &str, params: &[i64]| {
        let mut statement = connection.prepare(sql)?;
        let mut rows = statement.query(rusqlite::params_from_iter(params))?;
        while rows.next()?.is_some() {}
        drop(rows);
        Ok(if sql.contains("INDEX") { 0 } else { connection.changes() })
    };
    let result: rusqlite::Result<u64> = match step {
        Step::Execute(sql, params) | Step::Query(sql, params) => one(connection, sql, params),
        Step::Many(sql, rows) | Step::ManyWithRows(sql, rows) => (|| {
            let transaction = connection.transaction()?;
            let changes = rows.iter().map(|row| one(&transaction, sql, row)).sum::<rusqlite::Result<u64>>()?;
            transaction.commit()?;
            Ok(changes)
        })(),
        Step::Batch(statements) => (|| {
            let transaction = connection.transaction()?;
            let each = statements.iter().map(|(sql, params)| one(&transaction, sql, params));
            let changes = each.sum::<rusqlite::Result<u64>>()?;
            transaction.commit()?;
            Ok(changes)
        })(),
    };
    result.map_err(code)
}

fn changes(outcome: &Result<Outcome, Error>) -> Result<u64, i32> {
    match outcome {
        Ok(Outcome::Executed(executed)) => Ok(executed.changes),
        Ok(Outcome::Changes(changes)) => Ok(*changes),
        Ok(Outcome::Batch(results)) => Ok(results.iter().map(|result| result.changes).sum()),
        // A query answers rows; how many it changed is not told.
        Ok(Outcome::Rows(_)) => Ok(u64::MAX),
        Err(error) => Err(error.sqlite_code().unwrap_or_else(|| panic!("{error}"))),
    }
}

/// The rows of every table.
type Content = Vec<(&'static str, Vec<Vec<Value>>)>;

fn content(connection: &Connection) -> Content {
    let rows = |table: &str| {
        let order = if table == "word" { "k" } else { "rowid" };
        let rowid = if table == "word" { "" } else { "rowid, " };
        let mut statement = connection.prepare(&format!("SELECT {rowid}* FROM {table} ORDER BY {order}")).unwrap();
        let columns = statement.column_count();
        let rows = statement.query_map([], |row| (0..columns).map(|column| row.get(column)).collect()).unwrap();
        rows.map(Result::unwrap).collect()
    };
    TABLES.iter().map(|table| (*table, rows(table))).collect()
}

/// Returns the content, read with plain SQLite where the place has a file.
async fn content_of(db: &Database, place: &Place) -> Content {
    match place.file() {
        Some(file) => content(&file.plain()),
        None => db.read_with(|c| Ok::<_, Error>(content(c))).await.unwrap(),
    }
}

/// Submits all steps while a transaction holds the writer, so that they are in the queue together and in order.
async fn all_at_once(db: &Database, steps: &[Step]) -> Vec<Result<Outcome, Error>> {
    let blocker = db.begin().await.unwrap();
    let mut calls = futures_util::stream::FuturesOrdered::new();
    for step in steps {
        calls.push_back(perform(db.clone(), step.clone()));
    }
    let calls = async {
        use futures_util::StreamExt;
        calls.collect::<Vec<_>>().await
    };
    let (outcomes, ()) = futures_util::join!(calls, async {
        while db.stats().writes_waiting < steps.len() {
            tokio::task::yield_now().await;
        }
        blocker.rollback().await.unwrap();
    });
    outcomes
}

/// A limit on the length of values, so that an UPDATE can fail at a later row without calling a function. If it calls
/// one, SQLite keeps a statement journal and undoes the rows before.
const LONGEST: i32 = 100_000;

async fn limit_length(db: &Database) {
    let limited = db.write_with(|tx| tx.set_limit(Limit::SQLITE_LIMIT_LENGTH, LONGEST).map_err(Error::from));
    limited.await.unwrap();
}

#[derive(Default, Debug)]
struct Totals {
    groups: u64,
    members: u64,
}

async fn compare(place: fn() -> Place, seed: u64, steps: usize, totals: &mut Totals) {
    let (grouped_place, single_place, plain_file) = (place(), place(), TestFile::new());
    let grouped = grouped(grouped_place.options()).open().await.unwrap();
    let single = single_place.options().tuning(|t| t.no_group()).open().await.unwrap();
    let mut plain = plain_file.plain();
    plain.pragma_update(None, "foreign_keys", true).unwrap();
    grouped.execute_script(SCHEMA).await.unwrap();
    single.execute_script(SCHEMA).await.unwrap();
    plain.execute_batch(SCHEMA).unwrap();
    limit_length(&grouped).await;
    limit_length(&single).await;
    plain.set_limit(Limit::SQLITE_LIMIT_LENGTH, LONGEST).unwrap();
    let mut random = StdRng::seed_from_u64(seed);
    // The first round teaches the texts; only what is known to be short and groupable is grouped.
    for round in 0..4 {
        let count = if round == 0 { EXECUTE.len() + QUERY.len() } else { random.random_range(1..steps) };
        let list: Vec<Step> = (0..count)
            .map(|at| match round {
                0 if at < EXECUTE.len() => Step::Execute(EXECUTE[at], random_params(&mut random, EXECUTE[at])),
                0 => {
                    let sql = QUERY[at - EXECUTE.len()];
                    Step::Query(sql, random_params(&mut random, sql))
                }
                _ => random_step(&mut random),
            })
            .collect();
        let together = all_at_once(&grouped, &list).await;
        for (at, (step, outcome)) in list.iter().zip(&together).enumerate() {
            let place = format!("seed {seed}, round {round}, step {at}: {step:?}");
            let alone = perform(single.clone(), step.clone()).await;
            assert_eq!(outcome, &alone, "{place}");
            let (ours, plainly) = (changes(outcome), perform_plainly(&mut plain, step));
            if ours != Ok(u64::MAX) {
                assert_eq!(ours, plainly, "{place}");
            }
        }
        let expected = content(&plain);
        assert_eq!(content_of(&grouped, &grouped_place).await, expected, "seed {seed}, round {round}");
        assert_eq!(content_of(&single, &single_place).await, expected, "seed {seed}, round {round}");
    }
    let stats = grouped.stats();
    totals.groups += stats.groups;
    totals.members += stats.members;
    assert_eq!(single.stats().groups, 0);
    grouped.close().await.unwrap();
    single.close().await.unwrap();
}

/// Each list has its own runtime, so that a list that hangs can be identified.
fn compare_lists(place: fn() -> Place) {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    if let Some(seed) = number("FLATWATER_SEED") {
        return run(compare(place, seed, 60, &mut Totals::default()));
    }
    let first: u64 = rand::random();
    let (mut totals, lists) = (Totals::default(), number("FLATWATER_LISTS").unwrap_or(40));
    // A text that takes long on a busy machine is no member.
    for list in 0.. {
        let enough = totals.groups > 20 && totals.members > 3 * totals.groups;
        if list >= lists && enough {
            return;
        }
        assert!(list < lists + 400, "hardly anything was grouped: {totals:?}");
        run(compare(place, first.wrapping_add(list), 60, &mut totals));
    }
}

#[test]
fn grouped_writes_do_what_the_same_writes_do_one_by_one() {
    compare_lists(Place::on_file);
}

#[test]
fn grouped_writes_in_memory_do_what_the_same_writes_do_one_by_one() {
    compare_lists(Place::in_memory);
}

/// The two statements that SQLite itself does not undo inside a transaction.
async fn a_member_that_fails_half_way_leaves_nothing_behind(place: &Place) {
    let db = grouped(place.options()).open().await.unwrap();
    db.execute_script(
        "CREATE TABLE big (a INTEGER PRIMARY KEY, b); 
         INSERT INTO big VALUES (1, 'x'), (2, 'x'), (3, printf('%60000d', 1));
         CREATE TABLE typed (a INT) STRICT; CREATE TABLE source (a); INSERT INTO source VALUES (1), ('x');
         CREATE TABLE other (a)",
    )
    .await
    .unwrap();
    limit_length(&db).await;
    let too_big = "UPDATE big SET b = b || b";
    let wrong_type = "INSERT INTO typed SELECT a FROM source";
    let step = |sql| Step::Execute(sql, Vec::new());
    let fine = "INSERT INTO other VALUES (1)";
    let steps = [step(fine), step(too_big), step(fine), step(wrong_type), step(fine)];
    // Until all five were one group, which they are once it is known that they are short, and that two of them fail.
    let mut together = 0;
    while together < 2 {
        let before = db.stats().members;
        let outcomes = all_at_once(&db, &steps).await;
        let codes: Vec<_> = outcomes.iter().map(|o| o.as_ref().err().and_then(Error::sqlite_code)).collect();
        assert_eq!(codes, [None, Some(18), None, Some(3091), None]);
        let left: Option<i64> = db
            .query_optional_value("SELECT count(*) FILTER (WHERE b = 'xx') + (SELECT count(*) FROM typed) FROM big", ())
            .await
            .unwrap();
        assert_eq!(left, Some(0));
        together += i32::from(db.stats().members - before == 5);
    }
}

async fn a_group_never_spans_two_files(place: &Place) {
    let other = TestFile::new();
    let db = place.options().tuning(|t| t.attach("other", other.path())).open().await.unwrap();
    db.execute_script("CREATE TABLE t (a); CREATE TABLE other.o (a)").await.unwrap();
    let steps: Vec<_> = (0..10)
        .map(|n| if n % 2 == 0 { "INSERT INTO t VALUES (1)" } else { "INSERT INTO other.o VALUES (1)" })
        .map(|sql| Step::Execute(sql, Vec::new()))
        .collect();
    for _ in 0..3 {
        for outcome in all_at_once(&db, &steps).await {
            outcome.unwrap();
        }
    }
    assert_eq!(db.stats().groups, 0, "each write to the other file stands between two of ours");
    let both: Option<i64> = db
        .query_optional_value("SELECT (SELECT count(*) FROM t) * 100 + (SELECT count(*) FROM other.o)", ())
        .await
        .unwrap();
    assert_eq!(both, Some(1515));
    db.close().await.unwrap();
}
