//! memory_query_10k: what holding a result of 10,000 rows of 6 columns costs in memory.
//!
//! `result_bytes` is the growth of the resident size while the result is held, `peak_growth_bytes` the growth of its
//! peak over the query; both are left out where the kernel does not tell them. The sample is one query, touched.

use anyhow::{Result, ensure};

use crate::data::{self, Item, SELECT_ITEMS};
use crate::lane::{Lane, Trial};
use crate::measure::{Measured, Timing};
use crate::peer::{Peer, Table};
use crate::process;
use crate::record::{Record, Sum};

pub(super) fn lanes<P: Peer>() -> Vec<Lane> {
    let about = "memory that a result of 10,000 rows takes";
    vec![Lane::new("process", "memory_query_10k", about, "queries", run::<P>).release().reads_only()]
}

async fn run<P: Peer>(trial: Trial) -> Result<Measured> {
    let (rows, count) = (trial.size(10_000, 1_000), trial.size(20, 2));
    let peer = trial.open::<P>().await?;
    data::fill_items(&peer, rows).await?;
    peer.hold().await?;
    let mut expected = Sum::default();
    (0..rows).for_each(|i| data::item(i).touch(&mut expected));
    // Fills the page cache, and is no part of the growth.
    peer.query::<(i64, i64)>("SELECT count(*), sum(length(description)) FROM items", &[]).await?;
    let can_reset = process::reset_peak();
    let before = process::rss();
    let held = peer.query::<Item>(SELECT_ITEMS, &[]).await?;
    let after = process::rss();
    let peak = process::peak_rss()?;
    ensure!(held.touch() == expected, "the rows are not those that were written");
    drop(held);
    let mut timing = Timing::begin()?;
    for _ in 0..count {
        let sum = timing.latencies.query::<P, Item>(&peer, SELECT_ITEMS, &[]).await?;
        ensure!(sum == expected, "the rows are not those that were written");
    }
    let mut measured = timing.end(count as u64)?;
    if let (Some(before), Some(after)) = (before, after) {
        measured.extra("result_bytes", after.saturating_sub(before));
        if can_reset {
            measured.extra("peak_growth_bytes", peak.saturating_sub(before));
        }
    }
    peer.close().await?;
    Ok(measured)
}
