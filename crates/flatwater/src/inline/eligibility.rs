//! The policy of inline runs of one database: which calls are tried on their caller's thread.
//!
//! Owns: the gate, which gives the permit of a run, and what each outcome means for later calls: the backoff of its statement,
//! the router of writes, and the budget of the thread. Any thread may use it; the router is guarded by the writer slot. Runs
//! nothing, and waits only for the breaker's lock. Invariant: a decision is a hint; an error in it costs speed, never correctness.
//! Leaves out: whether the statement is short, which its bytecode shows, and whether a connection is free.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::backoff::Backoff;
use super::breaker::InlineBreaker;
use super::budget;
use super::limits::{Inline, InlineLimits};
use super::outcome::{InlineRun, NotTried};
use super::permit::Permit;
use super::router::WriteRouter;

pub(crate) struct InlinePolicy {
    inline: Inline,
    breaker: InlineBreaker,
    /// True while short writes go through the queue. Written by the holder of the writer slot.
    queueing: AtomicBool,
}

impl InlinePolicy {
    pub(crate) fn new(inline: Inline, now: Instant) -> Self {
        Self { inline, breaker: InlineBreaker::new(now), queueing: AtomicBool::new(false) }
    }

    /// Returns the limits of an inline run, or `None` if no call runs inline.
    pub(crate) fn limits(&self) -> Option<&InlineLimits> {
        if let Inline::Auto(limits) = &self.inline { Some(limits) } else { None }
    }

    /// Returns the right to run a call on this thread, with so many bytes of parameters, or why it may not run there now.
    /// `queues`: the call would go through the writer's queue otherwise. `texts_may` is called last, and counts a use of each
    /// text of the call.
    pub(crate) fn permit(
        &self,
        queues: bool,
        bytes: usize,
        texts_may: impl FnOnce() -> bool,
    ) -> Result<Permit<'_>, NotTried> {
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
            Ok(Permit::new(limits, began, &self.breaker))
        }
    }

    /// Records the outcome of a call that was tried from `began` on: it spent time of this thread's budget.
    pub(crate) fn tried<T>(&self, backoff: &Backoff, began: Instant, run: &InlineRun<T>) {
        budget::spend(began, run.took());
        backoff.tried(run);
    }

    /// Records a write that was tried from `began` on and ended at `now`, before its time is spent.
    pub(crate) fn wrote(&self, router: &mut WriteRouter, began: Instant, now: Instant) {
        let took = now.saturating_duration_since(began);
        router.ran_inline(took, budget::is_busy_with(began, took), now);
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
