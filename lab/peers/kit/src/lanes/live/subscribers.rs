//! live_subscribers_{1,100,10000}: from an UPDATE to the same result at many subscribers of one query.
//!
//! So many tasks await equal live queries by rowid, which must run once for each write, however many they are. The sample is
//! the time from before the write until the last task has the result.

use std::time::Instant;

use anyhow::{Result, ensure};

use super::lane;
use super::watch::Watch;
use crate::data;
use crate::lane::{Lane, Trial};
use crate::measure::{Measured, Timing};
use crate::peer::{Named, Peer};
use crate::record::sum_of;

const BY_ID: &str = "SELECT id, name, value FROM items WHERE id = ?";
const SET_VALUE: &str = "UPDATE items SET value = ? WHERE id = ?";
const ROWS: usize = 1_000;

pub(super) fn lanes<P: Peer>() -> Vec<Lane> {
    let subscribers = |(word, shown, tasks, writes): (_, _, usize, usize)| {
        let about = format!("from an UPDATE to the result at {shown} of one live query");
        lane(format!("live_subscribers_{word}"), about, "writes", move |trial| {
            let (tasks, writes) = (trial.size(tasks, tasks.min(50)), trial.size(writes, 5));
            run::<P>(trial, tasks, writes)
        })
    };
    [
        ("1", "a subscriber", 1, 5_000),
        ("100", "100 subscribers", 100, 2_000),
        ("10000", "10,000 subscribers", 10_000, 50),
    ]
    .map(subscribers)
    .into()
}

async fn run<P: Peer>(trial: Trial, tasks: usize, writes: usize) -> Result<Measured> {
    let peer = trial.open::<P>().await?;
    data::fill_items(&peer, ROWS).await?;
    let (id, name, ..) = data::item(ROWS / 2);
    let mut watch = Watch::begin(&peer, BY_ID, vec![vec![id.into()]; tasks]).await?;
    let runs = peer.live_counts().runs;
    let mut timing = Timing::begin()?;
    for write in 0..writes {
        let value = write as f64 + 0.25;
        let expected = vec![sum_of(&[(id, name.clone(), value)]); tasks];
        let began = Instant::now();
        peer.execute(SET_VALUE, &[value.into(), id.into()]).await?;
        timing.latencies.record(watch.until(&expected).await? - began);
    }
    let measured = timing.end(writes as u64)?;
    let caused = peer.live_counts().runs - runs;
    ensure!(caused == writes as u64, "{writes} writes caused {caused} runs");
    watch.settle::<P, Named>(&peer).await?;
    watch.end().await?;
    peer.close().await?;
    Ok(measured)
}
