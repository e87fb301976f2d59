//! sustained_8k, sustained_8k_readers, sustained_8k_full, sustained_saturated, pace_alone: inserts of 8 KiB for 20 s, begun at
//! fixed points in time; alone, beside three readers, or at durability full, which has an fsync per commit.
//!
//! The pace is half of what `raw` reaches flat out on the same machine (`flat_out`), so that it asks the same of every
//! machine. sustained_saturated has all of it, and no reader keeps the WAL from starting over. Its budget: a p99.9 of at
//! most half of `raw`'s, and a longest WAL (`wal_bytes_max`) below 256 MiB, Flatwater's hard limit.
//!
//! Latency counts from the moment an insert was due, so that one that stalls also delays those behind it, as it does for
//! users; `service_*` counts from the call. `longest_stall_us` is the longest single call. `missed` inserts were due and
//! never begun, because those before took too long. The readers overlap, each awaiting queries of about 300 us. In the end
//! every row that was acknowledged is there.
//!
//! pace_alone: the pace of sustained_8k, and calls that only let time pass. Its tails are the machine's own; what lies below
//! them in the other lanes says nothing about a peer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::flat_out::{FLAT_OUT, FLAT_OUT_FULL};
use super::payloads::{self, BLOBS, INSERT, Payload};
use crate::data::{self, Item, SELECT_ITEMS};
use crate::lane::{Lane, Trial, beside, on_a_thread};
use crate::measure::{Latencies, Measured, Timing};
use crate::pace::wait_until;
use crate::peer::{Durability, Peer};
use crate::record::sum_of;
use crate::wal;

const READERS: usize = 3;
const READ_ROWS: usize = 800;

/// What an insert survives, and who reads meanwhile.
#[derive(Debug, Clone, Copy)]
struct Form {
    durability: Durability,
    readers: usize,
}

/// The share of the floor's rate at which every peer can follow, if nothing stalls.
pub(super) const HALF: f64 = 0.5;

pub(super) fn lanes<P: Peer>() -> Vec<Lane> {
    let normal = Form { durability: Durability::Normal, readers: 0 };
    let full = Form { durability: Durability::Full, readers: 0 };
    let beside_readers = Form { readers: READERS, ..normal };
    let lane = |name, about, form| Lane::new("tails", name, about, "inserts", move |trial| run::<P>(trial, form));
    let saturated = "inserts of 8 KiB for 20 s, as many as raw reaches flat out: a p99.9 of at most half of raw's, \
         a WAL below 256 MiB";
    let alone_about = "nothing at the pace of sustained_8k for 20 s: the machine's own tails";
    vec![
        lane("sustained_8k", "inserts of 8 KiB for 20 s, half as many as raw reaches flat out", normal)
            .paced(FLAT_OUT, HALF)
            .release(),
        lane("sustained_8k_readers", "the same beside three overlapping readers", beside_readers)
            .paced(FLAT_OUT, HALF)
            .release(),
        lane("sustained_8k_full", "the same without readers, durability full", full).paced(FLAT_OUT_FULL, HALF),
        lane("sustained_saturated", saturated, normal).paced(FLAT_OUT, 1.0),
        Lane::new("tails", "pace_alone", alone_about, "calls", alone::<P>).paced(FLAT_OUT, HALF),
    ]
}

async fn alone<P: Peer>(trial: Trial) -> Result<Measured> {
    let (pace, lasts) = (trial.pace()?, lasts(&trial));
    let peer = trial.open::<P>().await?;
    let mut timing = Timing::begin()?;
    let paced = on_a_thread(async move {
        let mut paced = Paced::begin(pace, lasts);
        while paced.next_is_due() {
            // As long as an insert takes the floor.
            let passes = async {
                pass(pace.mul_f64(HALF));
                Ok(())
            };
            paced.time(passes).await?;
        }
        Ok(paced)
    })
    .await??;
    timing.latencies = paced.late.clone();
    let mut measured = timing.end(paced.late.len())?;
    paced.report(&mut measured);
    peer.close().await?;
    Ok(measured)
}

/// Lets time pass.
fn pass(time: Duration) {
    let until = Instant::now() + time;
    while Instant::now() < until {
        std::hint::spin_loop();
    }
}

fn lasts(trial: &Trial) -> Duration {
    if trial.quick { Duration::from_millis(200) } else { Duration::from_secs(20) }
}

async fn run<P: Peer>(trial: Trial, Form { durability, readers }: Form) -> Result<Measured> {
    let (pace, lasts) = (trial.pace()?, lasts(&trial));
    let peer = trial.open_with::<P>(durability).await?;
    peer.execute(BLOBS, &[]).await?;
    data::fill_items(&peer, READ_ROWS).await?;
    let stop = Arc::new(AtomicBool::new(false));
    let readers: Vec<_> = (0..readers).map(|_| beside::<P, _>(read(peer.clone(), stop.clone()))).collect();
    let watch = wal::Watch::begin(trial.wal());
    let mut timing = Timing::begin()?;
    let paced = on_a_thread(write(peer.clone(), pace, lasts)).await;
    stop.store(true, Ordering::Relaxed);
    let paced = paced??;
    timing.latencies = paced.late.clone();
    let done = timing.latencies.len();
    let mut measured = timing.end(done)?;
    watch.end(&mut measured)?;
    let mut reads = Latencies::default();
    for reader in readers {
        reads.merge(&reader.await??);
    }
    measured.extra_latencies("read", &reads);
    measured.extra("reads", reads.len());
    paced.report(&mut measured);
    payloads::expect(&peer, i64::try_from(done)?).await?;
    peer.close().await?;
    Ok(measured)
}

/// Paced calls: from when each was due, from when each was begun, and how many were due and never begun.
pub(super) struct Paced {
    pub(super) late: Latencies,
    service: Latencies,
    pace: Duration,
    /// The next call's.
    due: Instant,
    ends: Instant,
    lasts: Duration,
}

impl Paced {
    fn begin(pace: Duration, lasts: Duration) -> Self {
        let now = Instant::now();
        let (late, service) = (Latencies::default(), Latencies::default());
        Self { late, service, pace, due: now, ends: now + lasts, lasts }
    }

    /// Blocks this thread until the next call is due. False if the time is over.
    fn next_is_due(&self) -> bool {
        if self.due >= self.ends || Instant::now() >= self.ends {
            return false;
        }
        wait_until(self.due);
        true
    }

    /// Awaits the call that is due.
    async fn time<T>(&mut self, call: impl Future<Output = Result<T>>) -> Result<T> {
        let answer = self.service.time(call).await?;
        self.late.record(self.due.elapsed());
        self.due += self.pace;
        Ok(answer)
    }

    pub(super) fn report(&self, measured: &mut Measured) {
        let all = u64::try_from(self.lasts.as_nanos() / self.pace.as_nanos()).unwrap_or(u64::MAX);
        measured.extra_latencies("service", &self.service);
        measured.extra("longest_stall_us", self.service.max_us());
        measured.extra("missed", all.saturating_sub(self.late.len()));
    }
}

/// Inserts rows 1 and so on, one at each `pace`. Blocks its thread between them.
pub(super) async fn write<P: Peer>(peer: P, pace: Duration, lasts: Duration) -> Result<Paced> {
    let mut payload = Payload::new();
    let mut paced = Paced::begin(pace, lasts);
    for id in 1.. {
        if !paced.next_is_due() {
            break;
        }
        paced.time(peer.execute(INSERT, &[id.into(), payload.of(id).into()])).await?;
    }
    Ok(paced)
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
