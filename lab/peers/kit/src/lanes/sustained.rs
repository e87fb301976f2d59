//! sustained_8k, sustained_8k_readers: one insert of 8 KiB every 100 us for 20 s, alone or beside three readers.
//!
//! Latency counts from the moment an insert was due, so that one that stalls also delays those behind it, as it does for
//! users; `service_*` counts from the call. `longest_stall_us` is the longest single call. `missed` inserts were due and
//! never begun, because those before took too long. The readers overlap, each awaiting queries of about 300 us.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::payloads::{self, BLOBS, INSERT, Payload};
use crate::data::{self, Item, SELECT_ITEMS};
use crate::lane::{Lane, Trial, beside, on_a_thread};
use crate::measure::{Latencies, Measured, Timing};
use crate::pace::wait_until;
use crate::peer::Peer;
use crate::record::sum_of;
use crate::wal;

const PACE: Duration = Duration::from_micros(100);
const READERS: usize = 3;
const READ_ROWS: usize = 800;

pub(super) fn lanes<P: Peer>() -> Vec<Lane> {
    vec![
        Lane::new("tails", "sustained_8k", "an insert of 8 KiB every 100 us for 20 s", "inserts", |trial| {
            run::<P>(trial, 0)
        })
        .release(),
        Lane::new("tails", "sustained_8k_readers", "the same beside three overlapping readers", "inserts", |trial| {
            run::<P>(trial, READERS)
        })
        .release(),
    ]
}

async fn run<P: Peer>(trial: Trial, readers: usize) -> Result<Measured> {
    let lasts = if trial.quick { Duration::from_millis(200) } else { Duration::from_secs(20) };
    let peer = trial.open::<P>().await?;
    peer.execute(BLOBS, &[]).await?;
    data::fill_items(&peer, READ_ROWS).await?;
    let stop = Arc::new(AtomicBool::new(false));
    let readers: Vec<_> = (0..readers).map(|_| beside::<P, _>(read(peer.clone(), stop.clone()))).collect();
    let watch = wal::Watch::begin(trial.wal());
    let mut timing = Timing::begin()?;
    let paced = on_a_thread(write(peer.clone(), lasts)).await;
    stop.store(true, Ordering::Relaxed);
    let Paced { late, service } = paced??;
    timing.latencies = late;
    let done = timing.latencies.len();
    let mut measured = timing.end(done)?;
    watch.end(&mut measured)?;
    let mut reads = Latencies::default();
    for reader in readers {
        reads.merge(&reader.await??);
    }
    measured.extra_latencies("read", &reads);
    measured.extra("reads", reads.len());
    measured.extra_latencies("service", &service);
    measured.extra("longest_stall_us", service.max_us());
    measured.extra("missed", (lasts.as_micros() / PACE.as_micros()) as u64 - done);
    payloads::expect(&peer, i64::try_from(done)?).await?;
    peer.close().await?;
    Ok(measured)
}

struct Paced {
    late: Latencies,
    service: Latencies,
}

/// Blocks its thread between the inserts.
async fn write<P: Peer>(peer: P, lasts: Duration) -> Result<Paced> {
    let (mut late, mut service) = (Latencies::default(), Latencies::default());
    let mut payload = Payload::new();
    let began = Instant::now();
    let mut due = began;
    for id in 1.. {
        if due >= began + lasts || Instant::now() >= began + lasts {
            break;
        }
        wait_until(due);
        service.time(peer.execute(INSERT, &[id.into(), payload.of(id).into()])).await?;
        late.record(due.elapsed());
        due += PACE;
    }
    Ok(Paced { late, service })
}

async fn read<P: Peer>(peer: P, stop: Arc<AtomicBool>) -> Result<Latencies> {
    let expected = sum_of(&data::items(READ_ROWS));
    let mut latencies = Latencies::default();
    while !stop.load(Ordering::Relaxed) {
        let sum = latencies.query::<P, Item>(&peer, SELECT_ITEMS, &[]).await?;
        ensure!(sum == expected, "the rows are not those that were written");
    }
    Ok(latencies)
}
