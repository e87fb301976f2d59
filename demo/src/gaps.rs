//! The act of the longest gap: an event loop ticks every millisecond while queries and writes run, and while none do.
//!
//! Owns: the event loop, which has one thread, the ticker on it, and the requests. Compares Flatwater with two common
//! ways: the Mutex, whose calls run on other threads, and the same Mutex called on the loop's own thread. The loop without
//! any request is the control: its gaps are the machine's own, and what the others have beyond them is theirs. Invariant:
//! after each request the loop gets its turn, so a gap is never longer than the time for which one call holds the
//! thread. Leaves out: the reasons for the gaps.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use tokio::runtime::Runtime;
use tokio::time::{MissedTickBehavior, interval_at};

use crate::ROUNDS;
use crate::flatwater_side::FlatwaterSide;
use crate::mutex_side::MutexSide;
use crate::polls::watched;
use crate::progress::Progress;
use crate::side::{CONVERSATIONS, MESSAGES, Result, Side, USERS, Writes};
use crate::table;
use crate::traffic::histogram;

/// The number of steps that the progress bar counts.
pub(crate) const ACTS: u64 = ROUNDS as u64;

const TICK: Duration = Duration::from_millis(1);
/// One in this many requests is the long one.
const LONG_EVERY: u64 = 1000;
const IDLE: &str = "idle";
const ON_THE_LOOP: &str = "on the loop";

/// Each way serves for `time`, in rounds, in turn, and the loop is idle for as long. Returns the report. Do not call this
/// on a thread of a runtime, because this thread runs the event loop.
pub(crate) fn act(
    runtime: &Runtime,
    ours: &Arc<FlatwaterSide>,
    theirs: &Arc<MutexSide>,
    time: Duration,
    progress: &Progress,
) -> Result<String> {
    let on_the_loop = theirs.on_the_callers_thread();
    let (mut idle, mut served) = (histogram(), [Served::new(), Served::new(), Served::new()]);
    for round in 0..ROUNDS {
        progress.act(&format!("A loop ticks beside each way, round {} of {ROUNDS}.", round + 1));
        for turn in 0..4 {
            match (round + turn) % 4 {
                0 => idle += resting(time / ROUNDS)?,
                1 => served[0].serve(&**ours, time / ROUNDS)?,
                2 => served[1].serve(&**theirs, time / ROUNDS)?,
                _ => served[2].serve(&on_the_loop, time / ROUNDS)?,
            }
        }
    }
    let [a, b] = [&served[1], &served[2]].map(|served| served.writes);
    let their_writes = Writes { messages: a.messages + b.messages, updates: a.updates + b.updates };
    runtime.block_on(async {
        ours.contents().await?.check(FlatwaterSide::NAME, served[0].writes)?;
        theirs.contents().await?.check(MutexSide::NAME, their_writes)
    })?;
    Ok(report(&idle, &served))
}

fn report(idle: &Histogram<u64>, served: &[Served; 3]) -> String {
    let named = || [FlatwaterSide::NAME, MutexSide::NAME, ON_THE_LOOP].into_iter().zip(served);
    let rows: Vec<_> = named().map(|(name, served)| (name, served.requests, &served.gaps)).collect();
    let beyond =
        |served: &Served, of: f64| served.gaps.value_at_quantile(of) as f64 - idle.value_at_quantile(of) as f64;
    let figures = |served: &Served| {
        let polls = served.polls.as_nanos() as f64;
        [beyond(served, 0.999), beyond(served, 1.0), polls, polls / served.requests.max(1) as f64]
    };
    let figures: Vec<_> = named().map(|(name, served)| (name, figures(served))).collect();
    format!(
        "\nThe longest gap of an event loop: a task ticks every {} ms on the loop's only\n\
         thread, another asks one request after another; one of {LONG_EVERY} is a long query.\n\n",
        TICK.as_millis()
    ) + &table::heading("between ticks", "answered")
        + &table::control(IDLE, idle)
        + &table::rows(&rows)
        + "\n"
        + &table::headed("beyond idle", ["p99.9", "max", "CPU of polls", "per answer", ""])
        + &table::lowest(&figures, signed)
        + table::LEGEND
        + "\nidle         the same loop without requests: what the machine itself does\n\
           one Mutex    each call by spawn_blocking: other threads wait for the Mutex\n\
           on the loop  the same connection, called by the task itself: the loop waits\n\
           polls        the loop's own work for the calls, in CPU time of its thread\n"
}

