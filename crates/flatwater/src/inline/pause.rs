//! The turn of other tasks, before something goes on that may be ready each time it is polled.
//!
//! Owns: whether it was given. Runs on the thread that polls. Invariants: what goes on suspends when the share of its thread
//! is used up, and goes on after their turn whatever happened meanwhile; it suspends before it takes something, so a poll that is
//! given up loses nothing. Leaves out: the share, and how long the turn is (`budget`).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Context, Poll};
use std::time::Instant;

use super::budget::{self, Suspended};

/// Suspends a task, so that others have their turn.
#[derive(Debug, Default)]
pub(crate) struct Pause {
    suspended: Option<Suspended>,
}

impl Pause {
    /// Returns true if other tasks are to have their turn first.
    pub(crate) fn is_due(&mut self, now: Instant) -> bool {
        if self.suspended.is_some() {
            return !self.is_over(now);
        }
        budget::count(now);
        self.suspended = budget::is_spent().then(budget::suspend);
        self.suspended.is_some()
    }

    /// Returns true if nothing is suspended, or the others had their turn.
    pub(crate) fn is_over(&mut self, now: Instant) -> bool {
        self.suspended.take_if(|suspended| budget::goes_on(suspended, now));
        self.suspended.is_none()
    }

    /// Suspends the task in any case.
    pub(crate) fn give(&mut self, context: &Context<'_>) {
        self.suspended = Some(budget::suspend());
        wake(context);
    }

    /// Suspends the task if other tasks are to have their turn first.
    pub(crate) fn poll(&mut self, now: Instant, context: &Context<'_>) -> Poll<()> {
        if !self.is_due(now) {
            return Poll::Ready(());
        }
        wake(context);
        Poll::Pending
    }
}

/// Has the task polled again after the others. A waker is code of a foreign runtime: its panic is not passed on to who polls.
pub(crate) fn wake(context: &Context<'_>) {
    let _ = catch_unwind(AssertUnwindSafe(|| context.waker().wake_by_ref()));
}

/// Who was suspended and is given up goes on elsewhere.
impl Drop for Pause {
    fn drop(&mut self) {
        if self.suspended.is_some() {
            budget::renew();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Polls until it goes on.
    fn end(pause: &mut Pause, now: Instant) {
        assert!((0..100).any(|_| !pause.is_due(now)));
    }

    #[test]
    fn a_turn_is_given_once_however_often_the_share_is_used_up() {
        let thread = || {
            let (mut pause, mut now) = (Pause::default(), Instant::now());
            assert!(!pause.is_due(now));
            for _ in 0..3 {
                budget::spend(now, SECOND);
                now += SECOND;
                assert!(pause.is_due(now));
                budget::spend(now, SECOND);
                now += SECOND;
                end(&mut pause, now);
                assert!(!pause.is_due(now), "the share is a new one");
            }
        };
        std::thread::spawn(thread).join().unwrap();
    }

    #[test]
    fn one_that_is_given_up_suspends_nothing_after_it() {
        let thread = || {
            let now = Instant::now() + SECOND;
            budget::spend(now - SECOND, SECOND);
            assert!(Pause::default().is_due(now));
            assert!(!Pause::default().is_due(now));
        };
        std::thread::spawn(thread).join().unwrap();
    }

    #[test]
    fn all_that_one_poll_asks_for_suspends_before_one_of_them_goes_on() {
        let thread = || {
            let (mut one, mut other, now) = (Pause::default(), Pause::default(), Instant::now() + SECOND);
            budget::spend(now - SECOND, SECOND);
            assert!(one.is_due(now) && other.is_due(now));
            end(&mut other, now);
            assert!(!one.is_due(now));
        };
        std::thread::spawn(thread).join().unwrap();
    }
}
