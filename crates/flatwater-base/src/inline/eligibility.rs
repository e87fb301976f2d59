//! Which calls are tried on their caller's thread: whether short calls may run there, what counts as short, the gate, and the right
//! to one run, which the gate gives.
//!
//! An inline run is a run of a short statement on the thread of its caller.
//!
//! Owns: the option's values, whose defaults are part of the API; the gate of one database, and what each outcome means for later
//! calls: the backoff of its statement, the router of writes, and the budget of the thread; the permit of a run, and what its run is
//! found to have done. Any thread may use it; the router is guarded by the writer slot. Runs nothing, and waits only for the
//! breaker's lock. Invariants: a decision is a hint, in which an error costs speed, never correctness; no run begins without a
//! permit, and no outcome of a run is told without its time, which the permit tells the breaker: so each place where calls run on
//! their callers' threads asks one breaker, and feeds it. Leaves out: whether the statement is short, which its bytecode shows, and
//! whether a connection is free.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::backoff::{Backoff, InlineBreaker, Run};
use super::budget;
use super::outcome::{Held, InlineRun, NotTried};
use super::router::WriteRouter;

/// A write that took longer than this many times the limit is counted as this many times the limit: the machine or the
/// disk was busy.
const OUTLIER: u32 = 2;
/// So many times the limit may several runs take.
const TOGETHER: u32 = 4;

/// Whether an awaited call may run on the thread that polls it. A call that is known to be short then costs about as
/// much as the SQLite call itself, and saves two thread switches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Inline {
    /// A statement may run inline if its bytecode shows that it is short, and if its runs stay within these limits. If
    /// a run exceeds them, a worker repeats it, and the statement runs on workers for a while.
    Auto(InlineLimits),
    /// Every call runs on a worker thread.
    Never,
}

impl Default for Inline {
    fn default() -> Self {
        Self::Auto(InlineLimits::default())
    }
}

/// The limits of an inline run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct InlineLimits {
    /// The maximum duration of a read. The time is checked about every 1,000 steps of SQLite's virtual machine; a page that
    /// has to be read from the file is waited for. A write runs inline only if it usually takes no longer than this; it is
    /// interrupted only in a loop, and never inside a transaction. All rows of a batch or of `execute_many` run inline if
    /// together they usually take no longer than four times this. After a run that took four times this because of its pages
    /// the next uses of its statement run on a worker. Default 50 us.
    pub time: Duration,
    /// The maximum number of rows in a result. Default 256.
    pub rows: usize,
    /// The maximum size in bytes of all text and blob parameters together, of each value and row that is touched, and of
    /// the JSON that a read returns. For values and rows, a limit below 1 KiB counts as 1 KiB. Default 64 KiB.
    pub bytes: usize,
}

impl InlineLimits {
    /// Sets [`time`](Self::time).
    #[must_use]
    pub fn time(self, time: Duration) -> Self {
        Self { time, ..self }
    }

    /// Sets [`rows`](Self::rows).
    #[must_use]
    pub fn rows(self, rows: usize) -> Self {
        Self { rows, ..self }
    }

    /// Sets [`bytes`](Self::bytes).
    #[must_use]
    pub fn bytes(self, bytes: usize) -> Self {
        Self { bytes, ..self }
    }

    /// How long the writes of a transaction, or the rows of one call, may take together, so that to end them is short too: the
    /// pages that they changed are written then, or freed.
    pub fn together(&self) -> Duration {
        self.time.saturating_mul(TOGETHER)
    }

    /// Returns the part of the time of an inline write that counts for its text's history.
    pub fn counted(&self, took: Duration) -> Duration {
        took.min(self.time.saturating_mul(OUTLIER))
    }
}

impl Default for InlineLimits {
    fn default() -> Self {
        Self { time: Duration::from_micros(50), rows: 256, bytes: 64 << 10 }
    }
}

/// What may run on callers' threads of one database.
pub struct InlinePolicy {
    inline: Inline,
    breaker: InlineBreaker,
    /// True while short writes go through the queue. Written by the holder of the writer slot.
    queueing: AtomicBool,
}

impl InlinePolicy {
    /// Makes that of an option.
    pub fn new(inline: Inline, now: Instant) -> Self {
        Self { inline, breaker: InlineBreaker::new(now), queueing: AtomicBool::new(false) }
    }

    /// Returns the limits of an inline run, or `None` if no call runs inline.
    pub fn limits(&self) -> Option<&InlineLimits> {
        if let Inline::Auto(limits) = &self.inline { Some(limits) } else { None }
    }

