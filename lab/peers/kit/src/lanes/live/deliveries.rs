//! live_latency, live_fan_out, live_unchanged: from a write to the results that it changes.
//!
//! - `live_latency`: one live query by rowid, and an UPDATE of its row. The sample is the time from before the write until
//!   the waiting task has the result, so it is no less than that from the commit to the delivery. `write_*` is the write;
//!   `delivery_*` is the time from the write's answer, and zero where the result was there before; `lag_*` is the time from
//!   the commit to the delivery as the library counts it. The budget is 60 us from the commit to the delivery.
//! - `live_fan_out`: 10 different counts of one table and one insert; the sample ends when all have delivered.
//! - `live_unchanged`: 10 live queries of 1,000 rows and the count of all rows. An insert outside of the 1,000 changes the
//!   count only; the sample ends with the count's result. A row of the 1,000 is updated after each sample, which is not
//!   timed: each of the 10 must then deliver that, and must not have delivered anything before.

use std::time::Instant;

use anyhow::{Result, ensure};

use super::lane;
use super::watch::{Params, Watch};
use crate::data::{self, INSERT_ITEM, INSERT_T, T};
use crate::lane::{Lane, Trial};
use crate::measure::{Latencies, Measured, Timing};
use crate::peer::Peer;
use crate::record::{Sum, sum_of};

const BY_ID: &str = "SELECT id, name, value FROM items WHERE id = ?";
const SET_VALUE: &str = "UPDATE items SET value = ? WHERE id = ?";
const SET_NAME: &str = "UPDATE items SET name = ? WHERE id = ?";
const COUNT: &str = "SELECT count(*) FROM items";
const COUNT_FROM: &str = "SELECT count(*) FROM t WHERE id >= ?";
const FIRST: &str = "SELECT id, name, ? FROM items WHERE id <= 1000";
const ROWS: usize = 1_000;
const QUERIES: i64 = 10;

pub(super) fn lanes<P: Peer>() -> Vec<Lane> {
    let latency_about = "from an UPDATE to the result of a live query by rowid";
    let unchanged_about = "from an insert to a live count, beside 10 live queries that it leaves as they are";
    vec![
        lane("live_latency", latency_about, "writes", latency::<P>).release(),
        lane("live_fan_out", "from an insert to the results of 10 live counts", "writes", fan_out::<P>).release(),
        lane("live_unchanged", unchanged_about, "writes", unchanged::<P>),
    ]
}

async fn latency<P: Peer>(trial: Trial) -> Result<Measured> {
    let writes = trial.size(10_000, 50);
    let peer = trial.open::<P>().await?;
    data::fill_items(&peer, ROWS).await?;
    let (id, name, ..) = data::item(ROWS / 2);
    let mut watch = Watch::begin(&peer, BY_ID, vec![vec![id.into()]]).await?;
    let (mut calls, mut deliveries) = (Latencies::default(), Latencies::default());
    let mut timing = Timing::begin()?;
    for write in 0..writes {
        let value = write as f64 + 0.25;
        let began = Instant::now();
        let changed = peer.execute(SET_VALUE, &[value.into(), id.into()]).await?;
        let written = Instant::now();
        ensure!(changed == 1, "{changed} rows were updated");
        let arrival = watch.next().await?;
        ensure!(arrival.sum == sum_of(&[(id, name.clone(), value)]), "write {write} was not what was delivered");
        timing.latencies.record(arrival.at - began);
        calls.record(written - began);
        deliveries.record(arrival.at.saturating_duration_since(written));
    }
    let mut measured = timing.end(writes as u64)?;
    measured.extra_latencies("write", &calls);
    measured.extra_latencies("delivery", &deliveries);
    let counts = peer.live_counts();
    measured.extra("lag_p50_us", counts.lag_p50_us);
    measured.extra("lag_p99_us", counts.lag_p99_us);
    watch.settle::<P, (i64, String, f64)>(&peer).await?;
    watch.end().await?;
    peer.close().await?;
    Ok(measured)
}

async fn fan_out<P: Peer>(trial: Trial) -> Result<Measured> {
    let writes = trial.size(2_000, 10);
    let peer = trial.open::<P>().await?;
    peer.execute(T, &[]).await?;
    peer.many(INSERT_T, &data::t_rows(ROWS)).await?;
    let params: Vec<Params> = (1..=QUERIES).map(|from| vec![from.into()]).collect();
    let mut watch = Watch::begin(&peer, COUNT_FROM, params).await?;
    let mut timing = Timing::begin()?;
    for rows in ROWS + 1..=ROWS + writes {
        let expected: Vec<Sum> = (0..QUERIES).map(|less| sum_of(&[(rows as i64 - less,)])).collect();
        let began = Instant::now();
        peer.execute(INSERT_T, &["another".into(), data::value(rows).into()]).await?;
        timing.latencies.record(watch.until(&expected).await? - began);
    }
    let measured = timing.end(writes as u64)?;
    let expected = QUERIES as u64 * (writes as u64 + 1);
    ensure!(watch.taken == expected, "{} results were delivered, expected {expected}", watch.taken);
    watch.settle::<P, (i64,)>(&peer).await?;
    watch.end().await?;
    peer.close().await?;
    Ok(measured)
}

async fn unchanged<P: Peer>(trial: Trial) -> Result<Measured> {
    let writes = trial.size(500, 5);
    let peer = trial.open::<P>().await?;
    data::fill_items(&peer, ROWS).await?;
    let mut first: Vec<(i64, String)> = data::items(ROWS).into_iter().map(|item| (item.0, item.1)).collect();
    let mut count = Watch::begin(&peer, COUNT, vec![Vec::new()]).await?;
    let mut ten = Watch::begin(&peer, FIRST, (0..QUERIES).map(|query| vec![query.into()]).collect()).await?;
    let mut timing = Timing::begin()?;
    for write in 0..writes {
        let (_, name, description, value, category, created) = data::item(ROWS + write);
        let row = [name.into(), description.into(), value.into(), category.into(), created.into()];
        let began = Instant::now();
        peer.execute(INSERT_ITEM, &row).await?;
        let arrival = count.next().await?;
        timing.latencies.record(arrival.at - began);
        timing.pause()?;
        ensure!(arrival.sum == sum_of(&[((ROWS + write + 1) as i64,)]), "the count after insert {write} is another");
        let (id, name) = &mut first[write % ROWS];
        *name = format!("Item {write} with another name");
        peer.execute(SET_NAME, &[name.as_str().into(), (*id).into()]).await?;
        for _ in 0..QUERIES {
            let arrival = ten.next().await?;
            let rows: Vec<_> = first.iter().map(|(id, name)| (*id, name.clone(), arrival.query as i64)).collect();
            ensure!(arrival.sum == sum_of(&rows), "query {} delivered what did not change", arrival.query);
        }
        timing.resume()?;
    }
    let measured = timing.end(writes as u64)?;
    ten.settle::<P, (i64, String, i64)>(&peer).await?;
    ten.end().await?;
    count.end().await?;
    peer.close().await?;
    Ok(measured)
}
