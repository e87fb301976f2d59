//! caller_polls_{points,inserts,ranges,mixed}: for how long one poll of a call holds the runtime's thread.
//!
//! One caller on a current-thread runtime, each poll of each call timed. `poll_*_us` is the clock, `poll_cpu_*_us` the CPU
//! time of the thread; `empty_poll_*` are polls that do nothing, the cost of reading both. A point query answers one
//! row, a range 100, and `mixed` adds to these and to inserts what takes long: all rows, and an INSERT over 2000 rows. The
//! sample is one call. What the program does with the rows is its own work and in neither.

use std::sync::Arc;

use anyhow::{Result, ensure};

use crate::data::{self, INSERT_T, Item, SELECT_ITEM, SELECT_ITEMS, T};
use crate::lane::{Lane, Trial};
use crate::measure::{Measured, Timing};
use crate::peer::{Peer, Table};
use crate::polls::Polls;
use crate::record::{Sum, sum_of};
use crate::value::{Rows, Value};

const SELECT_RANGE: &str =
    "SELECT id, name, description, value, category, created_at FROM items WHERE id BETWEEN ? AND ?";
const RANGE: usize = 100;
const MANY: usize = 2000;

#[derive(Debug, Clone, Copy)]
enum Load {
    Points,
    Inserts,
    Ranges,
    Mixed,
}

pub(super) fn lanes<P: Peer>() -> Vec<Lane> {
    let loads = [
        ("points", Load::Points, "one row by primary key"),
        ("inserts", Load::Inserts, "a small insert"),
        ("ranges", Load::Ranges, "100 rows by primary key"),
        ("mixed", Load::Mixed, "all of these and long ones"),
    ];
    let lane = |(word, load, what)| {
        let about = format!("how long one poll holds the runtime's thread: {what}");
        Lane::new("process", format!("caller_polls_{word}"), about, "calls", move |trial| run::<P>(trial, load))
            .current_thread(true)
    };
    loads.into_iter().map(lane).collect()
}

async fn run<P: Peer>(trial: Trial, load: Load) -> Result<Measured> {
    let mut caller = Caller::<P>::open(&trial, trial.size(10_000, 500)).await?;
    let (calls, rounds) = (trial.size(20_000, 200), trial.size(100, 3));
    match load {
        Load::Points => caller.points(calls).await?,
        Load::Inserts => caller.inserts(calls).await?,
        Load::Ranges => caller.ranges(calls / 4).await?,
        Load::Mixed => {
            for _ in 0..rounds {
                caller.points(100).await?;
                caller.inserts(50).await?;
                caller.ranges(25).await?;
                caller.all().await?;
                caller.many().await?;
            }
        }
    }
    caller.end().await
}

/// The one that asks, what it has asked for, and what its polls took.
struct Caller<P> {
    peer: P,
    polls: Polls,
    timing: Timing,
    /// What each row of `items`, each hundred of them and all of them are.
    rows: Vec<Sum>,
    hundreds: Vec<Sum>,
    all: Sum,
    /// Rows of `t` so far.
    written: usize,
}

impl<P: Peer> Caller<P> {
    async fn open(trial: &Trial, rows: usize) -> Result<Self> {
        let peer = trial.open::<P>().await?;
        data::fill_items(&peer, rows).await?;
        peer.execute(T, &[]).await?;
        let items = data::items(rows);
        Ok(Self {
            peer,
            polls: Polls::default(),
            rows: items.chunks(1).map(sum_of).collect(),
            hundreds: items.chunks(RANGE).map(sum_of).collect(),
            all: sum_of(&items),
            written: 0,
            timing: Timing::begin()?,
        })
    }

    async fn query(&mut self, sql: &'static str, params: &[Value<'_>], expected: Sum) -> Result<()> {
        let call = self.polls.time(self.peer.query::<Item>(sql, params));
        let found = self.timing.time(call).await?.touch();
        ensure!(found == expected, "the rows of {params:?} are not those that were written");
        Ok(())
    }

    async fn points(&mut self, count: usize) -> Result<()> {
        for i in 0..count {
            let row = i % self.rows.len();
            self.query(SELECT_ITEM, &[(row as i64 + 1).into()], self.rows[row]).await?;
        }
        Ok(())
    }

    async fn ranges(&mut self, count: usize) -> Result<()> {
        for i in 0..count {
            let at = i % self.hundreds.len();
            let first = (at * RANGE) as i64 + 1;
            let params = [first.into(), (first + RANGE as i64 - 1).into()];
            self.query(SELECT_RANGE, &params, self.hundreds[at]).await?;
        }
        Ok(())
    }

    async fn all(&mut self) -> Result<()> {
        self.query(SELECT_ITEMS, &[], self.all).await
    }

    async fn inserts(&mut self, count: usize) -> Result<()> {
        for _ in 0..count {
            let (name, value) = (format!("item_{}", self.written), data::value(self.written));
            let params = [name.into(), value.into()];
            self.timing.time(self.polls.time(self.peer.execute(INSERT_T, &params))).await?;
            self.written += 1;
        }
        Ok(())
    }

    async fn many(&mut self) -> Result<()> {
        let row = |i: usize| vec![format!("item_{i}").into(), data::value(i).into()];
        let rows: Rows = Arc::new((self.written..self.written + MANY).map(row).collect());
        let changed = self.timing.time(self.polls.time(self.peer.many(INSERT_T, &rows))).await?;
        ensure!(changed == MANY as u64, "{changed} rows were written");
        self.written += MANY;
        Ok(())
    }

    async fn end(self) -> Result<Measured> {
        let calls = self.timing.latencies.len();
        let mut measured = self.timing.end(calls)?;
        self.polls.report(&mut measured).await?;
        data::expect_t(&self.peer, self.written).await?;
        self.peer.close().await?;
        Ok(measured)
    }
}
