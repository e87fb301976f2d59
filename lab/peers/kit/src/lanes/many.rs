//! many_{100,1k,10k}, many_wide_10k, merge_rounds: one statement over many rows, in one transaction.
//!
//! A sample is one call with all its rows. The table is emptied between calls, which is not timed. `merge_rounds`
//! replaces 100 of 1000 rows of 6 columns in each round.

use std::sync::Arc;

use anyhow::{Result, ensure};

use super::noop;
use crate::data::{self, DELETE_T, INSERT_T, INSERT_WIDE, SELECT_ITEMS, SELECT_WIDE, T, WIDE};
use crate::lane::{Lane, Trial};
use crate::measure::{Measured, Timing, time};
use crate::peer::Peer;
use crate::record::Wide;
use crate::value::Rows;

const MERGE: &str = "INSERT OR REPLACE INTO items (id, name, description, value, category, created_at) \
     VALUES (?, ?, ?, ?, ?, ?)";
const MERGED: usize = 1000;
const ROUND: usize = 100;

pub(super) fn lanes<P: Peer>() -> Vec<Lane> {
    let many = |(word, rows, calls)| {
        let about = format!("one INSERT over {rows} rows of 2 parameters, in one transaction");
        Lane::new("writes", format!("many_{word}"), about, "rows", move |trial| many::<P>(trial, rows, calls)).release()
    };
    let mut lanes: Vec<Lane> = [("100", 100, 500), ("1k", 1_000, 150), ("10k", 10_000, 20)].map(many).into();
    let about = "one INSERT over 10,000 rows of 20 mixed parameters, in one transaction";
    lanes.push(Lane::new("writes", "many_wide_10k", about, "rows", wide::<P>).release());
    let about = "100 rows of 6 parameters replaced per call, above the noop";
    lanes.push(Lane::new("profile", "merge_rounds", about, "rows", merge::<P>));
    lanes
}

async fn many<P: Peer>(trial: Trial, rows: usize, calls: usize) -> Result<Measured> {
    let calls = trial.size(calls, 2);
    let peer = trial.open::<P>().await?;
    peer.execute(T, &[]).await?;
    let timing = write_calls(&peer, calls, (DELETE_T, INSERT_T), &data::t_rows(rows)).await?;
    let measured = timing.end((calls * rows) as u64)?;
    data::expect_t(&peer, rows).await?;
    peer.close().await?;
    Ok(measured)
}

async fn wide<P: Peer>(trial: Trial) -> Result<Measured> {
    let (rows, calls) = (trial.size(10_000, 500), trial.size(10, 2));
    let peer = trial.open::<P>().await?;
    peer.execute(WIDE, &[]).await?;
    let timing = write_calls(&peer, calls, ("DELETE FROM wide", INSERT_WIDE), &data::wide_rows(rows)).await?;
    let measured = timing.end((calls * rows) as u64)?;
    let expected: Vec<_> = (0..rows).map(|i| Wide(data::wide_row(i))).collect();
    data::expect_rows(&peer, SELECT_WIDE, &expected).await?;
    peer.close().await?;
    Ok(measured)
}

async fn write_calls<P: Peer>(
    peer: &P,
    calls: usize,
    (empty, insert): (&'static str, &'static str),
    rows: &Rows,
) -> Result<Timing> {
    peer.many(insert, rows).await?;
    let mut timing = Timing::begin()?;
    for _ in 0..calls {
        timing.pause()?;
        peer.execute(empty, &[]).await?;
        timing.resume()?;
        let changed = timing.time(peer.many(insert, rows)).await?;
        ensure!(changed == rows.len() as u64, "{changed} of {} rows were written", rows.len());
    }
    Ok(timing)
}

async fn merge<P: Peer>(trial: Trial) -> Result<Measured> {
    let rounds = trial.size(1_000, MERGED / ROUND);
    let peer = trial.open::<P>().await?;
    data::fill_items(&peer, MERGED).await?;
    peer.execute(T, &[]).await?;
    let mut items = data::items(MERGED);
    items.iter_mut().for_each(|item| item.3 += 0.25);
    let row = |(id, name, description, value, category, created): &data::Item| {
        vec![
            (*id).into(),
            name.clone().into(),
            description.clone().into(),
            (*value).into(),
            category.clone().into(),
            created.clone().into(),
        ]
    };
    let blocks: Vec<Rows> = items.chunks(ROUND).map(|block| Arc::new(block.iter().map(row).collect())).collect();
    let floor = noop::write_floor(&trial, &peer).await?;
    let mut timing = Timing::begin()?;
    for round in 0..rounds {
        let changed = time!(timing.latencies, peer.many(MERGE, &blocks[round % blocks.len()]).await?);
        ensure!(changed == ROUND as u64, "{changed} of {ROUND} rows were replaced");
    }
    let measured = timing.end((rounds * ROUND) as u64)?.over(&floor);
    data::expect_rows(&peer, SELECT_ITEMS, &items).await?;
    peer.close().await?;
    Ok(measured)
}
