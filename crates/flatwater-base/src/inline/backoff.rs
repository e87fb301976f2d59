//! What inline runs that turned out not to be short have as a consequence: the next uses of their statement do not run inline, and,
//! because of a cold cache or a slow disk, perhaps no statement does for a while.
//!
//! Owns: for one statement, how many of its next uses skip the inline run (`Backoff`); for all, the decision from slow inline runs
//! and the time until which it holds (`InlineBreaker`). Any thread may use both. Their numbers are separate atomics, so that two
//! threads may count two runs as one: they are hints, and an error in them costs speed, never correctness. Invariants: only an
//! outcome that blames the statement, and a slow run, count against it; the number doubles each time, `DOUBLINGS` times at most, and
//! another inline run that ends well takes back one doubling; one that took long for no reason of its own, because the machine was
//! busy, is not slow; a few slow runs among many turn nothing off for all, because beside a writer every run reads pages again,
//! also a run that had to wait for a processor. Leaves out: finding out the reason (`eligibility`, `outcome`).

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::outcome::{Fallback, InlineRun};

/// The number of uses that skip the inline run after the first run that counts against the statement. The number
/// doubles after each further one, `DOUBLINGS` times at most.
const FIRST: u32 = 16;
const DOUBLINGS: u32 = 8;

/// How often a text fell back of late.
#[derive(Debug, Default)]
pub struct Backoff {
    /// The number of uses that still skip the inline run.
    left: AtomicU32,
    /// The number of recent runs that counted against the statement.
    fallbacks: AtomicU32,
}

impl Backoff {
    /// Counts a use. Returns true if it may run inline.
    pub fn may_try(&self) -> bool {
        let left = self.left.load(Ordering::Relaxed);
        if left != 0 {
            self.left.store(left - 1, Ordering::Relaxed);
        }
        left == 0
    }

    /// Records a run that took far too long, although it was not ended. It also counts as one that ended well.
    pub fn was_long(&self) {
        self.counts(2);
    }

    /// Records the outcome of an inline run.
    pub fn tried<T>(&self, run: &InlineRun<T>) {
        let fallbacks = self.fallbacks.load(Ordering::Relaxed);
        match run {
            InlineRun::Done(_, held) if held.is_slow => self.counts(1),
            InlineRun::Done(..) if fallbacks != 0 => self.fallbacks.store(fallbacks - 1, Ordering::Relaxed),
            InlineRun::FellBack(why, _) => self.fell_back(*why),
            _ => {}
        }
    }

    /// Records that a run fell back.
    pub fn fell_back(&self, why: Fallback) {
        if why.blames_the_text() {
            self.counts(1);
        }
    }

    /// The last run counts against the statement, as so many.
    fn counts(&self, runs: u32) {
        let doublings = self.fallbacks.load(Ordering::Relaxed).min(DOUBLINGS);
        self.left.store(FIRST << doublings, Ordering::Relaxed);
        self.fallbacks.store(doublings + runs, Ordering::Relaxed);
    }
}

/// The breaker turns inline runs off after `SLOW_RUNS` slow ones within `WITHIN`, if they are at least one in `ONE_OF` of
/// all runs since the first slow one.
const SLOW_RUNS: u32 = 3;
const ONE_OF: u32 = 10;
const WITHIN: Duration = Duration::from_secs(1);
/// How long inline runs are off, at first and at most. The time doubles if the breaker trips again within `WITHIN` of
/// the end of the last time.
const OFF: Duration = Duration::from_secs(1);
const OFF_MAX: Duration = Duration::from_secs(60);

/// A run is slow if it took more than this many times its limit, for a reason of its own.
const SLOW: u32 = 4;
/// The least time that one step of the virtual machine takes when nothing delays it.
const STEP: Duration = Duration::from_nanos(5);

