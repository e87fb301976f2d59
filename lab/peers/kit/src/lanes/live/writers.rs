//! live_writers_{none,disjoint,overlap}: the rate of writes below 50 live queries.
//!
//! 5,000 rows of 20 columns, and 50 live queries that list two columns of 100 rows each. The sample is an UPDATE of a random
//! row, in rounds of 500, after each of which the other tasks may run, as in a server: of a column that no live query
//! reads (`disjoint`), which must cause no run; of one that all read (`overlap`); and without any live query (`none`). After
//! each round, not timed, the last result of each live query must become what the same query answers; `drain_*` is the
//! time from the last write of a round until then. Budgets: a rate of 0.9 of that without live queries if the columns are
//! others, and of 0.4 if they are the same.

use std::time::Instant;

use anyhow::{Result, ensure};

use super::lane;
use super::watch::{Params, Watch};
use crate::data::{self, INSERT_WIDE, WIDE};
use crate::lane::{Lane, Trial};
use crate::measure::{Latencies, Measured, Timing};
use crate::peer::Peer;
use crate::traffic::Traffic;

const SLICE: usize = 100;
const SELECT: &str = "SELECT id, i0, i1 FROM wide WHERE id BETWEEN ? AND ? ORDER BY id";
const READ: &str = "UPDATE wide SET i0 = ? WHERE id = ?";
const UNREAD: &str = "UPDATE wide SET i2 = ? WHERE id = ?";

/// What the writes have to do with the live queries.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Columns {
    /// There are none.
    Alone,
    Disjoint,
    Overlap,
}

pub(super) fn lanes<P: Peer>() -> Vec<Lane> {
    let columns = |(word, about, columns)| {
        lane(format!("live_writers_{word}"), about, "writes", move |trial| run::<P>(trial, columns)).release()
    };
    [
        ("none", "updates of random rows, without live queries", Columns::Alone),
        ("disjoint", "updates of a column that none of 50 live queries reads", Columns::Disjoint),
        ("overlap", "updates of a column that 50 live queries read", Columns::Overlap),
    ]
    .map(columns)
    .into()
}

async fn run<P: Peer>(trial: Trial, columns: Columns) -> Result<Measured> {
    let (rows, rounds, writes) = (trial.size(5_000, 500), trial.size(20, 1), trial.size(500, 50));
    let peer = trial.open::<P>().await?;
    peer.execute(WIDE, &[]).await?;
    peer.many(INSERT_WIDE, &data::wide_rows(rows)).await?;
    let slices: Vec<Params> = match columns {
        Columns::Alone => Vec::new(),
        _ => (0..rows).step_by(SLICE).map(|row| vec![(row as i64 + 1).into(), ((row + SLICE) as i64).into()]).collect(),
    };
    let sql = if columns == Columns::Overlap { READ } else { UNREAD };
    let mut watch = Watch::begin(&peer, SELECT, slices).await?;
    let mut traffic = Traffic::default();
    let (runs, taken) = (peer.live_counts().runs, watch.taken);
    let mut drains = Latencies::default();
    let mut timing = Timing::begin()?;
    for round in 0..rounds {
        for write in 0..writes {
            let value = (1_000_000 + round * writes + write) as i64;
            let id = traffic.below(rows) as i64 + 1;
            let changed = timing.time(peer.execute(sql, &[value.into(), id.into()])).await?;
            ensure!(changed == 1, "{changed} rows were updated");
            tokio::task::yield_now().await;
        }
        timing.pause()?;
        let ended = Instant::now();
        if columns != Columns::Alone {
            drains.record(watch.settle::<P, (i64, i64, i64)>(&peer).await?.saturating_duration_since(ended));
        }
        timing.resume()?;
    }
    let mut measured = timing.end((rounds * writes) as u64)?;
    let runs = peer.live_counts().runs - runs;
    ensure!(columns == Columns::Overlap || runs == 0, "updates of a column that nobody reads caused {runs} runs");
    measured.extra("runs", runs);
    measured.extra("deliveries", watch.taken - taken);
    if columns == Columns::Overlap {
        measured.extra_latencies("drain", &drains);
    }
    watch.end().await?;
    peer.close().await?;
    Ok(measured)
}
