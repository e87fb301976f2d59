//! Texts that SQLite plans by the values that are bound: once that is learnt, they run on their caller's thread, whatever is
//! bound, and their results are those of plain SQLite.

use flatwater::rusqlite::{self, types::Value};
use flatwater::{Database, Params, named, params};
use futures_util::TryStreamExt;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::place::{Place, in_both_places};
use crate::support::{run, unhurried};

in_both_places!(
    a_read_runs_inline_with_any_values_once_they_were_seen,
    so_does_one_in_a_transaction,
    so_does_one_on_a_connection_of_a_caller,
    so_does_a_write,
    so_does_one_of_a_batch_and_with_names_and_prepared,
    a_new_schema_is_learnt_anew,
);

const SCHEMA: &str = "
    CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, b INTEGER, name TEXT);
    CREATE INDEX t_a ON t (a, b);
    CREATE TABLE log (a);
    WITH RECURSIVE n (x) AS (VALUES (0) UNION ALL SELECT x + 1 FROM n WHERE x < 99)
    INSERT INTO t SELECT x, x % 5, x, 'name' || x FROM n";

/// The values of a call, and the sum of the first column that it returns.
type Case = (&'static [i64], i64);

const TEXTS: &[(&str, &[Case])] = &[
    ("SELECT b FROM t WHERE a = ? ORDER BY b DESC LIMIT 3", &[(&[1], 273), (&[2], 276), (&[1], 273), (&[0], 270)]),
    ("SELECT b FROM t ORDER BY id LIMIT ?", &[(&[10], 45), (&[20], 190), (&[10], 45), (&[0], 0)]),
    ("SELECT b FROM t WHERE a = ? ORDER BY b LIMIT ? OFFSET ?", &[(&[1, 2, 0], 7), (&[2, 2, 1], 19), (&[1, 2, 1], 17)]),
];

async fn open(place: &Place) -> Database {
    let db = unhurried(place.options()).open().await.unwrap();
    db.execute_script(SCHEMA).await.unwrap();
    db
}

fn bound(values: &[i64]) -> Params {
    Params::positional(values).unwrap()
}

fn inline(db: &Database) -> u64 {
    let stats = db.stats().inline;
    stats.reads + stats.writes
}

/// Repeats `round` until nothing is prepared again in it, and all of its calls run inline, of which there are so many. Then
/// demands that nothing is ever prepared again, and of reads that all run inline: for a write, or for a live query after it, the
/// writer may be busy now and then. In memory no statement runs inline: there it only repeats.
async fn always_inline(db: &Database, calls: u64, what: &str, round: impl AsyncFnMut()) {
    learnt(db, calls, what, round, true).await;
}

async fn learnt(db: &Database, calls: u64, what: &str, mut round: impl AsyncFnMut(), always: bool) {
    if db.stats().journal == "memory" {
        for _ in 0..20 {
            round().await;
        }
        return;
    }
    let mut all_ran = async || {
        let before = inline(db);
        round().await;
        inline(db) - before == calls
    };
    for time in 0.. {
        assert!(time < 100, "it is never learnt: {what}");
        if all_ran().await {
            break;
        }
    }
    let before = db.stats().prepared_again;
    for _ in 0..20 {
        assert!(all_ran().await || !always, "{what}");
    }
    assert_eq!(db.stats().prepared_again, before, "{what}");
}

fn sum(rows: &flatwater::Rows) -> i64 {
    rows.iter().map(|row| row.get::<i64>(0).unwrap()).sum()
}

async fn a_read_runs_inline_with_any_values_once_they_were_seen(place: &Place) {
    let db = open(place).await;
    for (sql, calls) in TEXTS {
        always_inline(&db, calls.len() as u64, sql, async || {
            for (values, expected) in *calls {
                assert_eq!(sum(&db.query(*sql, bound(values)).await.unwrap()), *expected, "{sql} {values:?}");
            }
        })
        .await;
    }
    let text = "SELECT b FROM t WHERE a = ? AND name >= ? ORDER BY b LIMIT ?";
    always_inline(&db, 4, text, async || {
        for (a, name, limit) in [(1, "name", 2), (2, "nam", 2), (1, "name", 3), (3, "z", 2)] {
            let rows = db.query(text, (a, name, limit)).await.unwrap();
            assert_eq!(rows.len(), if name == "z" { 0 } else { limit });
        }
    })
    .await;
}

async fn so_does_one_in_a_transaction(place: &Place) {
    let db = open(place).await;
    for (sql, calls) in TEXTS {
        // Begin and commit are counted too.
        let round = async || {
            db.transaction(async |tx| {
                for (values, expected) in *calls {
                    assert_eq!(sum(&tx.query(*sql, bound(values)).await?), *expected, "{sql} {values:?}");
                }
                Ok::<_, flatwater::Error>(())
            })
            .await
            .unwrap();
        };
        learnt(&db, calls.len() as u64 + 2, sql, round, false).await;
    }
}

async fn so_does_one_on_a_connection_of_a_caller(place: &Place) {
    let db = open(place).await;
    let own = db.connection();
    for (sql, calls) in TEXTS {
        always_inline(&db, calls.len() as u64, sql, async || {
            for (values, expected) in *calls {
                assert_eq!(sum(&own.query(*sql, bound(values)).await.unwrap()), *expected, "{sql} {values:?}");
            }
        })
        .await;
    }
    own.close().await.unwrap();
}

async fn so_does_a_write(place: &Place) {
    let db = open(place).await;
    let text = "UPDATE t SET name = ? WHERE id = (SELECT id FROM t WHERE a = ? ORDER BY b LIMIT ?)";
    let mut changes = 0;
    let round = async || {
        for (a, limit) in [(1, 1), (2, 1), (1, 0), (0, 1)] {
            changes += 1;
            let changed = db.execute(text, (format!("new{changes}"), a, limit)).await.unwrap().changes;
            assert_eq!(changed, u64::from(limit == 1));
        }
    };
    learnt(&db, 4, text, round, false).await;
    // What asks for the changes of the statement before is not explained.
    let asks = "INSERT INTO log SELECT changes() FROM t WHERE a = ? ORDER BY b LIMIT ?";
    db.transaction(async |tx| {
        for limit in [1, 2, 1, 2, 1, 2, 1, 2] {
            tx.execute("UPDATE t SET b = b WHERE a = 3", ()).await?;
            tx.execute(asks, (limit, limit)).await?;
        }
        Ok::<_, flatwater::Error>(())
    })
    .await
    .unwrap();
    assert_eq!(sum(&db.query("SELECT DISTINCT a FROM log", ()).await.unwrap()), 20);
}

async fn so_does_one_of_a_batch_and_with_names_and_prepared(place: &Place) {
    let db = open(place).await;
    let text = "SELECT b FROM t WHERE a = :a ORDER BY b LIMIT $n";
    let prepared = db.prepare(text).await.unwrap();
    always_inline(&db, 4, text, async || {
        for (a, n, expected) in [(1, 2, 7), (2, 3, 21)] {
            assert_eq!(sum(&db.query(text, named! { "$n": n, ":a": a }).await.unwrap()), expected);
            assert_eq!(sum(&prepared.query(named! { "a": a, "n": n }).await.unwrap()), expected);
        }
    })
    .await;
    for limit in [1, 2, 1, 2, 3, 3, 3] {
        let rows: Vec<flatwater::Row> = db.stream(text, named! { "a": 1, "n": limit }).try_collect().await.unwrap();
        assert_eq!(rows.len(), limit);
        assert_eq!(db.query_json(text, named! { "a": 1, "n": limit }).await.unwrap().matches("\"b\"").count(), limit);
        let results =
            db.batch([(text, named! { "a": 1, "n": limit }), (text, named! { "a": 2, "n": 0 })]).await.unwrap();
        assert_eq!(results.iter().map(|result| result.rows.as_ref().unwrap().len()).collect::<Vec<_>>(), [limit, 0]);
    }
    let many = "INSERT INTO log SELECT b FROM t WHERE a = ? ORDER BY b LIMIT ?";
    for _ in 0..4 {
        assert_eq!(db.execute_many(many, [(1, 1), (2, 2), (1, 3)]).await.unwrap(), 6);
        assert_eq!(db.execute(many, (1, 4)).await.unwrap().changes, 4);
    }
}

async fn a_new_schema_is_learnt_anew(place: &Place) {
    let db = open(place).await;
    let (sql, calls) = TEXTS[2];
    let all = "SELECT * FROM t WHERE a = ? ORDER BY b LIMIT ?";
    for (change, columns) in [
        ("SELECT 1", 4),
        ("ALTER TABLE t ADD COLUMN more DEFAULT 1", 5),
        ("DROP INDEX t_a", 5),
        ("CREATE INDEX t_of_one ON t (b) WHERE a = 1", 5),
        ("ALTER TABLE t DROP COLUMN more", 4),
        ("CREATE INDEX t_a ON t (a, b)", 4),
    ] {
        match (place.file(), change) {
            (_, "SELECT 1") => {}
            // By another program.
            (Some(file), _) if columns == 5 => file.plain().execute_batch(change).unwrap(),
            _ => db.execute_script(change).await.unwrap(),
        }
        let round = async || {
            for (values, expected) in calls {
                assert_eq!(sum(&db.query(sql, bound(values)).await.unwrap()), *expected, "{change}");
                let rows = db.query(all, (values[0], values[1])).await.unwrap();
                assert!(rows.iter().all(|row| row.columns().len() == columns), "{change}");
            }
        };
        let sorts =
            !["SELECT 1", "ALTER TABLE t ADD COLUMN more DEFAULT 1", "CREATE INDEX t_a ON t (a, b)"].contains(&change);
        if sorts {
            for _ in 0..20 {
                round().await;
            }
        } else {
            always_inline(&db, 2 * calls.len() as u64, change, round).await;
        }
    }
}

#[test]
fn a_snapshot_and_a_live_query_run_them_too() {
    let place = Place::on_file();
    run(async {
        let db = open(&place).await;
        let (sql, calls) = TEXTS[2];
        always_inline(&db, calls.len() as u64 + 1, sql, async || {
            let snapshot = db.snapshot().await.unwrap();
            for (values, expected) in calls {
                assert_eq!(sum(&snapshot.query(sql, bound(values)).await.unwrap()), *expected);
            }
            drop(snapshot);
            crate::support::until(|| db.stats().readers_held == 0).await;
        })
        .await;
        let mut live = db.live(sql, (1, 2, 0));
        assert_eq!(sum(&live.next().await.unwrap().unwrap()), 7);
        db.execute("UPDATE t SET b = -1 WHERE id = 1", ()).await.unwrap();
        assert_eq!(sum(&live.next().await.unwrap().unwrap()), 5);
        let mut change = async |b: i64, expected: i64| {
            db.execute("UPDATE t SET b = ? WHERE id = 1", (b,)).await.unwrap();
            while sum(&live.next().await.unwrap().unwrap()) != expected {}
        };
        for _ in 0..10 {
            change(0, 6).await;
            change(-1, 5).await;
        }
        let before = db.stats().prepared_again;
        for _ in 0..10 {
            change(0, 6).await;
            change(-1, 5).await;
        }
        assert_eq!(db.stats().prepared_again, before);
    });
}

#[test]
fn a_pattern_is_planned_by_its_value_and_others_are_not() {
    let place = Place::on_file();
    run(async {
        let db = open(&place).await;
        db.execute_script("CREATE INDEX t_name ON t (name COLLATE NOCASE)").await.unwrap();
        let text = "SELECT count(*) FROM t WHERE name LIKE ?";
        for _ in 0..5 {
            for (pattern, expected) in [("%9", 10), ("name1%", 11), ("NAME9_", 10), ("", 0), ("name7", 1)] {
                assert_eq!(db.query_value::<i64>(text, (pattern,)).await.unwrap(), expected, "{pattern}");
            }
        }
        // More patterns than are kept.
        for number in 0..100 {
            assert_eq!(db.query_value::<i64>(text, (format!("name{number}"),)).await.unwrap(), 1);
        }
        for value in [Value::Null, Value::Integer(9), Value::Real(0.5), Value::Blob(b"name9".to_vec())] {
            let expected = i64::from(matches!(value, Value::Blob(_)));
            assert_eq!(db.query_value::<i64>(text, params![value.clone()]).await.unwrap(), expected, "{value:?}");
        }
    });
}

#[test]
fn what_is_no_limit_is_the_same_error_each_time() {
    let place = Place::on_file();
    run(async {
        let db = open(&place).await;
        let text = "SELECT b FROM t ORDER BY id LIMIT ?";
        for _ in 0..6 {
            assert_eq!(db.query(text, (2,)).await.unwrap().len(), 2);
            assert_eq!(db.query(text, ("3",)).await.unwrap().len(), 3);
            assert_eq!(db.query(text, (-1,)).await.unwrap().len(), 100);
            let error = db.query(text, ("many",)).await.unwrap_err();
            assert!(error.message().contains("datatype mismatch"), "{error}");
        }
    });
}

/// Reads, each with how many of its values are small numbers; the others are texts.
const READS: &[(&str, &[bool])] = &[
    ("SELECT id, b FROM t WHERE a = ? ORDER BY id", &[true]),
    ("SELECT id FROM t WHERE a = ? AND b = ? ORDER BY id", &[true, true]),
    ("SELECT id FROM t WHERE a = ? ORDER BY id DESC LIMIT ?", &[true, true]),
    ("SELECT id FROM t WHERE a IS ? OR b = ? ORDER BY id LIMIT ? OFFSET ?", &[true, true, true, true]),
    ("SELECT count(*) FROM t WHERE name LIKE ?", &[false]),
    ("SELECT id FROM t WHERE name GLOB ? AND a = ? ORDER BY id", &[false, true]),
    ("SELECT id FROM t WHERE name = ? ORDER BY id LIMIT ?", &[false, true]),
    (
        "SELECT x.id, y.id FROM t x JOIN t y ON y.b = x.a WHERE x.a = ? AND y.a = ? ORDER BY 1, 2 LIMIT ?",
        &[true, true, true],
    ),
    ("SELECT a, count(*) FROM t WHERE b > ? GROUP BY a ORDER BY a LIMIT ?", &[true, true]),
    ("SELECT id FROM t WHERE a = ? UNION ALL SELECT id FROM t WHERE b = ? ORDER BY 1 LIMIT ?", &[true, true, true]),
    ("SELECT (SELECT name FROM t WHERE a = ? ORDER BY id LIMIT ?), ? + 1", &[true, true, true]),
];

const WRITES: &[(&str, &[bool])] = &[
    ("UPDATE t SET b = ? WHERE id = (SELECT id FROM t WHERE a = ? ORDER BY id LIMIT ?)", &[true, true, true]),
    ("DELETE FROM log WHERE rowid IN (SELECT rowid FROM log WHERE a = ? ORDER BY rowid LIMIT ?)", &[true, true]),
    ("INSERT INTO log SELECT b FROM t WHERE a = ? ORDER BY id LIMIT ?", &[true, true]),
    ("UPDATE t SET name = ? WHERE name LIKE ? AND a = ?", &[false, false, true]),
    ("UPDATE t SET a = ? FROM log WHERE log.a = t.b AND t.a = ?", &[true, true]),
];

const CHANGES: &[&str] = &[
    "CREATE INDEX IF NOT EXISTS t_b ON t (b)",
    "DROP INDEX IF EXISTS t_b",
    "CREATE INDEX IF NOT EXISTS t_one ON t (id) WHERE a = 1",
    "DROP INDEX IF EXISTS t_one",
    "CREATE INDEX IF NOT EXISTS t_name ON t (name COLLATE NOCASE)",
    "DROP INDEX IF EXISTS t_name",
    "ANALYZE",
];

fn random_values(random: &mut StdRng, kinds: &[bool]) -> Vec<Value> {
    let value = |is_number: &bool| match (random.random_range(0..30), *is_number) {
        (0, _) => Value::Null,
        (1, _) => Value::Real(1.5),
        (2, _) => Value::Blob(b"name1".to_vec()),
        (3, true) => Value::Text("1".into()),
        (3, false) | (_, true) => Value::Integer(random.random_range(-1..5)),
        (at, false) => Value::Text(["name1%", "%9", "NAME2_", "name1*", "name7", "", "x"][at % 7].into()),
    };
    kinds.iter().map(value).collect()
}

/// Lists of random calls, beside plain SQLite with a file of its own: on a database, in transactions, on a connection of a caller.
#[test]
fn any_values_have_the_results_of_plain_sqlite() {
    let seed = std::env::var("FLATWATER_SEED").ok().and_then(|text| text.parse().ok());
    let (first, lists) = (seed.unwrap_or_else(rand::random::<u64>), if seed.is_some() { 1 } else { 6 });
    for list in 0..lists {
        let seed = first.wrapping_add(list);
        run(beside_sqlite(seed));
    }
}

async fn beside_sqlite(seed: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    let (place, plain) = (Place::on_file(), rusqlite::Connection::open_in_memory().unwrap());
    let db = open(&place).await;
    plain.execute_batch(SCHEMA).unwrap();
    let own = db.connection();
    for at in 0..600 {
        if random.random_range(0..60) == 0 {
            let change = CHANGES[random.random_range(0..CHANGES.len())];
            db.execute_script(change).await.unwrap();
            plain.execute_batch(change).unwrap();
            continue;
        }
        let writes = random.random_range(0..5) == 0;
        let (sql, kinds) = if writes {
            WRITES[random.random_range(0..WRITES.len())]
        } else {
            READS[random.random_range(0..READS.len())]
        };
        let values = random_values(&mut random, kinds);
        let told = format!("seed {seed}, call {at}: {sql} {values:?}");
        let params = || Params::positional(values.clone());
        let place = random.random_range(0..3);
        let ours = match (writes, place) {
            (true, 0) => db.execute(sql, params()).await.map(|done| vec![vec![Value::Integer(done.changes as i64)]]),
            (true, 1) => own.execute(sql, params()).await.map(|done| vec![vec![Value::Integer(done.changes as i64)]]),
            (true, _) => db
                .transaction(async |tx| tx.execute(sql, params()).await)
                .await
                .map(|done| vec![vec![Value::Integer(done.changes as i64)]]),
            (false, 0) => db.query(sql, params()).await.map(|rows| all(&rows)),
            (false, 1) => own.query(sql, params()).await.map(|rows| all(&rows)),
            (false, _) => db.transaction(async |tx| tx.query(sql, params()).await).await.map(|rows| all(&rows)),
        };
        let theirs = plain.prepare_cached(sql).unwrap().in_plain(&values, writes);
        match (ours, theirs) {
            (Ok(ours), Ok(theirs)) => assert_eq!(ours, theirs, "{told}"),
            (Err(ours), Err(theirs)) => {
                assert!(theirs.to_string().contains(ours.message()), "{told}: {ours}, {theirs}")
            }
            (ours, theirs) => panic!("{told}: {ours:?}, {theirs:?}"),
        }
    }
    let all_rows = "SELECT * FROM t ORDER BY id";
    assert_eq!(
        all(&db.query(all_rows, ()).await.unwrap()),
        plain.prepare(all_rows).unwrap().in_plain(&[], false).unwrap()
    );
    own.close().await.unwrap();
}

fn all(rows: &flatwater::Rows) -> Vec<Vec<Value>> {
    rows.iter().map(|row| (0..row.len()).map(|at| row.get::<Value>(at).unwrap()).collect()).collect()
}

trait InPlain {
    /// Returns all rows, or the number of rows that were changed.
    fn in_plain(&mut self, values: &[Value], writes: bool) -> rusqlite::Result<Vec<Vec<Value>>>;
}

impl InPlain for rusqlite::Statement<'_> {
    fn in_plain(&mut self, values: &[Value], writes: bool) -> rusqlite::Result<Vec<Vec<Value>>> {
        let params = rusqlite::params_from_iter(values);
        if writes {
            return self.execute(params).map(|changes| vec![vec![Value::Integer(changes as i64)]]);
        }
        let columns = self.column_count();
        self.query_map(params, |row| (0..columns).map(|at| row.get(at)).collect())?.collect()
    }
}
