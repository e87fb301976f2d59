//! live_foreign: from a commit of another connection to the result of a live query by rowid.
//!
//! Another connection, of plain SQLite, updates the row, at moments that have nothing to do with when the library looks for
//! such commits. The sample is the time from the return of its commit until the waiting task has the result; it is zero
//! where the result was there before.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::lane;
use super::watch::Watch;
use crate::data;
use crate::lane::{Lane, Trial};
use crate::measure::{Measured, Timing};
use crate::peer::{Named, Peer};
use crate::record::sum_of;
use crate::traffic::Traffic;

const BY_ID: &str = "SELECT id, name, value FROM items WHERE id = ?";
const ROWS: usize = 1_000;
/// The longest pause between two commits.
const PAUSE: Duration = Duration::from_millis(50);

pub(super) fn lanes<P: Peer>() -> Vec<Lane> {
    let about = "from a commit of a plain connection to the result of a live query by rowid";
    vec![lane("live_foreign", about, "commits", run::<P>)]
}

async fn run<P: Peer>(trial: Trial) -> Result<Measured> {
    let commits = trial.size(400, 5);
    let peer = trial.open::<P>().await?;
    data::fill_items(&peer, ROWS).await?;
    let (id, name, ..) = data::item(ROWS / 2);
    let mut watch = Watch::begin(&peer, BY_ID, vec![vec![id.into()]]).await?;
    let mut foreign = peer.foreign(&trial.database())?;
    let mut traffic = Traffic::default();
    let mut timing = Timing::begin()?;
    for commit in 0..commits {
        let pause = traffic.below(PAUSE.as_micros() as usize) as u64;
        tokio::time::sleep(Duration::from_micros(pause)).await;
        let value = commit as f64 + 0.25;
        foreign(&format!("UPDATE items SET value = {value} WHERE id = {id}"))?;
        let committed = Instant::now();
        let arrival = watch.next().await?;
        ensure!(arrival.sum == sum_of(&[(id, name.clone(), value)]), "commit {commit} was not what was delivered");
        timing.latencies.record(arrival.at.saturating_duration_since(committed));
    }
    let measured = timing.end(commits as u64)?;
    watch.settle::<P, Named>(&peer).await?;
    watch.end().await?;
    drop(foreign);
    peer.close().await?;
    Ok(measured)
}
