//! burst_8k: 6,000 inserts of 8 KiB as fast as they are awaited, and a point query after every 200. burst_8k_long: 60,000.
//!
//! The sample is one insert; `read_*` are the point queries. `checkpoint_*` are the inserts during which the database
//! file was written, which in WAL mode only a checkpoint does, whoever ran it. `wal_frames_*` is SQLite's own account of
//! the WAL at the end, where the peer lets one ask.

use anyhow::{Result, ensure};

use super::payloads::{self, BLOBS, INSERT, Payload, SELECT};
use crate::lane::{Lane, Trial};
use crate::measure::{Latencies, Measured, Timing, timed};
use crate::peer::{Peer, Table};
use crate::record::sum_of;
use crate::traffic::Traffic;
use crate::wal;

const READ_EVERY: i64 = 200;

pub(super) fn lanes<P: Peer>() -> Vec<Lane> {
    let about = "6,000 inserts of 8 KiB back to back, a point query after every 200";
    let about_long = "60,000 inserts of 8 KiB back to back, a point query after every 200";
    vec![
        Lane::new("tails", "burst_8k", about, "inserts", |trial| run::<P>(trial, 6_000)).release(),
        Lane::new("tails", "burst_8k_long", about_long, "inserts", |trial| run::<P>(trial, 60_000)).release(),
    ]
}

async fn run<P: Peer>(trial: Trial, inserts: usize) -> Result<Measured> {
    let count = i64::try_from(trial.size(inserts, 600))?;
    let peer = trial.open::<P>().await?;
    peer.execute(BLOBS, &[]).await?;
    let (mut payload, mut traffic) = (Payload::new(), Traffic::default());
    let (mut reads, mut checkpoints) = (Latencies::default(), Latencies::default());
    let mut written = wal::written(&trial.database())?;
    let watch = wal::Watch::begin(trial.wal());
    let mut timing = Timing::begin()?;
    for id in 1..=count {
        let (_, latency) = timed(peer.execute(INSERT, &[id.into(), payload.of(id).into()])).await?;
        timing.latencies.record(latency);
        let now = wal::written(&trial.database())?;
        if now != written {
            checkpoints.record(latency);
            written = now;
        }
        if id % READ_EVERY == 0 {
            let earlier = traffic.below(usize::try_from(id)?) as i64 + 1;
            let sum = reads.query::<P, (i64, Vec<u8>)>(&peer, SELECT, &[earlier.into()]).await?;
            ensure!(sum == sum_of(&[(earlier, Payload::new().of(earlier).to_vec())]), "row {earlier} is not itself");
        }
    }
    let mut measured = timing.end(count as u64)?;
    watch.end(&mut measured)?;
    measured.extra_latencies("read", &reads);
    measured.extra_latencies("checkpoint", &checkpoints);
    measured.extra("checkpoints", checkpoints.len());
    if let Ok(state) = peer.query::<(i64, i64, i64)>("PRAGMA wal_checkpoint(NOOP)", &[]).await
        && let [(_, frames, copied)] = state.records()?[..]
    {
        measured.extra("wal_frames_end", frames);
        measured.extra("wal_frames_copied_end", copied);
    }
    payloads::expect(&peer, count).await?;
    peer.close().await?;
    Ok(measured)
}
