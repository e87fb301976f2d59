//! large_results: the longest poll while results and parameters of many rows pass through the runtime's thread.
//!
//! One caller on a current-thread runtime, each poll timed by the clock and by the thread's CPU time, as in `caller_polls`.
//! `KIND_longest_poll_us` and `KIND_longest_poll_cpu_us` are those of: `query_20k` and `query_300k`, so many rows as the
//! program's own type; `many_300k`, one statement for each of so many rows, the making of the call included; `drop_20k` and
//! `drop_300k`, the drop of such a result, whose memory is the program's: these are no polls of a call. The sample is one
//! call. What the rows are is checked, and not timed.
//!
//! The budget: no poll of a call holds the thread for more than 2 ms, at p99.9 and at the longest.

use anyhow::{Result, ensure};

use crate::data::{self, DELETE_T, INSERT_T, T};
use crate::lane::{Lane, Trial};
use crate::measure::{Measured, Timing};
use crate::peer::{Named, Peer};
use crate::polls::Polls;
use crate::record::{Sum, sum_of};

const SELECT: &str = "SELECT id, name, value FROM t WHERE id <= ? ORDER BY id";

pub(super) fn lanes<P: Peer>() -> Vec<Lane> {
    let about = "longest poll while 20,000 and 300,000 rows are read and written: at most 2 ms";
    vec![Lane::new("process", "large_results", about, "calls", run::<P>).current_thread(true)]
}

async fn run<P: Peer>(trial: Trial) -> Result<Measured> {
    let (few, many) = (trial.size(20_000, 200), trial.size(300_000, 3_000));
    let peer = trial.open::<P>().await?;
    peer.execute(T, &[]).await?;
    let rows = data::t_rows(many);
    let (of_few, of_many) = (expected(few), expected(many));
    let (mut written, mut small, mut large) = (Polls::default(), Kind::default(), Kind::default());
    let mut timing = Timing::begin()?;
    for _ in 0..trial.size(5, 1) {
        timing.pause()?;
        peer.execute(DELETE_T, &[]).await?;
        timing.resume()?;
        let changed = timing.time(written.time(peer.many(INSERT_T, &rows))).await?;
        ensure!(changed == many as u64, "{changed} rows were written");
        for _ in 0..5 {
            small.read(&peer, few, of_few, &mut timing).await?;
        }
        large.read(&peer, many, of_many, &mut timing).await?;
    }
    let calls = timing.latencies.len();
    let mut measured = timing.end(calls)?;
    written.report_longest("many_300k", &mut measured);
    for (word, kind) in [("20k", &small), ("300k", &large)] {
        kind.queries.report_longest(&format!("query_{word}"), &mut measured);
        kind.drops.report_longest(&format!("drop_{word}"), &mut measured);
        written.merge(&kind.queries);
    }
    written.report(&mut measured).await?;
    data::expect_t(&peer, many).await?;
    peer.close().await?;
    Ok(measured)
}

fn expected(count: usize) -> Sum {
    let rows = data::names(count).into_iter().enumerate().map(|(i, name)| (i as i64 + 1, name, data::value(i)));
    sum_of(&rows.collect::<Vec<Named>>())
}

/// The polls of queries of one size, and those that drop what they answered.
#[derive(Default)]
struct Kind {
    queries: Polls,
    drops: Polls,
}

impl Kind {
    async fn read<P: Peer>(&mut self, peer: &P, count: usize, expected: Sum, timing: &mut Timing) -> Result<()> {
        let rows = timing.time(self.queries.time(peer.query_as(SELECT, &[(count as i64).into()]))).await?;
        timing.pause()?;
        ensure!(sum_of(&rows) == expected, "the {} rows are not the first {count}", rows.len());
        timing.resume()?;
        let dropped = async {
            drop(rows);
            Ok(())
        };
        self.drops.time(dropped).await
    }
}
