//! at_rest: what an open database takes while nobody uses it.
//!
//! The sample is an open of an existing file with one insert and one select. After the last the program waits a second and does
//! nothing. `rest_bytes` is the growth of the resident size since before the first open, `rest_threads` and `rest_descriptors` what
//! there is more of by then; `program_bytes` is the part of this program that is mapped into memory, the lab's kit included, so it
//! says something beside the floor's only. Each is left out where the kernel does not tell it.

use std::time::Duration;

use anyhow::Result;

use super::tenants;
use crate::data;
use crate::lane::{Lane, Trial};
use crate::measure::{Measured, Timing, time};
use crate::peer::{Durability, Peer, Setup};
use crate::process;

const REST_MS: usize = 1_000;
const FIGURES: [&str; 3] = ["rest_bytes", "rest_threads", "rest_descriptors"];

pub(super) fn lanes<P: Peer>() -> Vec<Lane> {
    vec![Lane::new("process", "at_rest", "threads, memory and descriptors of an open database", "opens", run::<P>)]
}

/// What the kernel counts for this process, in the order of `FIGURES`.
fn taken() -> [Option<u64>; 3] {
    [process::rss(), process::threads(), process::descriptors()]
}

async fn run<P: Peer>(trial: Trial) -> Result<Measured> {
    let paths = tenants::make_files::<P>(&trial, 1).await?;
    let setup = Setup { name: trial.peer.clone(), path: paths[0].clone(), durability: Durability::Normal };
    let before = taken();
    let mut timing = Timing::begin()?;
    let peer = time!(timing.latencies, {
        let peer = P::open(&setup).await?;
        tenants::insert_and_select(&peer, 0).await?;
        peer
    });
    let mut measured = timing.end(1)?;
    std::thread::sleep(Duration::from_millis(trial.size(REST_MS, 1) as u64));
    for ((name, before), after) in FIGURES.into_iter().zip(before).zip(taken()) {
        if let (Some(before), Some(after)) = (before, after) {
            measured.extra(name, after.saturating_sub(before));
        }
    }
    if let Some(bytes) = process::mapped_program() {
        measured.extra("program_bytes", bytes);
    }
    data::expect_t(&peer, 1).await?;
    peer.close().await?;
    Ok(measured)
}
