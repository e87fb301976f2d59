//! The policy of inline runs of one database: which calls are tried on their caller's thread.
//!
//! Owns: the decision before a call is tried, and what each outcome means for later calls: the backoff of its statement,
//! the breaker for reads, the router of writes, and the budget of the thread. Any thread may use it; the router is
//! guarded by the writer slot. Runs nothing, and waits only for the breaker's lock. Invariant: a decision is a hint;
//! an error in it costs speed, never correctness. Leaves out: whether the statement is short, which its bytecode shows,
//! and whether a connection is free.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::backoff::Backoff;
use super::breaker::{InlineBreaker, Read};
use super::budget;
use super::limits::{Inline, InlineLimits};
use super::outcome::InlineRun;
use super::router::WriteRouter;

pub(crate) struct InlinePolicy {
    inline: Inline,
    breaker: InlineBreaker,
    /// True while short writes go through the queue. Written by the holder of the writer slot.
    queueing: AtomicBool,
}

/// The connection on which a call would run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunPlace {
    Readers,
    Writer,
    Transaction,
}

impl InlinePolicy {
    pub(crate) fn new(inline: Inline, now: Instant) -> Self {
        Self { inline, breaker: InlineBreaker::new(now), queueing: AtomicBool::new(false) }
    }

    /// Returns the limits of an inline run, or `None` if no call runs inline.
    pub(crate) fn limits(&self) -> Option<&InlineLimits> {
        if let Inline::Auto(limits) = &self.inline { Some(limits) } else { None }
    }

    /// Returns true if a call with so many bytes of parameters may be tried inline. Counts a use of the statement.
    pub(crate) fn may_try(&self, place: RunPlace, backoff: &Backoff, bytes: usize) -> bool {
        // Where many callers write, even the check for an inline run costs time: the queue comes first.
        let is_closed = match place {
            RunPlace::Readers => !self.may_read(),
            RunPlace::Writer => !self.may_begin(),
            RunPlace::Transaction => false,
        };
        !is_closed && self.limits().is_some_and(|limits| bytes <= limits.bytes) && backoff.may_try()
    }

    /// Returns true if a snapshot may begin inline.
    pub(crate) fn may_read(&self) -> bool {
        !self.breaker.is_off(Instant::now)
    }

    /// Returns true if a write or a transaction may begin inline.
    pub(crate) fn may_begin(&self) -> bool {
        !self.queueing.load(Ordering::Relaxed)
    }

    /// Records the outcome of a call that was tried from `began` on: it spent time of this thread's budget.
    pub(crate) fn tried<T>(&self, backoff: &Backoff, began: Instant, run: &InlineRun<T>) {
        budget::spend(began, run.took());
        backoff.tried(run);
    }

    /// Records a read that ended at `now`. Returns true if its own steps took most of its time. `all` returns the number
    /// of inline reads up to now.
    pub(crate) fn read(&self, read: &Read, all: impl FnOnce() -> u64, now: Instant) -> bool {
        self.breaker.ended(read, all, now)
    }

    /// Records a write that ended at `now` and took `took`, before its time is spent.
    pub(crate) fn wrote(&self, router: &mut WriteRouter, took: Duration, now: Instant) {
        router.ran_inline(took, budget::is_spent_with(took), now);
        self.queueing.store(router.queues(), Ordering::Relaxed);
    }

    /// Records a round of the writer that ended at `now`, with this many short writes, or grouped writes.
    pub(crate) fn ran_round(&self, router: &mut WriteRouter, writes: usize, now: Instant) {
        router.ran_round(writes, now);
        self.queueing.store(router.queues(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inline::outcome::Fallback;

    const PLACES: [RunPlace; 3] = [RunPlace::Readers, RunPlace::Writer, RunPlace::Transaction];

    fn tried(policy: &InlinePolicy, bytes: usize) -> Vec<RunPlace> {
        PLACES.into_iter().filter(|place| policy.may_try(*place, &Backoff::default(), bytes)).collect()
    }

    #[test]
    fn parameters_have_a_limit_and_never_means_never() {
        let limits = InlineLimits::default();
        let policy = InlinePolicy::new(Inline::Auto(limits), Instant::now());
        assert_eq!((tried(&policy, limits.bytes), tried(&policy, limits.bytes + 1)), (PLACES.to_vec(), vec![]));
        let never = InlinePolicy::new(Inline::Never, Instant::now());
        assert!(never.limits().is_none() && tried(&never, 0).is_empty());
    }

    #[test]
    fn a_disk_that_is_slow_keeps_reads_away_and_a_cheaper_queue_keeps_writes_away() {
        let now = Instant::now();
        let policy = InlinePolicy::new(Inline::default(), now);
        let slow =
            Read { took: Duration::from_millis(1), limit: Duration::from_micros(50), read_pages: true, steps: 0 };
        (0..3).for_each(|_| _ = policy.read(&slow, || 3, Instant::now() + Duration::from_secs(3600)));
        assert_eq!(tried(&policy, 0), [RunPlace::Writer, RunPlace::Transaction]);

        let policy = InlinePolicy::new(Inline::default(), now);
        let mut router = WriteRouter::new(now);
        let mut later = now;
        let mut write = |policy: &InlinePolicy| {
            later += Duration::from_micros(10);
            policy.wrote(&mut router, Duration::from_millis(1), later);
        };
        (0..1000).for_each(|_| write(&policy));
        assert_eq!(tried(&policy, 0), [RunPlace::Readers, RunPlace::Transaction], "the queue is tried");
    }

    #[test]
    fn an_outcome_that_blames_the_statement_holds_it_back_in_every_place() {
        let policy = InlinePolicy::new(Inline::default(), Instant::now());
        let backoff = Backoff::default();
        policy.tried(&backoff, Instant::now(), &InlineRun::<()>::FellBack(Fallback::Interrupted, Duration::ZERO));
        assert!(PLACES.into_iter().all(|place| !policy.may_try(place, &backoff, 0)));
        budget::renew();
    }
}
