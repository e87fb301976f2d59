//! Live queries that tasks wait for.
//!
//! Owns: a task for each live query, which notes what was delivered and when, and the last result of each. Invariant: a
//! result that does not come within a minute is an error. Leaves out: what is expected.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

use crate::peer::{Live, Peer, Table};
use crate::record::{Record, Sum};
use crate::value::Value;

/// A result that has not come after this time never comes.
const HANGS: Duration = Duration::from_secs(60);

pub(super) type Params = Vec<Value<'static>>;

/// A result that was delivered.
pub(super) struct Arrival {
    /// The place of its query.
    pub(super) query: usize,
    /// When its task had touched it.
    pub(super) at: Instant,
    pub(super) sum: Sum,
}

/// Live queries of one text, each with other parameters.
pub(super) struct Watch {
    sql: &'static str,
    params: Vec<Params>,
    /// The last result of each, and when it came.
    last: Vec<Option<(Sum, Instant)>>,
    /// How many results were taken.
    pub(super) taken: u64,
    arrivals: UnboundedReceiver<Result<Arrival>>,
    tasks: JoinSet<()>,
}

impl Watch {
    /// Begins them, and awaits the first result of each.
    pub(super) async fn begin<P: Peer>(peer: &P, sql: &'static str, params: Vec<Params>) -> Result<Self> {
        let (sender, arrivals) = unbounded_channel();
        let mut tasks = JoinSet::new();
        for (query, params) in params.iter().enumerate() {
            tasks.spawn(wait(peer.live(sql, params)?, query, sender.clone()));
        }
        let last = vec![None; params.len()];
        let mut watch = Self { sql, params, last, taken: 0, arrivals, tasks };
        for _ in 0..watch.params.len() {
            let first = watch.next().await?;
            ensure!(watch.taken == watch.last.iter().flatten().count() as u64, "query {} came twice", first.query);
        }
        Ok(watch)
    }

    /// Awaits the next result of any of them.
    pub(super) async fn next(&mut self) -> Result<Arrival> {
        let arrival = tokio::time::timeout(HANGS, self.arrivals.recv()).await;
        let Some(arrival) = arrival.with_context(|| format!("no result of {} came within {HANGS:?}", self.sql))? else {
            bail!("every live query of {} is over", self.sql);
        };
        self.note(arrival)
    }

    fn note(&mut self, arrival: Result<Arrival>) -> Result<Arrival> {
        let arrival = arrival?;
        self.last[arrival.query] = Some((arrival.sum, arrival.at));
        self.taken += 1;
        Ok(arrival)
    }

    /// Takes the results that are there.
    pub(super) fn take(&mut self) -> Result<()> {
        while let Ok(arrival) = self.arrivals.try_recv() {
            self.note(arrival)?;
        }
        Ok(())
    }

    /// Awaits results until the last one of each is the expected one. Returns when the last of them came.
    pub(super) async fn until(&mut self, expected: &[Sum]) -> Result<Instant> {
        ensure!(expected.len() == self.last.len(), "{} results are expected of {}", expected.len(), self.last.len());
        let is_there = |last: &Option<(Sum, Instant)>, expected: &Sum| last.is_some_and(|(sum, _)| sum == *expected);
        let mut there: Vec<bool> = self.last.iter().zip(expected).map(|(last, sum)| is_there(last, sum)).collect();
        let mut missing = there.iter().filter(|there| !**there).count();
        while missing > 0 {
            let at = self.next().await?.query;
            let before = std::mem::replace(&mut there[at], is_there(&self.last[at], &expected[at]));
            missing = missing + usize::from(before) - usize::from(there[at]);
        }
        self.last.iter().flatten().map(|(_, at)| *at).max().context("there is no live query")
    }

    /// Awaits results until the last one of each equals what the same query answers now.
    pub(super) async fn settle<P: Peer, R: Record>(&mut self, peer: &P) -> Result<Instant> {
        let mut fresh = Vec::with_capacity(self.params.len());
        for params in &self.params {
            fresh.push(peer.query::<R>(self.sql, params).await?.touch());
        }
        self.until(&fresh).await
    }

    /// Ends them. A result that was delivered and not taken is an error.
    pub(super) async fn end(mut self) -> Result<()> {
        self.tasks.shutdown().await;
        if let Ok(arrival) = self.arrivals.try_recv() {
            bail!("query {} of {} delivered a result that nobody expected", arrival?.query, self.sql);
        }
        Ok(())
    }
}

async fn wait(mut live: impl Live, query: usize, sender: UnboundedSender<Result<Arrival>>) {
    loop {
        let next = live.next().await.map(|sum| Arrival { query, at: Instant::now(), sum });
        let is_over = next.is_err();
        if sender.send(next).is_err() || is_over {
            return;
        }
    }
}