/// The measurements of an inline run that ended.
pub(super) struct Run {
    pub(super) took: Duration,
    pub(super) limit: Duration,
    /// How long it read pages from files.
    pub(super) reading: Duration,
    /// The steps that the progress handler counted; 0 for a statement without a loop, which ends by itself.
    pub(super) steps: u32,
}

impl Run {
    /// Returns true if it took far too long, and reading pages or its own steps took most of the time. A read of a page from the
    /// system's cache takes a few microseconds, so a thread that lost its processor did not lose it in there, except by chance.
    fn is_slow(&self) -> bool {
        let half = self.took / 2;
        self.took > self.limit.saturating_mul(SLOW) && (self.reading > half || STEP * self.steps > half)
    }
}

/// Whether the machine is too slow to run anything on callers' threads.
pub struct InlineBreaker {
    began: Instant,
    /// Inline runs are off until this many microseconds after `began`; 0 if they were never turned off.
    off_until_us: AtomicU64,
    /// The number of all inline runs that ended.
    runs: AtomicU64,
    /// Guards the history.
    history: Mutex<History>,
}

struct History {
    slow: u32,
    first: Instant,
    /// The number of all inline runs at the time of the first slow one.
    before: u64,
    off: Duration,
    off_until: Instant,
}

impl InlineBreaker {
    /// Makes one that is closed.
    pub fn new(now: Instant) -> Self {
        let history = History { slow: 0, first: now, before: 0, off: OFF, off_until: now };
        Self { began: now, off_until_us: AtomicU64::new(0), runs: AtomicU64::new(0), history: Mutex::new(history) }
    }

    fn us(&self, now: Instant) -> u64 {
        u64::try_from(now.saturating_duration_since(self.began).as_micros()).unwrap_or(u64::MAX)
    }

    /// Returns true if inline runs are off. Reads the clock only if they were ever turned off.
    pub(super) fn is_off(&self, now: impl FnOnce() -> Instant) -> bool {
        let until = self.off_until_us.load(Ordering::Relaxed);
        until != 0 && self.us(now()) < until
    }

    /// Records a run that ended at `now`. Returns true if it was slow.
    pub(super) fn ended(&self, run: &Run, now: Instant) -> bool {
        let all = self.runs.load(Ordering::Relaxed) + 1;
        self.runs.store(all, Ordering::Relaxed);
        let is_slow = run.is_slow();
        if is_slow {
            self.was_slow(all, now);
        }
        is_slow
    }

