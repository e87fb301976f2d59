//! point_query: one row by its primary key, awaited, one after another.
//!
//! 1000 rows of `items`, ids in turn, every field touched. Median and tail are those of single calls.

use anyhow::{Result, ensure};

use super::noop;
use crate::data::{self, Item, SELECT_ITEM};
use crate::lane::{Lane, Trial};
use crate::measure::{Measured, Timing};
use crate::peer::Peer;
use crate::record::{Sum, sum_of};

const ROWS: usize = 1000;

pub(super) fn lanes<P: Peer>() -> Vec<Lane> {
    vec![
        Lane::new("reads", "point_query", "one row by primary key, awaited one after another", "queries", run::<P>)
            .release()
            .reads_only(),
    ]
}

async fn run<P: Peer>(trial: Trial) -> Result<Measured> {
    let count = trial.size(50_000, 500);
    let peer = trial.open::<P>().await?;
    data::fill_items(&peer, ROWS).await?;
    peer.hold().await?;
    let expected: Vec<Sum> = data::items(ROWS).into_iter().map(|item| sum_of(&[item])).collect();
    let floor = noop::read_floor(&trial, &peer).await?;
    for i in 0..count / 100 {
        peer.query::<Item>(SELECT_ITEM, &[(i as i64 + 1).into()]).await?;
    }
    let mut timing = Timing::begin()?;
    for i in 0..count {
        let sum = timing.latencies.query::<P, Item>(&peer, SELECT_ITEM, &[(i as i64 % ROWS as i64 + 1).into()]).await?;
        ensure!(sum == expected[i % ROWS], "row {} is not what was written", i % ROWS);
    }
    let measured = timing.end(count as u64)?.over(&floor);
    peer.close().await?;
    Ok(measured)
}
