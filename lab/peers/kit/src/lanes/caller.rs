//! caller_blocking: for how long the thread of a current-thread runtime could do nothing else.
//!
//! A task ticks every millisecond while another, on the same thread, does rounds of 50 inserts, a query of 1000 rows and
//! now and then an INSERT over 2000 rows. `longest_gap_us` and `gap_p99_us` are the times between ticks, of which
//! 1000 to 2000 us are the timer's own; `idle_gap_us` is the longest without any work. The sample is one call.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use tokio::task::yield_now;

use crate::data::{self, INSERT_T, Item, SELECT_ITEMS, T};
use crate::lane::{Lane, Trial};
use crate::measure::{Measured, Timing};
use crate::peer::Peer;
use crate::record::sum_of;
use crate::ticker::Ticker;

const ROWS: usize = 1000;
const INSERTS: usize = 50;
const MANY: usize = 2000;
const MANY_EVERY: usize = 5;

pub(super) fn lanes<P: Peer>() -> Vec<Lane> {
    let about = "longest gap of a 1 ms ticker on the runtime's thread while calls run";
    vec![Lane::new("process", "caller_blocking", about, "calls", run::<P>).release().current_thread(true)]
}

async fn run<P: Peer>(trial: Trial) -> Result<Measured> {
    let rounds = trial.size(150, 5);
    let peer = trial.open::<P>().await?;
    data::fill_items(&peer, ROWS).await?;
    peer.execute(T, &[]).await?;
    let expected = sum_of(&data::items(ROWS));
    let all = data::t_rows(rounds * INSERTS + rounds.div_ceil(MANY_EVERY) * MANY);
    let mut rows = all.iter();

    let idle = Ticker::begin();
    tokio::time::sleep(Duration::from_millis(trial.size(100, 10) as u64)).await;
    let idle = idle.end().await?;
    let ticker = Ticker::begin();
    let mut timing = Timing::begin()?;
    for round in 0..rounds {
        for row in rows.by_ref().take(INSERTS) {
            timing.time(peer.execute(INSERT_T, row)).await?;
            yield_now().await;
        }
        let sum = timing.latencies.query::<P, Item>(&peer, SELECT_ITEMS, &[]).await?;
        ensure!(sum == expected, "the rows are not those that were written");
        yield_now().await;
        if round % MANY_EVERY == 0 {
            let many = Arc::new(rows.by_ref().take(MANY).cloned().collect());
            timing.time(peer.many(INSERT_T, &many)).await?;
            yield_now().await;
        }
    }
    let calls = timing.latencies.len();
    let mut measured = timing.end(calls)?;
    let gaps = ticker.end().await?;
    measured.extra("longest_gap_us", gaps.max_us());
    measured.extra("gap_p99_us", gaps.us(0.99));
    measured.extra("gap_p50_us", gaps.us(0.5));
    measured.extra("idle_gap_us", idle.max_us());
    data::expect_t(&peer, all.len()).await?;
    peer.close().await?;
    Ok(measured)
}
