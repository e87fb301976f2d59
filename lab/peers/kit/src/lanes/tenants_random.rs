//! tenants_random: 10,000 databases in one process, which 200 tasks use at random.
//!
//! There is no set that is in use for a while, as in `tenants_10k`: nearly every use is of a database that was not used for long,
//! and 200 are used at once. A library that is made for it keeps all of them open, and has descriptors for a few: at most
//! `DESCRIPTORS` at any moment, which is checked after each use. With another one the program opens the database for each use.
//! The sample is one insert and one select; `descriptors` is the highest number seen.

use std::path::PathBuf;

use anyhow::{Result, ensure};

use super::tenants::{insert_and_select, make_files};
use crate::data;
use crate::lane::{Lane, Trial, beside};
use crate::measure::{Latencies, Measured, Timing};
use crate::peer::{Durability, Peer, Setup};
use crate::process;
use crate::traffic::Traffic;

const DATABASES: usize = 10_000;
const TASKS: usize = 200;
const USES: usize = 100;
/// Twice the databases that may have connections by default, with the descriptors of each.
const DESCRIPTORS: u64 = 2 * 64 * 8;

pub(super) fn lanes<P: Peer>() -> Vec<Lane> {
    let about = "10,000 databases which 200 tasks use at random";
    vec![Lane::new("process", "tenants_random", about, "uses", run::<P>).tasks()]
}

/// A database of a task, and how often the task has used it.
struct Tenant<P> {
    setup: Setup,
    /// `None` while the program keeps it closed.
    peer: Option<P>,
    uses: usize,
}

async fn run<P: Peer>(trial: Trial) -> Result<Measured> {
    let paths = make_files::<P>(&trial, trial.size(DATABASES, 400)).await?;
    let before = process::descriptors().unwrap_or(0);
    let mut each: Vec<Vec<PathBuf>> = vec![Vec::new(); TASKS];
    for (number, path) in paths.into_iter().enumerate() {
        each[number % TASKS].push(path);
    }
    let uses = trial.size(USES, 4);
    let mut timing = Timing::begin()?;
    let begin = |(task, paths)| beside::<P, _>(one_task::<P>(trial.peer.clone(), task, paths, uses));
    let tasks: Vec<_> = each.into_iter().enumerate().map(begin).collect();
    let mut highest = 0;
    for task in tasks {
        let (latencies, descriptors) = task.await??;
        timing.latencies.merge(&latencies);
        highest = highest.max(descriptors.saturating_sub(before));
    }
    let mut measured = timing.end((TASKS * uses) as u64)?;
    ensure!(
        !P::KEEPS_MANY || highest <= DESCRIPTORS,
        "{highest} descriptors were open, and {DESCRIPTORS} are the bound"
    );
    measured.extra("descriptors", highest);
    Ok(measured)
}

/// Uses these databases at random. Returns the latencies, and the highest number of descriptors.
async fn one_task<P: Peer>(name: String, task: usize, paths: Vec<PathBuf>, uses: usize) -> Result<(Latencies, u64)> {
    let tenant = |path| {
        let setup = Setup { name: name.clone(), path, durability: Durability::Normal };
        Tenant::<P> { setup, peer: None, uses: 0 }
    };
    let mut tenants: Vec<_> = paths.into_iter().map(tenant).collect();
    let (mut latencies, mut traffic, mut highest) = (Latencies::default(), Traffic::default(), 0);
    for _ in 0..uses {
        // The draws of all tasks are the same, their places are not.
        let at = (traffic.below(tenants.len()) + task) % tenants.len();
        latencies.time(tenants[at].use_once()).await?;
        highest = highest.max(process::descriptors().unwrap_or(0));
    }
    for tenant in tenants {
        if let Some(peer) = tenant.peer {
            data::expect_t(&peer, tenant.uses).await?;
            peer.close().await?;
        }
    }
    Ok((latencies, highest))
}

impl<P: Peer> Tenant<P> {
    async fn use_once(&mut self) -> Result<()> {
        let peer = match self.peer.take() {
            Some(peer) => peer,
            None => P::open(&self.setup).await?,
        };
        insert_and_select(&peer, self.uses).await?;
        self.uses += 1;
        if P::KEEPS_MANY {
            self.peer = Some(peer);
            return Ok(());
        }
        peer.close().await
    }
}
