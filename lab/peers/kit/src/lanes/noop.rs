//! noop_execute, noop_select: calls that do nothing, which is the cost of asking.
//!
//! An UPDATE whose condition is false, and `SELECT 1`. They guard every comparison: a change that has no way to make
//! them faster must not make them slower. Other lanes subtract them from their median to tell work from dispatch.

use anyhow::{Result, ensure};

use crate::data::{self, INSERT_T, T};
use crate::lane::{Lane, Trial};
use crate::measure::{Latencies, Measured, Timing, time};
use crate::peer::{Peer, Table};
use crate::record::sum_of;

const UPDATE: &str = "UPDATE t SET value = 0 WHERE 1 = 0";
const SELECT: &str = "SELECT 1";

pub(super) fn lanes<P: Peer>() -> Vec<Lane> {
    vec![
        Lane::new("profile", "noop_execute", "an UPDATE that matches nothing, awaited", "calls", execute::<P>),
        Lane::new("profile", "noop_select", "SELECT 1, awaited", "calls", select::<P>).reads_only(),
    ]
}

async fn execute<P: Peer>(trial: Trial) -> Result<Measured> {
    let count = trial.size(20_000, 200);
    let peer = trial.open::<P>().await?;
    peer.execute(T, &[]).await?;
    peer.execute(INSERT_T, &["item_0".into(), 0.0.into()]).await?;
    writes(&peer, count / 10).await?;
    let mut timing = Timing::begin()?;
    timing.latencies = writes(&peer, count).await?;
    let measured = timing.end(count as u64)?;
    data::expect_t(&peer, 1).await?;
    peer.close().await?;
    Ok(measured)
}

async fn select<P: Peer>(trial: Trial) -> Result<Measured> {
    let count = trial.size(50_000, 500);
    let peer = trial.open::<P>().await?;
    peer.execute(T, &[]).await?;
    peer.hold().await?;
    reads(&peer, count / 10).await?;
    let mut timing = Timing::begin()?;
    timing.latencies = reads(&peer, count).await?;
    let measured = timing.end(count as u64)?;
    peer.close().await?;
    Ok(measured)
}

/// Calls of a write that does nothing, on a peer that has the table `t`.
async fn writes<P: Peer>(peer: &P, count: usize) -> Result<Latencies> {
    let mut latencies = Latencies::default();
    for _ in 0..count {
        let changed = time!(latencies, peer.execute(UPDATE, &[]).await?);
        ensure!(changed == 0, "an UPDATE that matches nothing changed {changed} rows");
    }
    Ok(latencies)
}

/// Calls of a read that reads nothing.
async fn reads<P: Peer>(peer: &P, count: usize) -> Result<Latencies> {
    let expected = sum_of(&[(1_i64,)]);
    let mut latencies = Latencies::default();
    for _ in 0..count {
        let sum = time!(latencies, peer.query::<(i64,)>(SELECT, &[]).await?.touch());
        ensure!(sum == expected, "SELECT 1 answered something else");
    }
    Ok(latencies)
}

/// The floor of a write, for a lane's `work_us`.
pub(super) async fn write_floor<P: Peer>(trial: &Trial, peer: &P) -> Result<Latencies> {
    writes(peer, trial.size(2_000, 50)).await
}

/// The floor of a read, for a lane's `work_us`.
pub(super) async fn read_floor<P: Peer>(trial: &Trial, peer: &P) -> Result<Latencies> {
    reads(peer, trial.size(2_000, 50)).await
}
