//! live_burst: 50,000 rows that arrive in batches of 500, below a live count.
//!
//! The sample is one batch. The timed part ends when the final count was delivered. `runs` is how often the count ran, which
//! may be once more than there are batches; `deliveries` is how many results its task was given.

use std::sync::Arc;

use anyhow::{Result, ensure};

use super::lane;
use super::watch::Watch;
use crate::lane::{Lane, Trial};
use crate::measure::{Measured, Timing};
use crate::peer::Peer;
use crate::record::sum_of;
use crate::value::Rows;

const CREATE: &str =
    "CREATE TABLE synced (id INTEGER PRIMARY KEY, external_id TEXT NOT NULL UNIQUE, payload TEXT NOT NULL)";
const INSERT: &str = "INSERT INTO synced (external_id, payload) VALUES (?, ?)";
const COUNT: &str = "SELECT count(*) FROM synced";
const BATCH: usize = 500;

pub(super) fn lanes<P: Peer>() -> Vec<Lane> {
    vec![lane("live_burst", "50,000 rows in batches of 500, below a live count", "rows", run::<P>).release()]
}

async fn run<P: Peer>(trial: Trial) -> Result<Measured> {
    let rows = trial.size(50_000, 2_000);
    let peer = trial.open::<P>().await?;
    peer.execute(CREATE, &[]).await?;
    let row = |row| vec![format!("external-{row:08}").into(), format!("the payload of row {row}").into()];
    let batches: Vec<Rows> =
        (0..rows).step_by(BATCH).map(|first| Arc::new((first..first + BATCH).map(row).collect())).collect();
    let mut watch = Watch::begin(&peer, COUNT, vec![Vec::new()]).await?;
    let (runs, taken) = (peer.live_counts().runs, watch.taken);
    let mut timing = Timing::begin()?;
    for batch in &batches {
        let changed = timing.time(peer.many(INSERT, batch)).await?;
        ensure!(changed == BATCH as u64, "{changed} of {BATCH} rows were written");
    }
    watch.until(&[sum_of(&[(rows as i64,)])]).await?;
    let mut measured = timing.end(rows as u64)?;
    watch.settle::<P, (i64,)>(&peer).await?;
    let runs = peer.live_counts().runs - runs;
    ensure!(runs <= batches.len() as u64 + 1, "{} batches caused {runs} runs", batches.len());
    measured.extra("runs", runs);
    measured.extra("deliveries", watch.taken - taken);
    watch.end().await?;
    peer.close().await?;
    Ok(measured)
}
