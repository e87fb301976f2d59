//! point_query, point_query_writing: one row by its primary key, awaited, one after another.
//!
//! 1000 rows of `items`, ids in turn, every field touched. Median and tail are those of single calls. In
//! `point_query_writing` a second caller of the same peer meanwhile commits one small update after another, of another
//! table; `write_*` are these, and `writes_per_second` tells how much was written.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use tokio::task::JoinHandle;

use super::noop;
use crate::data::{self, INSERT_T, Item, SELECT_ITEM, T};
use crate::lane::{Lane, Trial, beside};
use crate::measure::{Latencies, Measured, Timing, time};
use crate::peer::{Peer, Table};
use crate::record::{Sum, sum_of};

const ROWS: usize = 1000;
const UPDATE: &str = "UPDATE t SET value = value + 1 WHERE id = 1";

pub(super) fn lanes<P: Peer>() -> Vec<Lane> {
    let about = "one row by primary key, while a second caller commits small updates";
    vec![
        Lane::new("reads", "point_query", "one row by primary key, awaited one after another", "queries", run::<P>)
            .release()
            .reads_only(),
        Lane::new("reads", "point_query_writing", about, "queries", writing::<P>),
    ]
}

async fn run<P: Peer>(trial: Trial) -> Result<Measured> {
    let peer = trial.open::<P>().await?;
    data::fill_items(&peer, ROWS).await?;
    peer.hold().await?;
    let floor = noop::read_floor(&trial, &peer).await?;
    let measured = points(&trial, &peer).await?.over(&floor);
    peer.close().await?;
    Ok(measured)
}

async fn writing<P: Peer>(trial: Trial) -> Result<Measured> {
    let peer = trial.open::<P>().await?;
    data::fill_items(&peer, ROWS).await?;
    peer.execute(T, &[]).await?;
    peer.execute(INSERT_T, &["item_0".into(), 0.0.into()]).await?;
    peer.hold().await?;
    let writer = Writer::begin(&peer).await?;
    let measured = points(&trial, &peer).await;
    let (writes, lasted) = writer.end().await?;
    let mut measured = measured?;
    measured.extra("writes_per_second", writes.len() as f64 / lasted.as_secs_f64());
    measured.extra_latencies("write", &writes);
    peer.close().await?;
    Ok(measured)
}

/// The timed part of both.
async fn points<P: Peer>(trial: &Trial, peer: &P) -> Result<Measured> {
    let count = trial.size(50_000, 500);
    let expected: Vec<Sum> = data::items(ROWS).into_iter().map(|item| sum_of(&[item])).collect();
    for i in 0..count / 100 {
        peer.query::<Item>(SELECT_ITEM, &[(i as i64 + 1).into()]).await?;
    }
    let mut timing = Timing::begin()?;
    for i in 0..count {
        let id = i as i64 % ROWS as i64 + 1;
        let sum = time!(timing.latencies, peer.query::<Item>(SELECT_ITEM, &[id.into()]).await?.touch());
        ensure!(sum == expected[i % ROWS], "row {} is not what was written", i % ROWS);
    }
    timing.end(count as u64)
}

/// Commits, and the time they took together.
type Written = (Latencies, Duration);

/// A caller beside, which commits until it is told to end.
struct Writer {
    stop: Arc<AtomicBool>,
    task: JoinHandle<Result<Written>>,
}

impl Writer {
    /// Answers when the first update is committed.
    async fn begin<P: Peer>(peer: &P) -> Result<Self> {
        let (stop, commits) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let task = beside::<P, _>(write(peer.clone(), stop.clone(), commits.clone()));
        while commits.load(Ordering::Relaxed) == 0 && !task.is_finished() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        Ok(Self { stop, task })
    }

    async fn end(self) -> Result<Written> {
        self.stop.store(true, Ordering::Relaxed);
        self.task.await?
    }
}

/// Commits, whose number the row must tell.
async fn write<P: Peer>(peer: P, stop: Arc<AtomicBool>, commits: Arc<AtomicU64>) -> Result<Written> {
    let mut latencies = Latencies::default();
    let began = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        let changed = time!(latencies, peer.execute(UPDATE, &[]).await?);
        ensure!(changed == 1, "{UPDATE} changed {changed} rows");
        commits.store(latencies.len(), Ordering::Relaxed);
    }
    let lasted = began.elapsed();
    data::expect_rows(&peer, "SELECT value FROM t", &[(latencies.len() as f64,)]).await?;
    Ok((latencies, lasted))
}