    fn was_slow(&self, all: u64, now: Instant) {
        let mut history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        if now.saturating_duration_since(history.first) > WITHIN {
            history.slow = 0;
        }
        if history.slow == 0 {
            history.first = now;
            history.before = all;
        }
        history.slow += 1;
        if history.slow < SLOW_RUNS || u64::from(history.slow * ONE_OF) < all.saturating_sub(history.before) {
            return;
        }
        let is_again = history.off_until > self.began && now.saturating_duration_since(history.off_until) <= WITHIN;
        history.off = if is_again { (history.off * 2).min(OFF_MAX) } else { OFF };
        history.off_until = now + history.off;
        history.slow = 0;
        self.off_until_us.store(self.us(history.off_until), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::inline::outcome::{Held, NotTried};

    fn done() -> InlineRun<()> {
        InlineRun::Done((), Duration::ZERO.into())
    }

    fn fell_back(why: Fallback) -> InlineRun<()> {
        InlineRun::FellBack(why, Duration::ZERO.into())
    }

    fn not_tried(backoff: &Backoff) -> u32 {
        (0..).find(|_| backoff.may_try()).unwrap()
    }

    #[test]
    fn a_text_whose_inline_runs_are_given_up_is_tried_less_and_less_often() {
        let backoff = Backoff::default();
        assert!(backoff.may_try());
        let counts: Vec<u32> = (0..11)
            .map(|at| {
                backoff.tried(&fell_back([Fallback::Interrupted, Fallback::TooLarge][at % 2]));
                not_tried(&backoff)
            })
            .collect();
        assert_eq!(counts[..4], [16, 32, 64, 128]);
        assert_eq!(counts[8..], [4096, 4096, 4096]);
        (0..20).for_each(|_| backoff.tried(&done()));
        backoff.tried(&fell_back(Fallback::Interrupted));
        assert_eq!(not_tried(&backoff), 16, "it was short again for a while");
        backoff.tried(&InlineRun::Done((), Held { time: Duration::ZERO, is_slow: true }));
        assert_eq!(not_tried(&backoff), 32, "it had its result, and was slow");
    }

    #[test]
    fn what_the_text_is_not_to_blame_for_does_not_count() {
        let backoff = Backoff::default();
        for why in [Fallback::Late, Fallback::Locked, Fallback::SchemaChanged, Fallback::Failed] {
            backoff.tried(&fell_back(why));
            assert_eq!(not_tried(&backoff), 0, "{why:?}");
        }
        backoff.tried(&InlineRun::<()>::Ineligible(NotTried::Other));
        assert_eq!(not_tried(&backoff), 0);
    }

    #[test]
    fn a_run_is_slow_for_a_reason_of_its_own_or_not_at_all() {
        let now = Instant::now();
        let limit = Duration::from_micros(50);
        let three = |took, reading, steps| {
            let breaker = InlineBreaker::new(now);
            let slow = (0..3).filter(|_| breaker.ended(&Run { took, limit, reading, steps }, now)).count();
            assert_eq!(slow, if breaker.is_off(|| now) { 3 } else { 0 });
            slow == 3
        };
        let (no, short) = (Duration::ZERO, Duration::from_micros(5));
        assert!(three(limit * 5, limit * 4, 0), "it waited for pages");
        assert!(three(limit * 5, no, 30_000), "its steps");
        assert!(!three(limit * 5, no, 0), "the machine was busy");
        assert!(!three(limit * 100, short, 0), "the machine was busy while it read a page of the system's cache");
        assert!(!three(limit * 4, limit * 4, 30_000), "not slow");
    }

    #[test]
    fn three_slow_stays_within_a_second_turn_it_off_for_a_second() {
        let now = Instant::now();
        let breaker = InlineBreaker::new(now);
        let at = |ms: u64| now + Duration::from_millis(ms);
        breaker.was_slow(0, at(0));
        breaker.was_slow(0, at(1100));
        breaker.was_slow(0, at(1200));
        assert!(!breaker.is_off(|| at(1200)), "the first is too old");
        breaker.was_slow(0, at(1300));
        assert!(breaker.is_off(|| at(1301)) && breaker.is_off(|| at(2299)));
        assert!(!breaker.is_off(|| at(2301)));
    }

    #[test]
    fn a_few_slow_stays_among_many_change_nothing() {
        let now = Instant::now();
        let breaker = InlineBreaker::new(now);
        (1..=20).for_each(|slow| breaker.was_slow(slow * 30, now));
        assert!(!breaker.is_off(|| now));
        (0..100).for_each(|_| breaker.was_slow(600, now));
        assert!(breaker.is_off(|| now));
    }

    #[test]
    fn a_database_that_stays_slow_is_tried_less_and_less_often() {
        let begin = Instant::now();
        let breaker = InlineBreaker::new(begin);
        let mut now = begin;
        let mut offs = Vec::new();
        for _ in 0..8 {
            (0..SLOW_RUNS).for_each(|_| breaker.was_slow(0, now));
            let off = (0..100).find(|seconds| !breaker.is_off(|| now + Duration::from_secs(*seconds))).unwrap();
            offs.push(off);
            now += Duration::from_secs(off);
        }
        assert_eq!(offs, [1, 2, 4, 8, 16, 32, 60, 60]);
        now += Duration::from_secs(10);
        (0..SLOW_RUNS).for_each(|_| breaker.was_slow(0, now));
        assert!(!breaker.is_off(|| now + Duration::from_secs(1)), "after a good while it begins anew");
    }
}
