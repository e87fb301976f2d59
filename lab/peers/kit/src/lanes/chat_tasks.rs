//! chat_{1,10,100}, with `_ct`: the mixed traffic of `chat` from tasks, each of which awaits one call after another;
//! service_{1,10,100}: the same, and one call in fifty writes.
//!
//! `_ct` runs on a current-thread runtime instead of one with two threads. The tasks take the next call of one plan, so that what the
//! last messages are depends on who was first: how many they are is known, users are known, and so is what the tables hold in the end.
//! The first calls are not timed. A sample is one call of any kind; `send_*`, `update_*`, `last_*` and `user_*` are those of each.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Result, ensure};
use tokio::task::JoinSet;

use super::chat::{ask, end, expect_messages, fill};
use super::chat_plan::{BEGAN, CHAT, Kind, MOSTLY_READS, Mix, Plan, SHOWN};
use crate::lane::{Lane, Trial};
use crate::measure::{Latencies, Measured, Timing};
use crate::peer::{Peer, Table};
use crate::value::Value;

pub(super) fn lanes<P: Peer>() -> Vec<Lane> {
    let mut lanes = Vec::new();
    for (name, about, mix, forms) in [
        ("chat", "the mix of chat", CHAT, &[("", false), ("_ct", true)][..]),
        ("service", "a service that mostly reads, with 2 % writes", MOSTLY_READS, &[("", false)]),
    ] {
        for &(form, current_thread) in forms {
            for tasks in [1, 10, 100] {
                let threads = if current_thread { "current-thread runtime" } else { "2 runtime threads" };
                let (name, about) =
                    (format!("{name}_{tasks}{form}"), format!("{about}, from {tasks} task(s), {threads}"));
                let lane = Lane::new("scenarios", name, about, "calls", move |trial| run::<P>(trial, tasks, mix));
                let lane = lane.current_thread(current_thread);
                let lane = if tasks > 1 { lane.tasks() } else { lane };
                lanes.push(if current_thread || tasks == 10 { lane } else { lane.release() });
            }
        }
    }
    lanes
}

/// Every conversation has as many messages as are shown before the first call.
const SEEDED: usize = 20_000;

async fn run<P: Peer>(trial: Trial, tasks: usize, mix: Mix) -> Result<Measured> {
    let (warm, count) = (trial.size(5_000, 200), trial.size(60_000, 1_000));
    let peer = trial.open::<P>().await?;
    let plan = Arc::new(Plan::new(mix, SEEDED, warm + count)?);
    fill(&peer, &plan).await?;
    all(&peer, &plan, 0..warm, tasks).await?;
    let mut timing = Timing::begin()?;
    let took = all(&peer, &plan, warm..warm + count, tasks).await?;
    timing.pause()?;
    let mut kinds: [Latencies; 4] = Default::default();
    took.into_iter().for_each(|(kind, latency)| kinds[kind as usize].record(latency));
    let measured = end(timing, &kinds, count)?;
    expect_messages(&peer, &plan).await?;
    expect_updates(&peer, &plan).await?;
    peer.close().await?;
    Ok(measured)
}

/// Makes the calls from so many tasks. Returns how long each took.
async fn all<P: Peer>(peer: &P, plan: &Arc<Plan>, calls: Range<usize>, tasks: usize) -> Result<Vec<(Kind, Duration)>> {
    let next = Arc::new(AtomicUsize::new(calls.start));
    let mut running = JoinSet::new();
    for _ in 0..tasks {
        running.spawn(some(peer.clone(), plan.clone(), next.clone(), calls.end));
    }
    let mut took = Vec::with_capacity(calls.len());
    while let Some(some) = running.join_next().await {
        took.append(&mut some??);
    }
    ensure!(took.len() == calls.len(), "{} of {} calls were made", took.len(), calls.len());
    Ok(took)
}

/// Makes one call after another, until all are made.
async fn some<P: Peer>(peer: P, plan: Arc<Plan>, next: Arc<AtomicUsize>, end: usize) -> Result<Vec<(Kind, Duration)>> {
    let mut took = Vec::new();
    while let Some(call) = plan.calls[..end].get(next.fetch_add(1, Ordering::Relaxed)) {
        let (seen, latency) = ask(&peer, call).await?;
        let right = if call.kind == Kind::Last { seen.rows == SHOWN as u64 } else { seen == call.expected };
        ensure!(right, "the answer to {:?} {:?} is not the expected one", call.kind, call.params);
        took.push((call.kind, latency));
    }
    Ok(took)
}

/// Each conversation has the time that one of its updates wrote.
async fn expect_updates<P: Peer>(peer: &P, plan: &Plan) -> Result<()> {
    let updates = plan.calls.iter().filter(|call| call.kind == Kind::Update);
    let written: HashSet<(i64, i64)> = updates
        .filter_map(|call| match call.params[..] {
            [Value::Integer(last_at), Value::Integer(id)] => Some((id, last_at)),
            _ => None,
        })
        .collect();
    let updated: HashSet<i64> = written.iter().map(|(id, _)| *id).collect();
    let found = peer.query::<(i64, i64)>("SELECT id, last_at FROM conversations ORDER BY id", &[]).await?.records()?;
    ensure!(found.len() == plan.conversations.len(), "there are {} conversations", found.len());
    for row in found {
        let right = if updated.contains(&row.0) { written.contains(&row) } else { row.1 == BEGAN };
        ensure!(right, "conversation and time are {row:?}, which no call wrote");
    }
    Ok(())
}
