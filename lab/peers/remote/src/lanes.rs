//! remote_insert_1, remote_insert_100, remote_insert_at_once_10k: inserts by so many callers into a cluster whose commits take 2 ms, one
//! after the other. remote_point_query: point queries one after another, at the leader.
//!
//! The sample is the call. In the end the table has a row for each insert. The first of them makes the tables of the guard and a
//! connection, and is not timed.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use flatwater_remote::Remote;
use futures_util::future::try_join_all;
use lab_kit::lane::Info;
use lab_kit::measure::{Latencies, Measured, Timing};
use serde_json::Value;

use crate::client::{Client, Kind};
use crate::double::Double;

const COMMIT_US: u64 = 2_000;
const ROWS: i64 = 1_000;

#[derive(Debug, Clone, Copy)]
pub enum Lane {
    /// So many tasks insert for a time.
    Insert(usize),
    /// So many calls begin at the same time.
    AtOnce(usize),
    Point,
}

impl Lane {
    pub fn all() -> Vec<Self> {
        vec![Self::Insert(1), Self::Insert(100), Self::AtOnce(10_000), Self::Point]
    }

    pub fn name(self) -> String {
        match self {
            Self::Insert(tasks) => format!("remote_insert_{tasks}"),
            Self::AtOnce(calls) => format!("remote_insert_at_once_{}k", calls / 1_000),
            Self::Point => "remote_point_query".to_owned(),
        }
    }

    pub fn info(self) -> Info {
        let about = match self {
            Self::Insert(tasks) => format!("inserts of {tasks} tasks on a cluster whose commits take 2 ms"),
            Self::AtOnce(calls) => format!("{calls} inserts that begin at once, on the same cluster"),
            Self::Point => "a point query at the leader of a cluster".to_owned(),
        };
        let unit = if matches!(self, Self::Point) { "queries" } else { "inserts" };
        Info::focused("remote", self.name(), about, unit)
    }
}

/// Runs one trial.
pub fn run(lane: Lane, kind: Kind, quick: bool) -> Result<Value> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut report = runtime.block_on(trial(lane, kind, quick))?.report()?;
    report.insert("lane".into(), lane.name().into());
    Ok(report.into())
}

async fn trial(lane: Lane, kind: Kind, quick: bool) -> Result<Measured> {
    let double = Double::start()?;
    let plain = Remote::connect(&format!("rqlite://{}", double.leader))?;
    plain.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a, b)", ()).await?;
    plain.execute("CREATE TABLE p (id INTEGER PRIMARY KEY, a)", ()).await?;
    plain.execute_many("INSERT INTO p VALUES (?, ?)", (0..ROWS).map(|id| (id, format!("row {id}")))).await?;
    double.commits_take(COMMIT_US)?;
    let client = Client::new(kind, &double.leader)?;
    client.insert(-1).await?;
    let lasts = Duration::from_millis(if quick { 50 } else { 2_000 });
    let measured = match lane {
        Lane::Insert(tasks) => inserts(&client, tasks, lasts).await?,
        Lane::AtOnce(calls) => at_once(&client, if quick { calls / 100 } else { calls }).await?,
        Lane::Point => points(&client, lasts).await?,
    };
    if !matches!(lane, Lane::Point) {
        let rows: i64 = plain.query_value("SELECT count(*) FROM t", ()).await?;
        ensure!(u64::try_from(rows)? == measured.ops + 1, "{rows} rows of {} inserts", measured.ops);
    }
    Ok(measured)
}

async fn inserts(client: &Client, tasks: usize, lasts: Duration) -> Result<Measured> {
    let mut timing = Timing::begin()?;
    let began = std::time::Instant::now();
    let task = async || {
        let mut latencies = Latencies::default();
        while began.elapsed() < lasts {
            latencies.time(client.insert(1)).await?;
        }
        anyhow::Ok(latencies)
    };
    for latencies in try_join_all((0..tasks).map(|_| task())).await? {
        timing.latencies.merge(&latencies);
    }
    let ops = timing.latencies.len();
    timing.end(ops)
}

async fn at_once(client: &Client, calls: usize) -> Result<Measured> {
    let before = memory()?;
    let mut timing = Timing::begin()?;
    let one = async || {
        let mut latencies = Latencies::default();
        latencies.time(client.insert(1)).await?;
        anyhow::Ok(latencies)
    };
    for latencies in try_join_all((0..calls).map(|_| one())).await? {
        timing.latencies.merge(&latencies);
    }
    let mut measured = timing.end(calls as u64)?;
    measured.extra("memory_kib", memory()?.saturating_sub(before));
    Ok(measured)
}

async fn points(client: &Client, lasts: Duration) -> Result<Measured> {
    let mut timing = Timing::begin()?;
    let began = std::time::Instant::now();
    let mut id = 0;
    while began.elapsed() < lasts {
        let text = timing.time(client.point(id % ROWS)).await?;
        ensure!(text == format!("row {}", id % ROWS), "another row");
        id += 1;
    }
    let ops = timing.latencies.len();
    timing.end(ops)
}

/// The memory of this process that is in use, in KiB.
fn memory() -> Result<u64> {
    let pages = std::fs::read_to_string("/proc/self/statm")?;
    let resident: u64 = pages.split(' ').nth(1).context("the pages of memory")?.parse()?;
    Ok(resident * 4)
}
