//! live_aggregates, live_aggregates_none: writes that leave most aggregates and pages as they are.
//!
//! Of 5,000 rows a sum, a count and the largest value of one category, and the first 20 rows by an index, are live queries. The
//! sample is an UPDATE of the value of a random row, and the next one begins when no query runs any more for it: `runs` is how
//! many did, and `unchanged` how many of them had the result of the run before. Whoever knew the row as it was and as it is
//! could have left these out. `live_aggregates_none` is the same without live queries: the CPU time of both tells what they
//! cost.

use std::time::Duration;

use anyhow::{Result, ensure};

use super::lane;
use super::watch::Watch;
use crate::data;
use crate::lane::{Lane, Trial};
use crate::measure::{Measured, Timing};
use crate::peer::Peer;
use crate::traffic::Traffic;

const INDEX: &str = "CREATE INDEX items_by_value ON items (value)";
const SUM: &str = "SELECT sum(value) FROM items WHERE category = 'category_3'";
const COUNT: &str = "SELECT count(*) FROM items WHERE category = 'category_3' AND value > 100";
const LARGEST: &str = "SELECT max(value) FROM items WHERE category = 'category_3'";
const FIRST: &str = "SELECT id, name, value FROM items ORDER BY value LIMIT 20";
const SET_VALUE: &str = "UPDATE items SET value = ? WHERE id = ?";
const ROWS: usize = 5_000;
/// How often it is looked whether queries run. A tight loop would be part of the CPU time.
const LOOK: Duration = Duration::from_millis(1);

pub(super) fn lanes<P: Peer>() -> Vec<Lane> {
    let about = "an UPDATE of a random row, below three live aggregates and a live page";
    let none_about = "an UPDATE of a random row, without live queries";
    vec![
        lane("live_aggregates", about, "writes", |trial| run::<P>(trial, true)),
        lane("live_aggregates_none", none_about, "writes", |trial| run::<P>(trial, false)),
    ]
}

async fn run<P: Peer>(trial: Trial, are_watched: bool) -> Result<Measured> {
    let (rows, writes) = (trial.size(ROWS, 500), trial.size(2_000, 50));
    let peer = trial.open::<P>().await?;
    data::fill_items(&peer, rows).await?;
    peer.execute(INDEX, &[]).await?;
    let mut watched = Vec::new();
    for sql in [SUM, COUNT, LARGEST, FIRST].into_iter().filter(|_| are_watched) {
        watched.push(Watch::begin(&peer, sql, vec![Vec::new()]).await?);
    }
    let before = peer.live_counts();
    let mut traffic = Traffic::default();
    let mut timing = Timing::begin()?;
    for _ in 0..writes {
        let (value, id) = (traffic.below(rows) as f64 * 1.5 + 0.25, traffic.below(rows) as i64 + 1);
        let changed = timing.time(peer.execute(SET_VALUE, &[value.into(), id.into()])).await?;
        ensure!(changed == 1, "{changed} rows were updated");
        while peer.live_counts().pending > 0 {
            tokio::time::sleep(LOOK).await;
        }
        watched.iter_mut().try_for_each(Watch::take)?;
    }
    let mut measured = timing.end(writes as u64)?;
    let counts = peer.live_counts();
    measured.extra("runs", counts.runs - before.runs);
    measured.extra("unchanged", counts.unchanged - before.unchanged);
    tokio::time::sleep(LOOK).await;
    for (at, mut watch) in watched.into_iter().enumerate() {
        watch.take()?;
        match at {
            1 => watch.settle::<P, (i64,)>(&peer).await?,
            3 => watch.settle::<P, (i64, String, f64)>(&peer).await?,
            _ => watch.settle::<P, (f64,)>(&peer).await?,
        };
        watch.end().await?;
    }
    peer.close().await?;
    Ok(measured)
}