    /// Returns the right to run a call on this thread, with so many bytes of parameters, or why it may not run there now.
    /// `queues`: the call would go through the writer's queue otherwise. `texts_may` is called last, and counts a use of each
    /// text of the call.
    pub fn permit(&self, queues: bool, bytes: usize, texts_may: impl FnOnce() -> bool) -> Result<Permit<'_>, NotTried> {
        let limits = self.limits().ok_or(NotTried::Other)?;
        // Where many callers write, even the check for an inline run costs time: the queue comes first.
        if queues && self.queueing.load(Ordering::Relaxed) || bytes > limits.bytes {
            return Err(NotTried::Other);
        }
        if !texts_may() {
            return Err(NotTried::Backoff);
        }
        let began = Instant::now();
        if self.breaker.is_off(|| began) {
            Err(NotTried::Breaker)
        } else {
            let (reading, steps, is_of_foreign_code) = Default::default();
            Ok(Permit { limits, began, breaker: &self.breaker, reading, steps, is_of_foreign_code })
        }
    }

    /// Records the outcome of a call that was tried from `began` on: it spent time of this thread's budget.
    pub fn tried<T>(&self, backoff: &Backoff, began: Instant, run: &InlineRun<T>) {
        budget::spend(began, run.took());
        backoff.tried(run);
    }

    /// Records a write that was tried from `began` on and ended at `now`, before its time is spent.
    pub fn wrote(&self, router: &mut WriteRouter, began: Instant, now: Instant) {
        let took = now.saturating_duration_since(began);
        router.ran_inline(took, budget::is_busy_with(began, took), now);
        self.queueing.store(router.queues(), Ordering::Relaxed);
    }

    /// Records a round of the writer that ended at `now`, with this many short writes, or grouped writes.
    pub fn ran_round(&self, router: &mut WriteRouter, writes: usize, now: Instant) {
        router.ran_round(writes, now);
        self.queueing.store(router.queues(), Ordering::Relaxed);
    }
}

/// The right to run one call on this thread, now.
pub struct Permit<'a> {
    /// How long it may take.
    pub limits: &'a InlineLimits,
    /// When the caller began.
    pub began: Instant,
    breaker: &'a InlineBreaker,
    /// How long reads of pages from files took.
    reading: Cell<Duration>,
    steps: Cell<u32>,
    is_of_foreign_code: Cell<bool>,
}

impl Permit<'_> {
    /// Reads of pages from files took so long.
    pub fn note_reading(&self, time: Duration) {
        self.reading.set(self.reading.get().saturating_add(time));
    }

    /// The steps that the progress handler counted; 0 for a statement without a loop, which ends by itself.
    pub fn note_steps(&self, steps: u32) {
        self.steps.set(steps);
    }

    /// What the run takes is foreign code's time, and says nothing about the disk.
    pub fn note_foreign_code(&self) {
        self.is_of_foreign_code.set(true);
    }

    /// Ends the run, which took so long, and tells the breaker.
    pub fn held(&self, took: Duration) -> Held {
        let run = Run { took, limit: self.limits.time, reading: self.reading.get(), steps: self.steps.get() };
        let is_slow = !self.is_of_foreign_code.get() && self.breaker.ended(&run, self.began + took);
        Held { time: took, is_slow }
    }

    /// The same, now.
    pub fn held_until_now(&self) -> Held {
        self.held(self.began.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::inline::outcome::Fallback;

    /// Whether a call may run that would go through the queue, and one that would not.
    fn may_run(policy: &InlinePolicy, bytes: usize) -> [bool; 2] {
        [true, false].map(|queues| policy.permit(queues, bytes, || Backoff::default().may_try()).is_ok())
    }

    #[test]
    fn parameters_have_a_limit_and_never_means_never() {
        let limits = InlineLimits::default();
        let policy = InlinePolicy::new(Inline::Auto(limits), Instant::now());
        assert_eq!(
            [0, limits.bytes, limits.bytes + 1].map(|bytes| may_run(&policy, bytes)),
            [[true; 2], [true; 2], [false; 2]]
        );
        let never = InlinePolicy::new(Inline::Never, Instant::now());
        assert_eq!((never.limits(), may_run(&never, 0)), (None, [false; 2]));
    }

    #[test]
    fn a_disk_that_is_slow_keeps_every_call_away_and_a_cheaper_queue_keeps_writes_away() {
        let now = Instant::now();
        let policy = InlinePolicy::new(Inline::default(), now);
        for _ in 0..3 {
            assert_eq!(may_run(&policy, 0), [true; 2]);
            let permit = policy.permit(false, 0, || true).unwrap();
            permit.note_reading(Duration::from_secs(3600));
            // Longer than any run, so that the breaker is off for longer than this test runs.
            permit.held(Duration::from_secs(3600));
        }
        assert_eq!(may_run(&policy, 0), [false; 2]);

        let policy = InlinePolicy::new(Inline::default(), now);
        let mut router = WriteRouter::new(now);
        let mut later = now;
        let mut write = |policy: &InlinePolicy| {
            later += Duration::from_micros(10);
            policy.wrote(&mut router, later, later + Duration::from_millis(1));
        };
        (0..1000).for_each(|_| write(&policy));
        assert_eq!(may_run(&policy, 0), [false, true], "the queue is tried");
    }

    #[test]
    fn an_outcome_that_blames_the_statement_holds_it_back_in_every_place() {
        let policy = InlinePolicy::new(Inline::default(), Instant::now());
        let backoff = Backoff::default();
        policy.tried(
            &backoff,
            Instant::now(),
            &InlineRun::<()>::FellBack(Fallback::Interrupted, Duration::ZERO.into()),
        );
        assert!([true, false].into_iter().all(|queues| policy.permit(queues, 0, || backoff.may_try()).is_err()));
        budget::renew();
    }

    #[test]
    fn what_foreign_code_takes_says_nothing_about_the_disk() {
        let policy = InlinePolicy::new(Inline::default(), Instant::now());
        for _ in 0..3 {
            let permit = policy.permit(false, 0, || true).unwrap();
            permit.note_reading(Duration::from_secs(3600));
            permit.note_foreign_code();
            permit.held(Duration::from_secs(3600));
        }
        assert_eq!(may_run(&policy, 0), [true; 2]);
    }
}
