//! point_query_function: one row by its primary key, one column of which is what a function of the program makes of it.
//!
//! The rows are those of `point_query`. The function is deterministic, and registered by the library's own call for that.

use anyhow::{Result, ensure};

use super::noop;
use crate::data;
use crate::lane::{Lane, Trial};
use crate::measure::{Measured, Timing, time};
use crate::peer::{Peer, Table};
use crate::record::{Sum, sum_of};

const ROWS: usize = 1000;
const SELECT: &str = "SELECT id, name, half(id) FROM items WHERE id = ?";

type Row = (i64, String, f64);

pub(super) fn lanes<P: Peer>() -> Vec<Lane> {
    if !P::HAS_FUNCTIONS {
        return Vec::new();
    }
    let about = "one row by primary key, with a deterministic function of the program, awaited one after another";
    vec![Lane::new("reads", "point_query_function", about, "queries", run::<P>).reads_only()]
}

async fn run<P: Peer>(trial: Trial) -> Result<Measured> {
    let peer = trial.open::<P>().await?;
    data::fill_items(&peer, ROWS).await?;
    peer.create_half().await?;
    peer.hold().await?;
    let floor = noop::read_floor(&trial, &peer).await?;
    let count = trial.size(50_000, 500);
    let rows = data::items(ROWS).into_iter().map(|item| (item.0, item.1, item.0 as f64 / 2.0));
    let expected: Vec<Sum> = rows.map(|row: Row| sum_of(&[row])).collect();
    for i in 0..count / 100 {
        peer.query::<Row>(SELECT, &[(i as i64 + 1).into()]).await?;
    }
    let mut timing = Timing::begin()?;
    for i in 0..count {
        let id = i as i64 % ROWS as i64 + 1;
        let sum = time!(timing.latencies, peer.query::<Row>(SELECT, &[id.into()]).await?.touch());
        ensure!(sum == expected[i % ROWS], "row {} is not what was written, and its half", i % ROWS);
    }
    let measured = timing.end(count as u64)?.over(&floor);
    peer.close().await?;
    Ok(measured)
}
