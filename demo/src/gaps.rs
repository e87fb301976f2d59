//! The act of the longest gap: an event loop ticks every millisecond while queries and writes run.
//!
//! Owns: the event loop, which has one thread, the ticker on it, and the requests. Compares Flatwater with two common
//! ways: the Mutex, whose calls run on other threads, and the same Mutex called on the loop's own thread. Invariant:
//! after each request the loop gets its turn, so a gap is never longer than the time for which one call holds the
//! thread. Leaves out: the reasons for the gaps.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use tokio::runtime::Runtime;
use tokio::time::{MissedTickBehavior, interval};

use crate::flatwater_side::FlatwaterSide;
use crate::mutex_side::MutexSide;
use crate::progress::Progress;
use crate::side::{CONVERSATIONS, MESSAGES, Result, Side, USERS, Writes};
use crate::table;
use crate::traffic::histogram;

/// The number of steps that the progress bar counts.
pub(crate) const ACTS: u64 = 3;

const TICK: Duration = Duration::from_millis(1);
/// One in this many requests is the long one.
const LONG_EVERY: u64 = 1000;
const ON_THE_LOOP: &str = "on the loop";

/// Each way serves for `time`. Returns the report. Do not call this on a thread of a runtime, because this thread runs
/// the event loop.
pub(crate) fn act(
    runtime: &Runtime,
    ours: &Arc<FlatwaterSide>,
    theirs: &Arc<MutexSide>,
    time: Duration,
    progress: &Progress,
) -> Result<String> {
    progress.act("A loop ticks beside Flatwater.");
    let our_gaps = measured(ours.clone(), time)?;
    progress.act("A loop ticks beside the Mutex.");
    let their_gaps = measured(theirs.clone(), time)?;
    progress.act("A loop ticks and calls the Mutex itself.");
    let on_the_loop = measured(Arc::new(theirs.on_the_callers_thread()), time)?;
    let [a, b] = [&their_gaps, &on_the_loop].map(|served| served.writes);
    let their_writes = Writes { messages: a.messages + b.messages, updates: a.updates + b.updates };
    runtime.block_on(async {
        ours.contents().await?.check(FlatwaterSide::NAME, our_gaps.writes)?;
        theirs.contents().await?.check(MutexSide::NAME, their_writes)
    })?;
    Ok(report(&our_gaps, &their_gaps, &on_the_loop))
}

fn report(ours: &Served, theirs: &Served, on_the_loop: &Served) -> String {
    let row = |name, served: &Served| table::row(name, served.requests, &served.gaps);
    format!(
        "\nThe longest gap of an event loop: a task ticks every {} ms on the loop's only\n\
         thread, another asks one request after another; one of {LONG_EVERY} is a long query.\n\n",
        TICK.as_millis()
    ) + &table::heading("between ticks", "answered")
        + &row(FlatwaterSide::NAME, ours)
        + &row(MutexSide::NAME, theirs)
        + &row(ON_THE_LOOP, on_the_loop)
        + "\none Mutex    each call by spawn_blocking: other threads wait for the Mutex\n\
           on the loop  the same connection, called by the task itself: the loop waits\n"
}

/// The measurements of one loop.
struct Served {
    /// The gaps between two ticks, in nanoseconds.
    gaps: Histogram<u64>,
    requests: u64,
    /// The number of writes among the requests.
    writes: Writes,
}

/// Measures one side on a new event loop, which runs on this thread.
fn measured<S: Side>(side: Arc<S>, time: Duration) -> Result<Served> {
    let event_loop = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    event_loop.block_on(async {
        let end = Instant::now() + time;
        let ticker = tokio::spawn(tick(end));
        let (requests, writes) = serve(&*side, end).await?;
        Ok(Served { gaps: ticker.await?, requests, writes })
    })
}

async fn tick(end: Instant) -> Histogram<u64> {
    let mut gaps = histogram();
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks.tick().await;
    let mut last = Instant::now();
    while last < end {
        ticks.tick().await;
        let now = Instant::now();
        gaps.saturating_record(u64::try_from((now - last).as_nanos()).unwrap_or(u64::MAX));
        last = now;
    }
    gaps
}

/// Returns the number of requests, and the number of writes among them.
async fn serve<S: Side>(side: &S, end: Instant) -> Result<(u64, Writes)> {
    let (mut requests, mut writes) = (0_u64, Writes { messages: 0, updates: 0 });
    while Instant::now() < end {
        let at = requests.cast_signed();
        let (conversation, user) = (1 + at % CONVERSATIONS, 1 + at % USERS);
        match requests % 4 {
            _ if requests % LONG_EVERY == LONG_EVERY / 2 => drop(side.pairs().await?),
            0 => drop(side.user(user).await?),
            1 => drop(side.last_messages(conversation).await?),
            2 => {
                side.update(conversation, MESSAGES + at).await?;
                writes.updates += 1;
            }
            _ => {
                side.new_message((conversation, user, MESSAGES + at, "so it goes".to_owned())).await?;
                writes.messages += 1;
            }
        }
        requests += 1;
        tokio::task::yield_now().await;
    }
    Ok((requests, writes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_holds_the_thread_is_a_gap() {
        let held = Duration::from_millis(30);
        let event_loop = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let gaps = event_loop.block_on(async {
            let ticker = tokio::spawn(tick(Instant::now() + 10 * held));
            // Stay idle for a moment, so that the ticker begins.
            tokio::time::sleep(TICK).await;
            std::thread::sleep(held);
            ticker.await.unwrap()
        });
        assert!(gaps.max() >= 29_900_000, "{} ns", gaps.max());
    }

    #[test]
    fn each_write_is_counted_and_found() {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let directory = tempfile::tempdir().unwrap();
        let side = runtime.block_on(MutexSide::open(&directory.path().join("x.db"))).unwrap();
        let served = measured(Arc::new(side.on_the_callers_thread()), Duration::from_millis(20)).unwrap();
        let contents = runtime.block_on(side.contents()).unwrap();
        contents.check("x", served.writes).unwrap();
        assert!(served.requests >= served.writes.messages + served.writes.updates);
    }

    #[test]
    fn the_report_fits_into_80_columns() {
        let mut gaps = histogram();
        gaps.record_n(3_599_000_000_000, 9).unwrap();
        let served = Served { gaps, requests: 9_999_999_999, writes: Writes { messages: 0, updates: 0 } };
        for line in report(&served, &served, &served).lines() {
            assert!(line.len() <= 80, "{line}");
        }
    }
}
