//! random_keys: point queries, then updates of one row, by random primary keys of a database of 2 GB.
//!
//! Nearly each key is in a page that no connection has in its cache, and is read from the file, which lies in the system's.
//! The sample is one query; `update_*` are those of the updates. What a library does with a read that comes from the file
//! shows in the tails: p99 of each is to be at most 1.5 times that of `raw`. Every row that a query answers is checked, and
//! at the end how often rows were updated.

use anyhow::{Result, ensure};

use crate::data;
use crate::lane::{Lane, Trial};
use crate::measure::{Latencies, Measured, Timing};
use crate::peer::Peer;
use crate::record::{Sum, sum_of};
use crate::traffic::Traffic;

const KEYS: &str = "CREATE TABLE keys (id INTEGER PRIMARY KEY, value INTEGER NOT NULL, padding BLOB NOT NULL)";
/// Rows `?1` to below `?2`. Four fill a page.
const FILL: &str = "INSERT INTO keys \
     WITH RECURSIVE i (i) AS (SELECT ?1 UNION ALL SELECT i + 1 FROM i WHERE i + 1 < ?2) \
     SELECT i, i % 1000, zeroblob(1000) FROM i";
/// Not so many that a WAL could not start over in between.
const FILLED_AT_ONCE: usize = 20_000;
pub(super) const FIND: &str = "SELECT id, value FROM keys WHERE id = ?";
const UPDATE: &str = "UPDATE keys SET value = value + 1 WHERE id = ?";
const TOTAL: &str = "SELECT count(*), sum(value) FROM keys";

pub(super) fn lanes<P: Peer>() -> Vec<Lane> {
    let about = "one row by a random primary key of 2 GB, then updates of one row";
    vec![Lane::new("reads", "random_keys", about, "queries", run::<P>)]
}

async fn run<P: Peer>(trial: Trial) -> Result<Measured> {
    let rows = trial.size(2_000_000, 4_000);
    let (queries, updates) = (trial.size(50_000, 500), trial.size(20_000, 200));
    fill::<P>(&trial, rows).await?;
    let peer = trial.open::<P>().await?;
    let mut keys = Traffic::default();
    find(&peer, &mut keys, rows, queries / 50).await?;
    let mut timing = Timing::begin()?;
    timing.latencies = find(&peer, &mut keys, rows, queries).await?;
    let mut measured = timing.end(queries as u64)?;
    update(&peer, &mut keys, rows, updates / 50).await?;
    measured.extra_latencies("update", &update(&peer, &mut keys, rows, updates).await?);
    expect_total(&peer, rows, updates + updates / 50).await?;
    peer.close().await?;
    Ok(measured)
}

/// Makes the database and closes it, so that all of it is in its file and nothing in a cache of the peer's.
pub(super) async fn fill<P: Peer>(trial: &Trial, rows: usize) -> Result<()> {
    let peer = trial.open::<P>().await?;
    peer.execute(KEYS, &[]).await?;
    for first in (0..rows).step_by(FILLED_AT_ONCE) {
        let end = rows.min(first + FILLED_AT_ONCE);
        let written = peer.execute(FILL, &[(first as i64).into(), (end as i64).into()]).await?;
        ensure!(written == (end - first) as u64, "{written} rows were written, from {first} to {end}");
    }
    expect_total(&peer, rows, 0).await?;
    peer.close().await
}

/// What `FIND` answers.
pub(super) fn row_of(key: i64) -> Sum {
    sum_of(&[(key, key % 1000)])
}

async fn find<P: Peer>(peer: &P, keys: &mut Traffic, rows: usize, count: usize) -> Result<Latencies> {
    let mut latencies = Latencies::default();
    for _ in 0..count {
        let key = keys.below(rows) as i64;
        let sum = latencies.query::<P, (i64, i64)>(peer, FIND, &[key.into()]).await?;
        ensure!(sum == row_of(key), "row {key} is not what was written");
    }
    Ok(latencies)
}

async fn update<P: Peer>(peer: &P, keys: &mut Traffic, rows: usize, count: usize) -> Result<Latencies> {
    let mut latencies = Latencies::default();
    for _ in 0..count {
        let key = keys.below(rows) as i64;
        let changed = latencies.time(peer.execute(UPDATE, &[key.into()])).await?;
        ensure!(changed == 1, "{changed} rows have the key {key}");
    }
    Ok(latencies)
}

/// Each update added 1 to a value.
async fn expect_total<P: Peer>(peer: &P, rows: usize, updates: usize) -> Result<()> {
    let filled: usize = (0..rows).map(|row| row % 1000).sum();
    data::expect_rows(peer, TOTAL, &[(rows as i64, (filled + updates) as i64)]).await
}
