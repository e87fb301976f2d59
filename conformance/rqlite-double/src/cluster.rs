//! The cluster: who leads, what is committed, and how far each follower is.
//!
//! Owns: the committed database, and a copy for the followers that is behind by a time. Under one lock. Invariant: the followers' copy
//! is the committed database of an earlier time. Leaves out: HTTP.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use rusqlite::Connection;
use serde::Deserialize;
use serde_json::Value;

use crate::faults::{Fault, Faults};
use crate::statements::{Failed, Ways, run};

pub(crate) struct Cluster {
    pub(crate) nodes: Vec<String>,
    pub(crate) leader: Option<usize>,
    pub(crate) faults: Faults,
    /// How long a commit takes.
    pub(crate) commit: Duration,
    /// Held while a commit takes its time, if one waits for the other.
    pub(crate) queue: Option<Arc<tokio::sync::Mutex<()>>>,
    /// How far the followers are behind.
    lag: Duration,
    committed: Connection,
    followers: Connection,
    /// What the followers have not executed yet.
    log: VecDeque<(Instant, Vec<u8>, Ways)>,
    pub(crate) requests: u64,
    /// How often `/status` was asked for, and whether its permission is missing.
    pub(crate) looks: u64,
    refuses_status: bool,
    applied: u64,
    /// A node that the others do not reach, and how much of the log it has.
    cut: Option<(usize, u64)>,
    /// How often an order has released what waits.
    pub(crate) releases: u64,
    pub(crate) held: Vec<(Bytes, Ways)>,
}

/// What the double is told. What is not named stays.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Order {
    #[serde(default)]
    script: Vec<Fault>,
    /// What is left of scripts is dropped first.
    #[serde(default)]
    clear: bool,
    chance: Option<f64>,
    #[serde(default)]
    seed: u64,
    commit_us: Option<u64>,
    /// One commit waits for the other.
    commits_queue: Option<bool>,
    lag_ms: Option<u64>,
    leader: Option<usize>,
    refuses_status: Option<bool>,
    /// This node is cut off from the others, until another one is.
    cut: Option<usize>,
    /// As rqlite's flag `-fk`.
    #[serde(default)]
    foreign_keys: bool,
    /// Executes what is held, and what waits.
    #[serde(default)]
    release: bool,
    /// The leader is not one any more, and there is no other.
    #[serde(default)]
    headless: bool,
}

impl Cluster {
    pub(crate) fn new(nodes: Vec<String>) -> Self {
        let open = || Connection::open_in_memory().expect("a database in memory");
        Self {
            nodes,
            leader: Some(0),
            faults: Faults::default(),
            commit: Duration::ZERO,
            queue: None,
            lag: Duration::from_millis(75),
            committed: open(),
            followers: open(),
            log: VecDeque::new(),
            requests: 0,
            looks: 0,
            refuses_status: false,
            applied: 0,
            cut: None,
            releases: 0,
            held: Vec::new(),
        }
    }

    pub(crate) fn order(&mut self, order: Order) {
        if order.clear {
            self.faults.clear();
        }
        if order.foreign_keys {
            for database in [&self.committed, &self.followers] {
                let _ = database.execute_batch("PRAGMA foreign_keys = ON");
            }
        }
        if order.release {
            self.releases += 1;
            for (body, ways) in std::mem::take(&mut self.held) {
                let _ = self.apply(&body, ways);
            }
        }
        self.faults.script(order.script);
        if let Some(chance) = order.chance {
            self.faults.by_chance(order.seed, chance);
        }
        self.commit = order.commit_us.map_or(self.commit, Duration::from_micros);
        if let Some(queues) = order.commits_queue {
            self.queue = queues.then(Arc::default);
        }
        self.lag = order.lag_ms.map_or(self.lag, Duration::from_millis);
        self.refuses_status = order.refuses_status.unwrap_or(self.refuses_status);
        if let Some(node) = order.cut {
            self.cut = Some((node, self.applied));
        }
        self.leader = if order.headless { None } else { order.leader.or(self.leader) };
    }

    /// Another node leads.
    pub(crate) fn elect(&mut self) {
        self.leader = self.leader.map(|leader| (leader + 1) % self.nodes.len());
    }

    /// Commits a request, and returns its results.
    pub(crate) fn apply(&mut self, body: &[u8], ways: Ways) -> Result<Vec<Value>, Failed> {
        let results = run(&self.committed, body, ways);
        self.applied += 1;
        self.apply_elsewhere(body, ways);
        results
    }

    pub(crate) fn read(&mut self, body: &[u8], ways: Ways, at_leader: bool) -> Result<Vec<Value>, Failed> {
        if at_leader {
            return run(&self.committed, body, ways);
        }
        self.follow();
        run(&self.followers, body, ways)
    }

    /// The followers execute what they have by now.
    fn follow(&mut self) {
        while let Some((at, body, ways)) = self.log.front()
            && at.elapsed() >= self.lag
        {
            let _ = run(&self.followers, body, *ways);
            self.log.pop_front();
        }
    }

    /// The other nodes execute a request, and the leader does not.
    pub(crate) fn apply_elsewhere(&mut self, body: &[u8], ways: Ways) {
        self.log.push_back((Instant::now(), body.to_vec(), ways));
    }

    /// Who leads, as a node knows it.
    pub(crate) fn leader_by(&self, node: usize) -> Option<usize> {
        self.leader.filter(|_| self.cut.is_none_or(|(cut, _)| cut != node))
    }

    /// How much of the log the node has executed, and whether it knows of a leader. `None`: the client may not know.
    pub(crate) fn status(&mut self, node: usize) -> Option<(u64, bool)> {
        self.looks += 1;
        self.follow();
        let behind = if self.leader == Some(node) { 0 } else { self.log.len() as u64 };
        let applied = match self.cut {
            Some((cut, applied)) if cut == node => applied,
            _ => self.applied.saturating_sub(behind),
        };
        (!self.refuses_status).then(|| (applied, self.leader_by(node).is_some()))
    }
}
