//! query_{10,100,1k,10k}: all rows of `items`, 6 columns, every field touched.
//!
//! One sample is one query with its consumption, so latency covers both. Rows are kept as the library gives them: typed
//! tuples where it is a binding, its own rows where it has some.

use anyhow::{Result, ensure};

use crate::data::{self, Item, SELECT_ITEMS};
use crate::lane::{Lane, Trial};
use crate::measure::{Measured, Timing};
use crate::peer::Peer;
use crate::record::sum_of;

pub(super) fn lanes<P: Peer>() -> Vec<Lane> {
    let sizes = [("10", 10, 20_000), ("100", 100, 5_000), ("1k", 1_000, 1_000), ("10k", 10_000, 100)];
    let lane = |(word, rows, queries)| {
        let about = format!("all {rows} rows of 6 columns, every field touched");
        Lane::new("reads", format!("query_{word}"), about, "queries", move |trial| run::<P>(trial, rows, queries))
            .release()
            .reads_only()
    };
    sizes.into_iter().map(lane).collect()
}

async fn run<P: Peer>(trial: Trial, rows: usize, queries: usize) -> Result<Measured> {
    let queries = trial.size(queries, 5);
    let peer = trial.open::<P>().await?;
    data::fill_items(&peer, rows).await?;
    peer.hold().await?;
    let items = data::items(rows);
    let expected = sum_of(&items);
    data::expect_rows(&peer, SELECT_ITEMS, &items).await?;
    let mut timing = Timing::begin()?;
    for _ in 0..queries {
        let sum = timing.latencies.query::<P, Item>(&peer, SELECT_ITEMS, &[]).await?;
        ensure!(sum == expected, "the rows are not those that were written");
    }
    let measured = timing.end(queries as u64)?;
    peer.close().await?;
    Ok(measured)
}
