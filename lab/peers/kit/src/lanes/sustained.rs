//! sustained_8k, sustained_8k_readers, sustained_8k_full, pace_alone: one insert of 8 KiB every 100 us for 20 s, alone or beside three
//! readers; and every 2 ms at durability full, which has an fsync per commit.
//!
//! Latency counts from the moment an insert was due, so that one that stalls also delays those behind it, as it does for
//! users; `service_*` counts from the call. `longest_stall_us` is the longest single call. `missed` inserts were due and
//! never begun, because those before took too long. The readers overlap, each awaiting queries of about 300 us.
//!
//! pace_alone: the same pace, and calls that only let time pass. Its tails are the machine's own; what lies below them in
//! the other lanes says nothing about a peer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

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

/// How often an insert is due, what it survives, and who reads meanwhile.
#[derive(Debug, Clone, Copy)]
struct Form {
    pace: Duration,
    durability: Durability,
    readers: usize,
}

/// As fast as every peer can follow, if nothing stalls.
pub(super) const PACE: Duration = Duration::from_micros(100);
const FULL_PACE: Duration = Duration::from_millis(2);

pub(super) fn lanes<P: Peer>() -> Vec<Lane> {
    let normal = Form { pace: PACE, durability: Durability::Normal, readers: 0 };
    let full = Form { pace: FULL_PACE, durability: Durability::Full, readers: 0 };
    let lane = |name, about, form| Lane::new("tails", name, about, "inserts", move |trial| run::<P>(trial, form));
    vec![
        lane("sustained_8k", "an insert of 8 KiB every 100 us for 20 s", normal).release(),
        lane("sustained_8k_readers", "the same beside three overlapping readers", Form { readers: READERS, ..normal })
            .release(),
        lane("sustained_8k_full", "an insert of 8 KiB every 2 ms for 20 s, durability full", full),
        Lane::new("tails", "pace_alone", "nothing every 100 us for 20 s: the machine's own tails", "calls", alone::<P>),
    ]
}

/// What a call of `pace_alone` takes, which is about what an insert does.
const PASSES: Duration = Duration::from_micros(15);

async fn alone<P: Peer>(trial: Trial) -> Result<Measured> {
    let lasts = lasts(&trial);
    let peer = trial.open::<P>().await?;
    let mut timing = Timing::begin()?;
    let paced = on_a_thread(async move {
        let mut paced = Paced::begin(PACE, lasts);
        while paced.next_is_due() {
            paced.time(async { Ok(pass(PASSES)) }).await?;
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

async fn run<P: Peer>(trial: Trial, Form { pace, durability, readers }: Form) -> Result<Measured> {
    let lasts = lasts(&trial);
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
        let all = u64::try_from(self.lasts.as_micros() / self.pace.as_micros()).unwrap_or(u64::MAX);
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
