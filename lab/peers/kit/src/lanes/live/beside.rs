//! live_{none,1,100,10000}: what a write costs while live queries of another table are open.
//!
//! The sample is an insert into a table that nobody watches, which must cause no run. The live queries look up one row each.
//! `live_none` is the same insert without a live query.

use anyhow::{Result, ensure};

use super::lane;
use super::watch::{Params, Watch};
use crate::data::{self, INSERT_T, T};
use crate::lane::{Lane, Trial};
use crate::measure::{Measured, Timing};
use crate::peer::{Named, Peer};

const BY_ID: &str = "SELECT id, name, value FROM items WHERE id = ?";
const ROWS: usize = 10_000;

pub(super) fn lanes<P: Peer>() -> Vec<Lane> {
    let beside = |(word, about, open): (_, _, usize)| {
        lane(format!("live_{word}"), about, "inserts", move |trial| {
            let open = trial.size(open, open.min(200));
            run::<P>(trial, open)
        })
    };
    [
        ("none", "an insert, without live queries", 0),
        ("1", "an insert beside a live query of another table", 1),
        ("100", "an insert beside 100 live queries of another table", 100),
        ("10000", "an insert beside 10,000 live queries of another table", ROWS),
    ]
    .map(beside)
    .into()
}

async fn run<P: Peer>(trial: Trial, open: usize) -> Result<Measured> {
    let (rows, inserts) = (trial.size(ROWS, 200), trial.size(20_000, 100));
    let peer = trial.open::<P>().await?;
    data::fill_items(&peer, rows).await?;
    peer.execute(T, &[]).await?;
    let params: Vec<Params> = (1..=open as i64).map(|id| vec![id.into()]).collect();
    let mut watch = Watch::begin(&peer, BY_ID, params).await?;
    let names = data::names(inserts);
    let runs = peer.live_counts().runs;
    let mut timing = Timing::begin()?;
    for (i, name) in names.iter().enumerate() {
        timing.time(peer.execute(INSERT_T, &[name.as_str().into(), data::value(i).into()])).await?;
    }
    let measured = timing.end(inserts as u64)?;
    let caused = peer.live_counts().runs - runs;
    ensure!(caused == 0, "inserts into another table caused {caused} runs");
    data::expect_t(&peer, inserts).await?;
    if open > 0 {
        watch.settle::<P, Named>(&peer).await?;
    }
    watch.end().await?;
    peer.close().await?;
    Ok(measured)
}
