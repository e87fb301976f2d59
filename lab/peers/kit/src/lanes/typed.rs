//! tuples_10k, derive_10k: 10,000 rows of 3 columns as the program's own type.
//!
//! `tuples_10k` asks for tuples, `derive_10k` for a struct whose columns are found by name. A library without such structs
//! answers tuples in both. The sample is one query with its rows.

use anyhow::{Result, ensure};

use crate::data;
use crate::lane::{Lane, Trial};
use crate::measure::{Measured, Timing};
use crate::peer::{Named, Peer};
use crate::record::sum_of;

const SELECT: &str = "SELECT id, name, value FROM items ORDER BY id";
const ROWS: usize = 10_000;

pub(super) fn lanes<P: Peer>() -> Vec<Lane> {
    let lane = |name, about, by_name| {
        Lane::new("reads", name, about, "queries", move |trial| run::<P>(trial, by_name)).reads_only()
    };
    vec![
        lane("tuples_10k", "10,000 rows of 3 columns as tuples", false),
        lane("derive_10k", "10,000 rows of 3 columns as structs, by column name", true),
    ]
}

async fn run<P: Peer>(trial: Trial, by_name: bool) -> Result<Measured> {
    let (rows, queries) = (trial.size(ROWS, 100), trial.size(100, 5));
    let peer = trial.open::<P>().await?;
    data::fill_items(&peer, rows).await?;
    peer.hold().await?;
    let expected: Vec<Named> = data::items(rows).into_iter().map(|item| (item.0, item.1, item.3)).collect();
    let expected = sum_of(&expected);
    ensure!(peer.query_named(SELECT).await? == expected, "the structs are not what was written");
    let mut timing = Timing::begin()?;
    for _ in 0..queries {
        let sum = if by_name {
            timing.time(peer.query_named(SELECT)).await?
        } else {
            timing.time(async { anyhow::Ok(sum_of(&peer.query_as(SELECT, &[]).await?)) }).await?
        };
        ensure!(sum == expected, "the rows are not those that were written");
    }
    let measured = timing.end(queries as u64)?;
    peer.close().await?;
    Ok(measured)
}
