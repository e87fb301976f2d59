//! insert_concurrent_{1,2,10,100,1000}, with `_full` and `_ct`: many tasks insert, each awaiting its own one after another;
//! and insert_concurrent_100_10s, the same for a time; update_pages_100: many tasks update rows on 100 pages each.
//!
//! All tasks together do the same number of inserts in every lane, so that throughput can be drawn against concurrency.
//! `_full` has an fsync per commit; `_ct` runs on a current-thread runtime instead of one with two threads. A sample is
//! one awaited insert. `insert_concurrent_100_10s` is long enough that checkpoints come to rest in it: `cpu_per_insert_us`
//! is the process's CPU time for each insert, `wal_bytes_*` the WAL.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use tokio::task::JoinSet;

use crate::data::{self, INSERT_T, T};
use crate::lane::{Lane, Trial};
use crate::measure::{Latencies, Measured, Timing, timed};
use crate::peer::{Durability, Peer, Table};
use crate::wal::Watch;

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
    let about = "100 tasks that insert for 10 s, 2 runtime threads";
    lanes.push(Lane::new("group", "insert_concurrent_100_10s", about, "inserts", for_a_time::<P>).tasks());
    let about = "100 tasks that update 100 rows each call, each row on a page of its own";
    lanes.push(Lane::new("group", "update_pages_100", about, "updates", update_pages::<P>).tasks());
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

async fn for_a_time<P: Peer>(trial: Trial) -> Result<Measured> {
    let lasts = Duration::from_millis(trial.size(10_000, 200) as u64);
    let peer = trial.open::<P>().await?;
    peer.execute(T, &[]).await?;
    let next = Arc::new(AtomicUsize::new(0));
    let watch = Watch::begin(trial.wal());
    let mut timing = Timing::begin()?;
    let end = Instant::now() + lasts;
    let mut running = JoinSet::new();
    for _ in 0..100 {
        running.spawn(until(peer.clone(), next.clone(), end));
    }
    while let Some(latencies) = running.join_next().await {
        timing.latencies.merge(&latencies??);
    }
    let done = timing.latencies.len();
    let mut measured = timing.end(done)?;
    watch.end(&mut measured)?;
    measured.extra("cpu_per_insert_us", measured.cpu().as_secs_f64() * 1e6 / done as f64);
    expect_many(&peer, done).await?;
    peer.close().await?;
    Ok(measured)
}

/// Inserts rows whose numbers all tasks share, so that none is left out.
async fn until<P: Peer>(peer: P, next: Arc<AtomicUsize>, end: Instant) -> Result<Latencies> {
    let mut latencies = Latencies::default();
    while Instant::now() < end {
        let i = next.fetch_add(1, Ordering::Relaxed);
        latencies.time(peer.execute(INSERT_T, &[format!("item_{i}").into(), data::value(i).into()])).await?;
    }
    Ok(latencies)
}

/// A call of which the undo log is larger than what SQLite keeps in memory by default.
async fn update_pages<P: Peer>(trial: Trial) -> Result<Measured> {
    const TASKS: usize = 100;
    const ROWS: usize = 10_000;
    let each = trial.size(2_000, 200) / TASKS;
    let peer = trial.open::<P>().await?;
    data::fill_items(&peer, ROWS).await?;
    let mut timing = Timing::begin()?;
    let mut running = JoinSet::new();
    for task in 0..TASKS {
        let peer = peer.clone();
        running.spawn(async move {
            let mut latencies = Latencies::default();
            for _ in 0..each {
                let sql = "UPDATE items SET value = value + 1 WHERE id % 100 = ?";
                latencies.time(peer.execute(sql, &[(task as i64).into()])).await?;
            }
            anyhow::Ok(latencies)
        });
    }
    while let Some(latencies) = running.join_next().await {
        timing.latencies.merge(&latencies??);
    }
    let measured = timing.end((each * TASKS) as u64)?;
    let found = peer.query::<(f64,)>("SELECT sum(value) FROM items", &[]).await?.records()?;
    let filled: f64 = (0..ROWS).map(data::value).sum();
    let expected = filled + (each * ROWS) as f64;
    ensure!(found == [(expected,)], "the sum is {found:?}, expected {expected}");
    peer.close().await?;
    Ok(measured)
}

/// As `expect_t`, where the rows are too many to hold: each row is right by itself, and their values are those of
/// `0..count`.
async fn expect_many<P: Peer>(peer: &P, count: u64) -> Result<()> {
    let sql = "SELECT count(*), sum(name = 'item_' || CAST(value / 1.5 AS INTEGER)), max(value), sum(value) FROM t";
    let found = peer.query::<(i64, i64, f64, f64)>(sql, &[]).await?.records()?;
    let last = count as f64 - 1.0;
    let expected = (count as i64, count as i64, last * 1.5, last * (last + 1.0) / 2.0 * 1.5);
    ensure!(found == [expected], "rows, good ones, largest and sum are {found:?}, expected {expected:?}");
    Ok(())
}
