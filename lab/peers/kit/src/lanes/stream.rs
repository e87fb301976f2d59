//! stream_1m: a million rows of `t`, one by one, none of them kept.
//!
//! The sample is one pass over all rows, each read into an owned value and touched. `peak_growth_bytes` is the growth of
//! the resident size's peak over one pass; it is left out where the kernel does not tell it.
//!
//! The budget: at most 1.1 times `raw`, which steps the statement itself, and less than 8 MiB.

use anyhow::{Result, ensure};

use crate::data::{self, INSERT_T, T};
use crate::lane::{Lane, Trial};
use crate::measure::{Measured, Timing};
use crate::peer::Peer;
use crate::process;
use crate::record::{Record, Sum};

const SELECT: &str = "SELECT id, name, value FROM t ORDER BY id";
const WRITTEN_AT_ONCE: usize = 50_000;

pub(super) fn lanes<P: Peer>() -> Vec<Lane> {
    let about = "a million rows one by one: at most 1.1 times raw, in 8 MiB";
    vec![Lane::new("reads", "stream_1m", about, "passes", run::<P>).reads_only()]
}

async fn run<P: Peer>(trial: Trial) -> Result<Measured> {
    let rows = trial.size(1_000_000, 5_000);
    let peer = trial.open::<P>().await?;
    peer.execute(T, &[]).await?;
    let mut expected = Sum::default();
    for first in (0..rows).step_by(WRITTEN_AT_ONCE) {
        let end = rows.min(first + WRITTEN_AT_ONCE);
        let some = (first..end).map(|i| vec![format!("item_{i}").into(), data::value(i).into()]).collect();
        let written = peer.many(INSERT_T, &std::sync::Arc::new(some)).await?;
        ensure!(written == (end - first) as u64, "{written} rows were written");
        (first..end).for_each(|i| (i as i64 + 1, format!("item_{i}"), data::value(i)).touch(&mut expected));
    }
    peer.hold().await?;
    // Fills the page cache, and is no part of the growth.
    ensure!(peer.stream(SELECT).await? == expected, "the rows are not those that were written");
    let can_reset = process::reset_peak();
    let before = process::rss();
    ensure!(peer.stream(SELECT).await? == expected, "the rows are not those that were written");
    let peak = process::peak_rss()?;
    let mut timing = Timing::begin()?;
    let passes = trial.size(8, 2);
    for _ in 0..passes {
        ensure!(timing.time(peer.stream(SELECT)).await? == expected, "the rows are not those that were written");
    }
    let mut measured = timing.end(passes as u64)?;
    if let Some(before) = before.filter(|_| can_reset) {
        measured.extra("peak_growth_bytes", peak.saturating_sub(before));
    }
    peer.close().await?;
    Ok(measured)
}
