//! insert_concurrent_{1,2,10,100,1000}, with `_full` and `_ct`: many tasks insert, each awaiting its own one after another.
//!
//! All tasks together do the same number of inserts in every lane, so that throughput can be drawn against concurrency.
//! `_full` has an fsync per commit; `_ct` runs on a current-thread runtime instead of one with two threads. A sample is
//! one awaited insert.

use std::time::Duration;

use anyhow::Result;
use tokio::task::JoinSet;

use crate::data::{self, INSERT_T, T};
use crate::lane::{Lane, Trial};
use crate::measure::{Measured, Timing, timed};
use crate::peer::{Durability, Peer};

pub(super) fn lanes<P: Peer>() -> Vec<Lane> {
    let forms = [
        ("", Durability::Normal, false),
        ("_full", Durability::Full, false),
        ("_ct", Durability::Normal, true),
        ("_full_ct", Durability::Full, true),
    ];
    let mut lanes = Vec::new();
    for (form, durability, current_thread) in forms {
        for tasks in [1, 2, 10, 100, 1000] {
            let about = format!(
                "{tasks} task(s) that insert, durability {}, {}",
                durability.synchronous().to_lowercase(),
                if current_thread { "current-thread runtime" } else { "2 runtime threads" }
            );
            let lane = Lane::new("group", format!("insert_concurrent_{tasks}{form}"), about, "inserts", move |trial| {
                run::<P>(trial, tasks, durability)
            });
            let lane = lane.current_thread(current_thread);
            let lane = if tasks > 1 { lane.tasks() } else { lane };
            lanes.push(if current_thread { lane } else { lane.release() });
        }
    }
    lanes
}

async fn run<P: Peer>(trial: Trial, tasks: usize, durability: Durability) -> Result<Measured> {
    let full = if durability == Durability::Full { 6_000 } else { 40_000 };
    let each = trial.size(full, if tasks == 1000 { 1000 } else { 200 }) / tasks;
    let peer = trial.open_with::<P>(durability).await?;
    peer.execute(T, &[]).await?;
    let mut names = data::names(each * tasks).into_iter();
    let shares: Vec<Vec<String>> = (0..tasks).map(|_| names.by_ref().take(each).collect()).collect();
    let mut timing = Timing::begin()?;
    let mut running = JoinSet::new();
    for (task, names) in shares.into_iter().enumerate() {
        running.spawn(inserts(peer.clone(), task * each, names));
    }
    while let Some(latencies) = running.join_next().await {
        latencies??.into_iter().for_each(|latency| timing.latencies.record(latency));
    }
    let measured = timing.end((each * tasks) as u64)?;
    data::expect_t(&peer, each * tasks).await?;
    peer.close().await?;
    Ok(measured)
}

async fn inserts<P: Peer>(peer: P, first: usize, names: Vec<String>) -> Result<Vec<Duration>> {
    let mut latencies = Vec::with_capacity(names.len());
    for (i, name) in names.iter().enumerate() {
        let (_, latency) =
            timed(peer.execute(INSERT_T, &[name.as_str().into(), data::value(first + i).into()])).await?;
        latencies.push(latency);
    }
    Ok(latencies)
}
