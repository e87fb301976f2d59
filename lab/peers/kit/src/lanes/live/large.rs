//! live_large: the longest poll while results of 300,000 rows are delivered, and the rows in which they differ.
//!
//! One caller on a current-thread runtime, each poll timed by the clock and by the thread's CPU time, as in `large_results`. A
//! live query of all rows and another one of its differences; the sample is the time until both have what an UPDATE of one
//! row did. `KIND_longest_poll_us` and `KIND_longest_poll_cpu_us` are those of the `first` results of both, of a `result`, of a
//! `difference`, and of the `drop` of a result. What the rows are is checked, and not timed.
//!
//! The budget: no poll holds the thread for more than 2 ms.

use anyhow::{Result, ensure};

use super::lane;
use crate::data::{self, INSERT_T, T};
use crate::lane::{Lane, Trial};
use crate::measure::{Measured, Timing};
use crate::peer::{Live, Peer};
use crate::polls::Polls;

const ALL: &str = "SELECT id, name, value FROM t ORDER BY id";
const SET_VALUE: &str = "UPDATE t SET value = ? WHERE id = ?";

pub(super) fn lanes<P: Peer>() -> Vec<Lane> {
    let about = "longest poll while a live query of 300,000 rows delivers results and differences: at most 2 ms";
    vec![lane("live_large", about, "writes", run::<P>).current_thread(true)]
}

async fn run<P: Peer>(trial: Trial) -> Result<Measured> {
    let (rows, writes) = (trial.size(300_000, 3_000), trial.size(10, 2));
    let peer = trial.open::<P>().await?;
    peer.execute(T, &[]).await?;
    peer.many(INSERT_T, &data::t_rows(rows)).await?;
    let [mut firsts, mut results, mut differences, mut drops] = [(); 4].map(|()| Polls::default());
    let (mut all, mut changes) = (peer.live(ALL, &[])?, peer.live(ALL, &[])?.changes());
    for live in [&mut all, &mut changes] {
        let first = firsts.time(live.take()).await?;
        ensure!(P::Live::touch(&first).rows == rows as u64, "the first result has other rows");
    }
    let mut timing = Timing::begin()?;
    for write in 1..=writes {
        peer.execute(SET_VALUE, &[(write as f64 + 0.125).into(), (write as i64).into()]).await?;
        let (result, difference) = timing
            .time(async { Ok((results.time(all.take()).await?, differences.time(changes.take()).await?)) })
            .await?;
        timing.pause()?;
        ensure!(P::Live::touch(&result).rows == rows as u64, "a result has other rows");
        ensure!(P::Live::touch(&difference).rows == 1, "an UPDATE of one row is no difference of one");
        timing.resume()?;
        let dropped = async {
            drop((result, difference));
            Ok(())
        };
        drops.time(dropped).await?;
    }
    let mut measured = timing.end(writes as u64)?;
    let mut polls = Polls::default();
    for (kind, of_kind) in [("first", &firsts), ("result", &results), ("difference", &differences), ("drop", &drops)] {
        of_kind.report_longest(kind, &mut measured);
        polls.merge(of_kind);
    }
    polls.report(&mut measured).await?;
    drop((all, changes));
    peer.close().await?;
    Ok(measured)
}
