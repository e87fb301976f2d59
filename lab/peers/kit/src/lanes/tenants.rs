//! tenants_10k: 10,000 databases in one process, of which 100 are in use at a time.
//!
//! A database for each user of a service. The first use of a set opens its databases; then each is written and read a few
//! times in turn, and the next set is in use. A library that is made for it keeps all that were opened; with another one the
//! program closes those that are not in use. The sample is one insert and one select; `open_p50_us` and its like are opens of
//! existing files in the system's cache. `rss_per_database_bytes` is the growth of the resident size over the trial, and
//! `threads_at_end` the number of threads before anything is closed; both are left out where the kernel does not tell them.

use std::fs;
use std::path::PathBuf;

use anyhow::{Result, ensure};

use crate::data::{self, INSERT_T, T};
use crate::lane::{Lane, Trial};
use crate::measure::{Latencies, Measured, Timing};
use crate::peer::{Durability, Peer, Setup, Table};
use crate::process;

const DATABASES: usize = 10_000;
const IN_USE: usize = 100;
const ROUNDS: usize = 3;
/// Of so many databases that were kept, the content of one is checked at the end, which opens it once more.
const CHECKED: usize = 10;
const LAST: &str = "SELECT value FROM t WHERE id = ?";

pub(super) fn lanes<P: Peer>() -> Vec<Lane> {
    let about = "10,000 databases of which 100 are in use at a time";
    vec![Lane::new("process", "tenants_10k", about, "uses", run::<P>)]
}

async fn run<P: Peer>(trial: Trial) -> Result<Measured> {
    let paths = make_files::<P>(&trial, trial.size(DATABASES, 10)).await?;
    let before = process::rss();
    let (mut kept, mut opens) = (Vec::new(), Latencies::default());
    let mut timing = Timing::begin()?;
    for set in paths.chunks(IN_USE) {
        let mut open = Vec::new();
        for path in set {
            let setup = Setup { name: trial.peer.clone(), path: path.clone(), durability: Durability::Normal };
            open.push(opens.time(P::open(&setup)).await?);
        }
        for round in 0..ROUNDS {
            for peer in &open {
                timing.time(insert_and_select(peer, round)).await?;
            }
        }
        timing.pause()?;
        if P::KEEPS_MANY {
            kept.append(&mut open);
        }
        for peer in open {
            peer.close().await?;
        }
        timing.resume()?;
    }
    let mut measured = timing.end((paths.len() * ROUNDS) as u64)?;
    measured.extra_latencies("open", &opens);
    if let (Some(before), Some(after)) = (before, process::rss()) {
        measured.extra("rss_per_database_bytes", after.saturating_sub(before) / paths.len() as u64);
    }
    if let Some(threads) = process::threads() {
        measured.extra("threads_at_end", threads);
    }
    for (number, peer) in kept.into_iter().enumerate() {
        if number % CHECKED == 0 {
            data::expect_t(&peer, ROUNDS).await?;
        }
        peer.close().await?;
    }
    Ok(measured)
}

/// Makes the databases, each with an empty table, by copies of one that the peer made and closed.
pub(super) async fn make_files<P: Peer>(trial: &Trial, count: usize) -> Result<Vec<PathBuf>> {
    let first = trial.open::<P>().await?;
    first.execute(T, &[]).await?;
    first.close().await?;
    let mut paths = Vec::with_capacity(count);
    for number in 0..count {
        let path = trial.dir.join(format!("tenant-{number}.db"));
        fs::copy(trial.database(), &path)?;
        paths.push(path);
    }
    Ok(paths)
}

pub(super) async fn insert_and_select<P: Peer>(peer: &P, round: usize) -> Result<()> {
    let name = &data::names(round + 1)[round];
    peer.execute(INSERT_T, &[name.as_str().into(), data::value(round).into()]).await?;
    let found = peer.query::<(f64,)>(LAST, &[(round as i64 + 1).into()]).await?.records()?;
    ensure!(found == [(data::value(round),)], "{found:?} is not what was written");
    Ok(())
}