/// Returns a time in nanoseconds that may be below zero.
fn signed(ns: f64) -> String {
    let sign = if ns < 0.0 { "-" } else { "" };
    format!("{sign}{}", table::duration(ns.abs() as u64))
}

/// The measurements of one way.
struct Served {
    /// The gaps between two ticks, in nanoseconds.
    gaps: Histogram<u64>,
    requests: u64,
    /// The number of writes among the requests.
    writes: Writes,
    /// The CPU time of the loop's thread in the polls of the calls.
    polls: Duration,
}

impl Served {
    fn new() -> Self {
        Self { gaps: histogram(), requests: 0, writes: Writes { messages: 0, updates: 0 }, polls: Duration::ZERO }
    }

    /// Serves one side on a new event loop, which runs on this thread.
    fn serve<S: Side>(&mut self, side: &S, time: Duration) -> Result<()> {
        event_loop()?.block_on(async {
            let end = Instant::now() + time;
            let ticker = tokio::spawn(tick(end));
            while Instant::now() < end {
                self.request(side).await?;
                tokio::task::yield_now().await;
            }
            self.gaps += ticker.await?;
            Ok(())
        })
    }

    async fn request<S: Side>(&mut self, side: &S) -> Result<()> {
        let at = self.requests.cast_signed();
        let (conversation, user) = (1 + at % CONVERSATIONS, 1 + at % USERS);
        let spent = &mut self.polls;
        match self.requests % 4 {
            _ if self.requests % LONG_EVERY == LONG_EVERY / 2 => drop(watched(spent, side.pairs()).await?),
            0 => drop(watched(spent, side.user(user)).await?),
            1 => drop(watched(spent, side.last_messages(conversation)).await?),
            2 => {
                watched(spent, side.update(conversation, MESSAGES + at)).await?;
                self.writes.updates += 1;
            }
            _ => {
                let message = (conversation, user, MESSAGES + at, "so it goes".to_owned());
                watched(spent, side.new_message(message)).await?;
                self.writes.messages += 1;
            }
        }
        self.requests += 1;
        Ok(())
    }
}

/// Returns the gaps of a new event loop that does nothing but tick.
fn resting(time: Duration) -> Result<Histogram<u64>> {
    Ok(event_loop()?.block_on(tick(Instant::now() + time)))
}

fn event_loop() -> Result<Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}

async fn tick(end: Instant) -> Histogram<u64> {
    let mut gaps = histogram();
    let mut last = Instant::now();
    let mut ticks = interval_at((last + TICK).into(), TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while last < end {
        ticks.tick().await;
        let now = Instant::now();
        gaps.saturating_record(u64::try_from((now - last).as_nanos()).unwrap_or(u64::MAX));
        last = now;
    }
    gaps
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
            // The ticker begins in its first poll.
            tokio::task::yield_now().await;
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
        let mut served = Served::new();
        for _ in 0..2 {
            served.serve(&side.on_the_callers_thread(), Duration::from_millis(20)).unwrap();
        }
        let contents = runtime.block_on(side.contents()).unwrap();
        contents.check("x", served.writes).unwrap();
        assert!(served.requests >= served.writes.messages + served.writes.updates);
        assert!(served.polls > Duration::ZERO, "calls on the loop's own thread are its work");
    }

    #[test]
    fn what_a_way_has_beyond_the_idle_loop_is_shown_and_may_be_less() {
        let of = |ns: u64| {
            let mut gaps = histogram();
            gaps.record_n(ns, 10).unwrap();
            Served { gaps, ..Served::new() }
        };
        let text = report(&of(2_000_000).gaps, &[of(1_500_000), of(2_500_000), of(9_000_000)]);
        for expected in ["-501 us*", " 500 us ", "7.00 ms"] {
            assert!(text.contains(expected), "{expected}: {text}");
        }
    }

    #[test]
    fn the_report_fits_into_80_columns() {
        let slow = || {
            let mut gaps = histogram();
            gaps.record_n(3_599_000_000_000, 9).unwrap();
            Served { gaps, requests: 9_999_999_999, polls: Duration::from_secs(99_999), ..Served::new() }
        };
        for line in report(&slow().gaps, &[slow(), slow(), slow()]).lines() {
            assert!(line.len() <= 80, "{line}");
        }
    }
}
