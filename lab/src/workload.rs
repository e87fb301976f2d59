//! What both sides of a pair do: the same statements, the same values, the same settings.

use std::path::Path;
use std::time::{Duration, Instant};

use flatwater::rusqlite::Connection;
use flatwater::{Database, Durability, Options};

pub(crate) const SCHEMA: &str =
    "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, size INTEGER, share REAL, note TEXT, day INTEGER)";
pub(crate) const INSERT: &str = "INSERT INTO t (name, size, share, note, day) VALUES (?, ?, ?, ?, ?)";
pub(crate) const QUERY: &str = "SELECT id, name, size, share, note, day FROM t";

pub(crate) type Values = (String, i64, f64, &'static str, i64);

pub(crate) fn values(n: i64) -> Values {
    (format!("name {n}"), n * 7, 0.5, "a note of ordinary length", n % 365)
}

/// The floor: rusqlite with the settings that Flatwater gives its writer.
pub(crate) fn raw(path: &Path, durability: Durability) -> Connection {
    let connection = Connection::open(path).expect("a fresh file can be opened");
    let synchronous = if durability == Durability::Full { "FULL" } else { "NORMAL" };
    connection
        .execute_batch(&format!(
            "PRAGMA journal_mode = wal; PRAGMA synchronous = {synchronous}; PRAGMA foreign_keys = 1;
             PRAGMA temp_store = MEMORY; PRAGMA cache_size = -16384; {SCHEMA}"
        ))
        .expect("the settings are valid");
    connection
}

pub(crate) async fn flatwater(path: &Path, durability: Durability) -> Database {
    let db = Options::new(path).durability(durability).open().await.expect("a fresh file can be opened");
    db.execute(SCHEMA, ()).await.expect("the schema is valid");
    db
}

pub(crate) fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

pub(crate) fn p50_us(mut latencies: Vec<Duration>) -> f64 {
    latencies.sort();
    latencies[latencies.len() / 2].as_secs_f64() * 1e6
}

pub(crate) fn seconds<T>(f: impl FnOnce() -> T) -> f64 {
    let began = Instant::now();
    std::hint::black_box(f());
    began.elapsed().as_secs_f64()
}
