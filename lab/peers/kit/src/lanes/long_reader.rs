//! sustained_8k_long_reader: inserts of 8 KiB for 20 s at the pace of `sustained_8k`, and a read that begins after 2 s and ends
//! after 12.
//!
//! While it is open the WAL cannot start over. `wal_bytes_open` is the most of the WAL that was in use meanwhile, and
//! `recovery_ms` the time from the end of the read until that is below 32 MiB; it is left out if that never came. Where a
//! library does not tell what is in use it is the length of the file, which a WAL keeps when it starts over. Latency and
//! `service_*` are those of `sustained_8k`.

use std::time::{Duration, Instant};

use anyhow::Result;

use super::flat_out::FLAT_OUT;
use super::payloads::{self, BLOBS};
use super::sustained::{HALF, write};
use crate::lane::{Lane, Trial, beside, on_a_thread};
use crate::measure::{Measured, Timing};
use crate::peer::Peer;
use crate::wal::{self, Seen, Watch};

const LIMIT: u64 = 32 << 20;

pub(super) fn lanes<P: Peer>() -> Vec<Lane> {
    let about = "paced inserts of 8 KiB while a read stays open for 10 s: the WAL, and when it is short again";
    vec![Lane::new("tails", "sustained_8k_long_reader", about, "inserts", run::<P>).paced(FLAT_OUT, HALF)]
}

/// When a read began and when it had ended.
type Span = (Instant, Instant);

async fn run<P: Peer>(trial: Trial) -> Result<Measured> {
    let [before, open, lasts] =
        if trial.quick { [20, 80, 200] } else { [2_000, 10_000, 20_000] }.map(Duration::from_millis);
    let pace = trial.pace()?;
    let peer = trial.open::<P>().await?;
    peer.execute(BLOBS, &[]).await?;
    let (asked, file) = (peer.clone(), trial.wal());
    let watch = Watch::of(move || asked.wal_in_use().unwrap_or_else(|| wal::length(&file)));
    let lengths = Watch::begin(trial.wal());
    let mut timing = Timing::begin()?;
    let reader = beside::<P, _>(read(peer.clone(), before, open));
    let paced = on_a_thread(write(peer.clone(), pace, lasts)).await??;
    let span = reader.await??;
    timing.latencies = paced.late.clone();
    let done = timing.latencies.len();
    let mut measured = timing.end(done)?;
    paced.report(&mut measured);
    lengths.end(&mut measured)?;
    report(&watch.seen()?, span, &mut measured)?;
    payloads::expect(&peer, i64::try_from(done)?).await?;
    peer.close().await?;
    Ok(measured)
}

async fn read<P: Peer>(peer: P, before: Duration, open: Duration) -> Result<Span> {
    tokio::time::sleep(before).await;
    let began = Instant::now();
    peer.read_for(open).await?;
    Ok((began, Instant::now()))
}

fn report(seen: &Seen, (began, ended): Span, measured: &mut Measured) -> Result<()> {
    let open = seen.iter().filter(|(at, _)| (began..=ended).contains(at)).map(|(_, bytes)| *bytes).max();
    // In the small form it may be open for too short a time on a busy machine to be looked at.
    open.into_iter().for_each(|bytes| measured.extra("wal_bytes_open", bytes));
    if let Some((at, _)) = seen.iter().find(|(at, bytes)| *at > ended && *bytes < LIMIT) {
        measured.extra("recovery_ms", (*at - ended).as_secs_f64() * 1e3);
    }
    Ok(())
}
