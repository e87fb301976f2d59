//! flat_out_8k, flat_out_8k_full: inserts of 8 KiB for 5 s, each begun when the one before was answered, at durability normal and
//! full.
//!
//! The sample is one insert. What `raw` reaches here is the floor's rate, its checkpoints included, and the paced lanes
//! (`sustained`, `long_reader`) are paced by a share of it. In the end every row that was acknowledged is there.

use std::time::{Duration, Instant};

use anyhow::Result;

use super::payloads::{self, BLOBS, INSERT, Payload};
use crate::lane::{Lane, Trial};
use crate::measure::{Measured, Timing};
use crate::peer::{Durability, Peer};

pub(super) const FLAT_OUT: &str = "flat_out_8k";
pub(super) const FLAT_OUT_FULL: &str = "flat_out_8k_full";

pub(super) fn lanes<P: Peer>() -> Vec<Lane> {
    let lane =
        |name, about, durability| Lane::new("tails", name, about, "inserts", move |trial| run::<P>(trial, durability));
    vec![
        lane(FLAT_OUT, "inserts of 8 KiB back to back for 5 s", Durability::Normal),
        lane(FLAT_OUT_FULL, "the same, durability full", Durability::Full),
    ]
}

async fn run<P: Peer>(trial: Trial, durability: Durability) -> Result<Measured> {
    let lasts = if trial.quick { Duration::from_millis(100) } else { Duration::from_secs(5) };
    let peer = trial.open_with::<P>(durability).await?;
    peer.execute(BLOBS, &[]).await?;
    let (mut payload, mut done) = (Payload::new(), 0_i64);
    let mut timing = Timing::begin()?;
    let ends = Instant::now() + lasts;
    while Instant::now() < ends {
        done += 1;
        timing.time(peer.execute(INSERT, &[done.into(), payload.of(done).into()])).await?;
    }
    let measured = timing.end(done.cast_unsigned())?;
    payloads::expect(&peer, done).await?;
    peer.close().await?;
    Ok(measured)
}
