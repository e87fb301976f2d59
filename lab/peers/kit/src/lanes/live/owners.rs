//! live_by_owner: bursts of updates below 100 live queries that each list the rows of one owner.
//!
//! 10,000 rows of 100 owners. The sample is 200 updates of random rows, awaited one after another, until the last result
//! of each owner is the final one. What that is, is known before. `first_results_ms` is the time until all live queries had
//! their first result; `runs` and `deliveries` are those of all bursts together.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, ensure};

use super::lane;
use super::watch::Watch;
use crate::lane::{Lane, Trial};
use crate::measure::{Measured, Timing};
use crate::peer::Peer;
use crate::record::{Sum, sum_of};
use crate::traffic::Traffic;

const CREATE: &str = "CREATE TABLE owned (id INTEGER PRIMARY KEY, owner_id INTEGER NOT NULL, value INTEGER NOT NULL)";
const INDEX: &str = "CREATE INDEX owned_by ON owned (owner_id)";
const INSERT: &str = "INSERT INTO owned (owner_id, value) VALUES (?, 0)";
const UPDATE: &str = "UPDATE owned SET value = ? WHERE id = ?";
const BY_OWNER: &str = "SELECT id, value FROM owned WHERE owner_id = ?";

pub(super) fn lanes<P: Peer>() -> Vec<Lane> {
    let about = "200 updates of random rows, until 100 live queries by owner have delivered them";
    vec![lane("live_by_owner", about, "writes", run::<P>)]
}

async fn run<P: Peer>(trial: Trial) -> Result<Measured> {
    let (rows, owners) = (trial.size(10_000, 500), trial.size(100, 10));
    let (bursts, updates) = (trial.size(20, 2), trial.size(200, 20));
    let peer = trial.open::<P>().await?;
    peer.execute(CREATE, &[]).await?;
    peer.execute(INDEX, &[]).await?;
    peer.many(INSERT, &Arc::new((0..rows).map(|row| vec![((row % owners) as i64).into()]).collect())).await?;
    let began = Instant::now();
    let mut watch =
        Watch::begin(&peer, BY_OWNER, (0..owners).map(|owner| vec![(owner as i64).into()]).collect()).await?;
    let first_results = began.elapsed();
    let mut values: Vec<(i64, i64)> = (0..rows).map(|row| (row as i64 + 1, 0)).collect();
    let mut traffic = Traffic::default();
    let (runs, taken) = (peer.live_counts().runs, watch.taken);
    let mut timing = Timing::begin()?;
    for burst in 0..bursts {
        timing.pause()?;
        let plan: Vec<(i64, i64)> = (1..=updates)
            .map(|update| {
                let row = traffic.below(rows);
                values[row].1 = (burst * updates + update) as i64;
                values[row]
            })
            .collect();
        let expected: Vec<Sum> = (0..owners).map(|owner| of_owner(&values, owner, owners)).collect();
        timing.resume()?;
        let began = Instant::now();
        for (id, value) in plan {
            let changed = peer.execute(UPDATE, &[value.into(), id.into()]).await?;
            ensure!(changed == 1, "{changed} rows were updated");
        }
        timing.latencies.record(watch.until(&expected).await? - began);
    }
    let mut measured = timing.end((bursts * updates) as u64)?;
    measured.extra("first_results_ms", first_results.as_secs_f64() * 1000.0);
    measured.extra("runs", peer.live_counts().runs - runs);
    measured.extra("deliveries", watch.taken - taken);
    watch.settle::<P, (i64, i64)>(&peer).await?;
    watch.end().await?;
    peer.close().await?;
    Ok(measured)
}

fn of_owner(values: &[(i64, i64)], owner: usize, owners: usize) -> Sum {
    sum_of(&values.iter().copied().skip(owner).step_by(owners).collect::<Vec<_>>())
}
