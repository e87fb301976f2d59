//! loop_gap, loop_gap_ready: how late the other tasks of an event loop run while calls are awaited on it.
//!
//! A runtime of one thread ticks every millisecond, in turns with a load and without any. The load is one call after
//! another: a row by its key, 20 rows, an insert, an update; one of 1,000 counts pairs of rows instead, which takes tens of
//! milliseconds. After each call the loop has its turn; in `loop_gap_ready` only if the call gives it one, and no call is
//! long. `gap_p999_us` and `longest_gap_us` are the gaps between ticks under load, `idle_gap_p999_us` and
//! `idle_longest_gap_us` those of the turns without, and `excess_*` what the load adds to them.
//! `polls_cpu_seconds` is the CPU time of all polls of the calls, `polls_cpu_per_call_us` that of one call's, `poll_*` as in
//! `caller_polls`. The sample is one call, and every answer is checked.
//!
//! The budget: an excess at p99.9 and at the longest gap of at most the best peer's.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use tokio::task::yield_now;

use crate::data::{self, INSERT_T, Item, SELECT_ITEM, T};
use crate::lane::{Lane, Trial};
use crate::measure::{Latencies, Measured, Timing};
use crate::peer::{Peer, Table};
use crate::polls::Polls;
use crate::record::{Record, Sum, sum_of};
use crate::ticker::Ticker;
use crate::value::Value;

const SELECT_RANGE: &str =
    "SELECT id, name, description, value, category, created_at FROM items WHERE id BETWEEN ? AND ?";
const UPDATE: &str = "UPDATE t SET value = value + 1 WHERE id = ?";
const PAIRS: &str = "SELECT count(*) FROM items a JOIN items b ON b.id > a.id";
const TOTAL: &str = "SELECT count(*), sum(value) FROM t";

const ROWS: usize = 1000;
const RANGE: usize = 20;
const LONG_EVERY: u64 = 1000;

pub(super) fn lanes<P: Peer>() -> Vec<Lane> {
    let about = "gaps of a 1 ms ticker beside a mixed load, and what they exceed those of an idle loop by: at most the best \
         peer's";
    let ready = "gaps of a 1 ms ticker beside a task that awaits one short call after another and never yields";
    [("loop_gap", about, Beside::Yields), ("loop_gap_ready", ready, Beside::Asks)]
        .map(|(name, about, beside)| {
            let run = move |trial| run::<P>(trial, beside);
            Lane::new("process", name, about, "calls", run).release().current_thread(true)
        })
        .into()
}

/// What the task does beside the calls.
#[derive(Clone, Copy, PartialEq)]
enum Beside {
    Yields,
    Asks,
}

async fn run<P: Peer>(trial: Trial, beside: Beside) -> Result<Measured> {
    let turns = trial.size(5, 2);
    let each = if trial.quick { Duration::from_millis(30) } else { Duration::from_secs(2) };
    let mut load = Load::<P>::open(&trial).await?;
    let (mut idle, mut gaps) = (Latencies::default(), Latencies::default());
    for _ in 0..turns {
        let ticker = Ticker::begin();
        tokio::time::sleep(each).await;
        idle.merge(&ticker.end().await?);
        let ticker = Ticker::begin();
        load.serve(each, beside).await?;
        gaps.merge(&ticker.end().await?);
    }
    let mut measured = load.end().await?;
    for (name, of) in [("gap_p999_us", 0.999), ("longest_gap_us", 1.0)] {
        measured.extra(name, gaps.us(of));
        measured.extra(&format!("idle_{name}"), idle.us(of));
        measured.extra(&format!("excess_{name}"), gaps.us(of) - idle.us(of));
    }
    measured.extra("ticks", gaps.len());
    Ok(measured)
}

/// The one that asks, and what its polls took.
struct Load<P> {
    peer: P,
    polls: Polls,
    timing: Timing,
    /// What each row of `items` is, and each twenty of them.
    rows: Vec<Sum>,
    ranges: Vec<Sum>,
    inserts: usize,
    updates: usize,
}

impl<P: Peer> Load<P> {
    async fn open(trial: &Trial) -> Result<Self> {
        let peer = trial.open::<P>().await?;
        data::fill_items(&peer, ROWS).await?;
        peer.execute(T, &[]).await?;
        let items = data::items(ROWS);
        let mut timing = Timing::begin()?;
        timing.pause()?;
        Ok(Self {
            peer,
            polls: Polls::default(),
            timing,
            rows: items.chunks(1).map(sum_of).collect(),
            ranges: items.chunks(RANGE).map(sum_of).collect(),
            inserts: 0,
            updates: 0,
        })
    }

    async fn serve(&mut self, time: Duration, beside: Beside) -> Result<()> {
        self.timing.resume()?;
        let ends = Instant::now() + time;
        while Instant::now() < ends {
            let call = self.timing.latencies.len();
            let yields = beside == Beside::Yields;
            self.call(call, yields && call % LONG_EVERY == LONG_EVERY / 2).await?;
            if yields {
                yield_now().await;
            }
        }
        self.timing.pause()
    }

    async fn call(&mut self, call: u64, is_long: bool) -> Result<()> {
        let at = usize::try_from(call / 4)?;
        match call % 4 {
            _ if is_long => {
                let pairs = (ROWS * (ROWS - 1) / 2) as i64;
                self.query::<(i64,)>(PAIRS, &[], sum_of(&[(pairs,)])).await
            }
            0 => {
                let row = at % ROWS;
                self.query::<Item>(SELECT_ITEM, &[(row as i64 + 1).into()], self.rows[row]).await
            }
            1 => {
                let range = at % self.ranges.len();
                let first = (range * RANGE) as i64 + 1;
                let params = [first.into(), (first + RANGE as i64 - 1).into()];
                self.query::<Item>(SELECT_RANGE, &params, self.ranges[range]).await
            }
            2 => {
                let (name, value) = (format!("item_{}", self.inserts), data::value(self.inserts));
                self.inserts += 1;
                self.write(INSERT_T, &[name.into(), value.into()]).await
            }
            _ => {
                self.updates += 1;
                self.write(UPDATE, &[((self.updates % self.inserts) as i64 + 1).into()]).await
            }
        }
    }

    async fn query<R: Record>(&mut self, sql: &'static str, params: &[Value<'_>], expected: Sum) -> Result<()> {
        let call = self.polls.time(self.peer.query::<R>(sql, params));
        let found = self.timing.time(call).await?.touch();
        ensure!(found == expected, "the rows of {params:?} are not those that were written");
        Ok(())
    }

    async fn write(&mut self, sql: &'static str, params: &[Value<'_>]) -> Result<()> {
        let call = self.polls.time(self.peer.execute(sql, params));
        let changed = self.timing.time(call).await?;
        ensure!(changed == 1, "{sql} changed {changed} rows");
        Ok(())
    }

    async fn end(self) -> Result<Measured> {
        let calls = self.timing.latencies.len();
        let mut measured = self.timing.end(calls)?;
        self.polls.report(&mut measured).await?;
        measured.extra("polls_cpu_per_call_us", self.polls.cpu().as_secs_f64() * 1e6 / calls as f64);
        let values: f64 = (0..self.inserts).map(data::value).sum();
        data::expect_rows(&self.peer, TOTAL, &[(self.inserts as i64, values + self.updates as f64)]).await?;
        self.peer.close().await?;
        Ok(measured)
    }
}
