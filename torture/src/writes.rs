//! The ways of writing a number, or a pair: a number and its negative. A `ledger` records what became of them.
//!
//! Runs on the caller's thread. Leaves out: which writes an act makes, and which errors it allows.

use std::path::Path;
use std::pin::Pin;

use flatwater::rusqlite::Connection;
use flatwater::{Database, Error, params};

use crate::finding::Finding;

pub(crate) const INSERT: &str = "INSERT INTO t (n) VALUES (?)";
pub(crate) const COUNT: &str = "SELECT count(*) FROM t WHERE n = ?";
pub(crate) const SCHEMA: &str = "CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY, n INTEGER NOT NULL)";

/// A future that writes one number, or a pair.
pub(crate) type Op = Pin<Box<dyn Future<Output = Result<(), Error>> + Send>>;

/// The number of ways.
pub(crate) const WAYS: u32 = 8;

pub(crate) fn is_pair(way: u32) -> bool {
    way >= 4
}

/// Returns a write in one of the ways.
pub(crate) fn write(db: &Database, way: u32, n: i64) -> Op {
    let db = db.clone();
    match way {
        0 | 1 => Box::pin(async move { db.execute(INSERT, (n,)).await.map(drop) }),
        2 => Box::pin(async move { db.query("INSERT INTO t (n) VALUES (?) RETURNING n", (n,)).await.map(drop) }),
        3 => Box::pin(async move { db.execute_script(format!("INSERT INTO t (n) VALUES ({n})")).await }),
        4 => Box::pin(async move { db.execute_many(INSERT, [(n,), (-n,)]).await.map(drop) }),
        5 => Box::pin(async move { db.batch([(INSERT, params![n]), (INSERT, params![-n])]).await.map(drop) }),
        6 => Box::pin(async move {
            db.write_with(move |tx| tx.execute("INSERT INTO t (n) VALUES (?1), (-?1)", [n]).map_err(Error::from))
                .await
                .map(drop)
        }),
        _ => Box::pin(async move {
            let tx = db.begin().await?;
            tx.execute(INSERT, (n,)).await?;
            tx.execute(INSERT, (-n,)).await?;
            tx.commit().await
        }),
    }
}

/// Creates the table for numbers with plain SQLite.
pub(crate) fn with_table(path: &Path) -> Result<(), Finding> {
    Ok(Connection::open(path)?.execute_batch(SCHEMA)?)
}

/// Returns all numbers, read with plain SQLite.
pub(crate) fn rows(path: &Path) -> Result<Vec<i64>, Finding> {
    let plain = Connection::open(path)?;
    let mut all = plain.prepare("SELECT n FROM t")?;
    Ok(all.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?)
}
