//! The pairs: what is measured, on both sides.

use std::time::{Duration, Instant};

use flatwater::Durability;
use flatwater::rusqlite::params;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::workload::{INSERT, QUERY, flatwater, median, p50_us, raw, seconds, values};

const TASKS: usize = 100;
const ROWS: i64 = 10_000;

/// One figure of one side in one round.
type Side<'a> = Box<dyn Fn() -> f64 + 'a>;

pub(crate) fn all(runtime: &Runtime, rounds: usize) -> Vec<Value> {
    vec![
        pair(
            "100_tasks_insert_normal",
            "rows/s",
            "at least 2.5",
            rounds,
            Box::new(|| raw_inserts(Durability::Normal, Duration::from_secs(1))),
            Box::new(|| concurrent_inserts(runtime, Durability::Normal, Duration::from_secs(1))),
        ),
        pair(
            "100_tasks_insert_full",
            "rows/s",
            "at least 20",
            rounds,
            Box::new(|| raw_inserts(Durability::Full, Duration::from_secs(1))),
            Box::new(|| concurrent_inserts(runtime, Durability::Full, Duration::from_secs(1))),
        ),
        pair(
            "execute_many_10k",
            "s",
            "at most 1.15",
            rounds,
            Box::new(raw_many),
            Box::new(|| runtime.block_on(many())),
        ),
        pair("query_10k_x_6", "s", "at most 0.9", rounds, Box::new(raw_query), Box::new(|| runtime.block_on(query()))),
        pair(
            "awaited_insert_p50",
            "us",
            "at most 25 us more",
            rounds,
            Box::new(raw_latency),
            Box::new(|| runtime.block_on(latency())),
        ),
    ]
}

fn pair(name: &str, unit: &str, budget: &str, rounds: usize, raw: Side<'_>, flatwater: Side<'_>) -> Value {
    let (mut floor, mut ours) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        eprintln!("{name}: round {} of {rounds}", round + 1);
        if round % 2 == 0 {
            floor.push(raw());
            ours.push(flatwater());
        } else {
            ours.push(flatwater());
            floor.push(raw());
        }
    }
    let (floor, ours) = (median(floor), median(ours));
    json!({ "pair": name, "unit": unit, "raw": floor, "flatwater": ours, "ratio": ours / floor,
            "difference": ours - floor, "budget": budget })
}

fn raw_inserts(durability: Durability, time: Duration) -> f64 {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let connection = raw(&directory.path().join("raw.db"), durability);
    let began = Instant::now();
    let mut rows = 0;
    while began.elapsed() < time {
        let v = values(rows);
        let mut insert = connection.prepare_cached(INSERT).expect("the statement is valid");
        insert.execute(params![v.0, v.1, v.2, v.3, v.4]).expect("the row fits");
        rows += 1;
    }
    rows as f64 / began.elapsed().as_secs_f64()
}

fn concurrent_inserts(runtime: &Runtime, durability: Durability, time: Duration) -> f64 {
    let directory = tempfile::tempdir().expect("a directory can be made");
    runtime.block_on(async {
        let db = flatwater(&directory.path().join("fw.db"), durability).await;
        let began = Instant::now();
        let tasks: Vec<_> = (0..TASKS)
            .map(|task| {
                let db = db.clone();
                tokio::spawn(async move {
                    let mut rows = 0;
                    while began.elapsed() < time {
                        db.execute(INSERT, values((task as i64) << 32 | rows)).await.expect("the row fits");
                        rows += 1;
                    }
                    rows
                })
            })
            .collect();
        let mut rows = 0;
        for task in tasks {
            rows += task.await.expect("no task panics");
        }
        let rate = rows as f64 / began.elapsed().as_secs_f64();
        let found: Option<i64> = db.query_value("SELECT count(*) FROM t", ()).await.expect("it can be counted");
        assert_eq!(found, Some(rows), "every acknowledged row is there");
        if std::env::var_os("FLATWATER_STATS").is_some() {
            eprintln!("{:#?}", db.stats());
        }
        db.close().await.expect("it can be closed");
        rate
    })
}

fn raw_many() -> f64 {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let mut connection = raw(&directory.path().join("raw.db"), Durability::Normal);
    let rows: Vec<_> = (0..ROWS).map(values).collect();
    seconds(|| {
        let transaction = connection.transaction().expect("nothing else is open");
        for v in rows {
            let mut insert = transaction.prepare_cached(INSERT).expect("the statement is valid");
            insert.execute(params![v.0, v.1, v.2, v.3, v.4]).expect("the row fits");
        }
        transaction.commit().expect("it commits");
    })
}

async fn many() -> f64 {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let db = flatwater(&directory.path().join("fw.db"), Durability::Normal).await;
    let rows: Vec<_> = (0..ROWS).map(values).collect();
    let began = Instant::now();
    db.execute_many(INSERT, rows).await.expect("the rows fit");
    let took = began.elapsed().as_secs_f64();
    db.close().await.expect("it can be closed");
    took
}

fn raw_query() -> f64 {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let connection = raw(&directory.path().join("raw.db"), Durability::Normal);
    for n in 0..ROWS {
        let v = values(n);
        connection.execute(INSERT, params![v.0, v.1, v.2, v.3, v.4]).expect("the row fits");
    }
    let once = || {
        seconds(|| {
            let mut select = connection.prepare_cached(QUERY).expect("the statement is valid");
            let rows = select.query_map([], |row| {
                Ok::<(i64, String, i64, f64, String, i64), _>((
                    row.get(0)?,
                    row.get(1)?,
                    row.get(2)?,
                    row.get(3)?,
                    row.get(4)?,
                    row.get(5)?,
                ))
            });
            let rows: Vec<_> = rows.expect("it runs").collect::<Result<_, _>>().expect("the rows are as described");
            assert_eq!(rows.len(), ROWS as usize);
            rows
        })
    };
    median((0..50).map(|_| once()).collect())
}

async fn query() -> f64 {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let db = flatwater(&directory.path().join("fw.db"), Durability::Normal).await;
    db.execute_many(INSERT, (0..ROWS).map(values)).await.expect("the rows fit");
    let mut took = Vec::new();
    for _ in 0..50 {
        let began = Instant::now();
        let rows = db.query(QUERY, ()).await.expect("it runs");
        assert_eq!(rows.len(), ROWS as usize);
        drop(rows);
        took.push(began.elapsed().as_secs_f64());
    }
    db.close().await.expect("it can be closed");
    median(took)
}

const SINGLE: i64 = 5_000;

fn raw_latency() -> f64 {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let connection = raw(&directory.path().join("raw.db"), Durability::Normal);
    let one = |n| {
        let began = Instant::now();
        let v = values(n);
        let mut insert = connection.prepare_cached(INSERT).expect("the statement is valid");
        insert.execute(params![v.0, v.1, v.2, v.3, v.4]).expect("the row fits");
        began.elapsed()
    };
    p50_us((0..SINGLE).map(one).collect())
}

async fn latency() -> f64 {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let db = flatwater(&directory.path().join("fw.db"), Durability::Normal).await;
    let mut latencies = Vec::new();
    for n in 0..SINGLE {
        let began = Instant::now();
        db.execute(INSERT, values(n)).await.expect("the row fits");
        latencies.push(began.elapsed());
    }
    db.close().await.expect("it can be closed");
    p50_us(latencies)
}
