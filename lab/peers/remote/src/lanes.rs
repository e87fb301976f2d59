//! remote_insert_1, remote_insert_100, remote_insert_at_once_10k: inserts by so many callers into a cluster whose commits take 2 ms, one
//! after the other. remote_point_query: point queries one after another, at the leader.
//!
//! The sample is the call. In the end the table has a row for each insert. The first of them makes the tables of the guard and a
//! connection, and is not timed.
//!
//! `remote_libsql_*` are the same on a libSQL server, whose commits take what its disk takes, and transactions of two inserts. They are there if
//! the program of the server is.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use flatwater_remote::Remote;
use futures_util::future::try_join_all;
use lab_kit::lane::Info;
use lab_kit::measure::{Latencies, Measured, Timing};
use serde_json::Value;

use crate::client::{Client, Kind};
use crate::servers::{Double, Server, Sqld};

const COMMIT_US: u64 = 2_000;
const ROWS: i64 = 1_000;

#[derive(Debug, Clone, Copy)]
pub struct Lane {
    is_libsql: bool,
    work: Work,
}

#[derive(Debug, Clone, Copy)]
enum Work {
    /// So many tasks insert for a time.
    Insert(usize),
    /// So many calls begin at the same time.
    AtOnce(usize),
    Point,
    /// One transaction after the other.
    Transaction,
}

impl Lane {
    pub fn all() -> Vec<Self> {
        let both = [Work::Insert(1), Work::Insert(100), Work::AtOnce(10_000), Work::Point];
        let mut all: Vec<_> = both.into_iter().map(|work| Self { is_libsql: false, work }).collect();
        if Sqld::is_there() {
            let of_libsql = both.into_iter().chain([Work::Transaction]);
            all.extend(of_libsql.map(|work| Self { is_libsql: true, work }));
        }
        all
    }

    pub fn name(self) -> String {
        let server = if self.is_libsql { "libsql_" } else { "" };
        match self.work {
            Work::Insert(tasks) => format!("remote_{server}insert_{tasks}"),
            Work::AtOnce(calls) => format!("remote_{server}insert_at_once_{}k", calls / 1_000),
            Work::Point => format!("remote_{server}point_query"),
            Work::Transaction => format!("remote_{server}transaction"),
        }
    }

    pub fn info(self) -> Info {
        let server = if self.is_libsql { "a libSQL server" } else { "a cluster whose commits take 2 ms" };
        let about = match self.work {
            Work::Insert(tasks) => format!("inserts of {tasks} tasks on {server}"),
            Work::AtOnce(calls) => format!("{calls} inserts that begin at once on {server}"),
            Work::Point => format!("a point query on {server}"),
            Work::Transaction => format!("a transaction of two inserts on {server}"),
        };
        let unit = match self.work {
            Work::Point => "queries",
            Work::Transaction => "transactions",
            Work::Insert(_) | Work::AtOnce(_) => "inserts",
        };
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
    let server = match lane.is_libsql {
        true => Server::Sqld(Sqld::start()?),
        false => Server::Double(Double::start()?),
    };
    let plain = Remote::connect(&server.address())?;
    plain.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a, b)", ()).await?;
    plain.execute("CREATE TABLE p (id INTEGER PRIMARY KEY, a)", ()).await?;
    plain.execute_many("INSERT INTO p VALUES (?, ?)", (0..ROWS).map(|id| (id, format!("row {id}")))).await?;
    if let Server::Double(double) = &server {
        double.commits_take(COMMIT_US)?;
    }
    let client = Client::new(kind, &server)?;
    client.insert(-1).await?;
    let lasts = Duration::from_millis(if quick { 50 } else { 2_000 });
    let measured = match lane.work {
        Work::Insert(tasks) => inserts(&client, tasks, lasts).await?,
        Work::AtOnce(calls) => at_once(&client, if quick { calls / 100 } else { calls }).await?,
        Work::Point => points(&client, lasts).await?,
        Work::Transaction => transactions(&client, lasts).await?,
    };
    let each = match lane.work {
        Work::Point => 0,
        Work::Transaction => 2,
        Work::Insert(_) | Work::AtOnce(_) => 1,
    };
    let rows: i64 = plain.query_value("SELECT count(*) FROM t", ()).await?;
    ensure!(u64::try_from(rows)? == measured.ops * each + 1, "{rows} rows of {} calls", measured.ops);
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

async fn transactions(client: &Client, lasts: Duration) -> Result<Measured> {
    let mut timing = Timing::begin()?;
    let began = std::time::Instant::now();
    while began.elapsed() < lasts {
        timing.time(client.transaction(1)).await?;
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
