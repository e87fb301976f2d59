//! The backoff of a statement: after inline runs that turned out not to be short, its next uses do not run inline.
//!
//! Owns: for one statement, how many of its next uses skip the inline run. Any thread may use it. Each number is a
//! separate atomic, so that two threads may count two uses as one: the numbers are hints, and an error in them costs
//! speed, never correctness. Invariants: only an outcome that blames the statement counts against it; the number
//! doubles each time, `DOUBLINGS` times at most, and an inline run that ends well takes back one doubling.

use std::sync::atomic::{AtomicU32, Ordering};

use super::outcome::{Fallback, InlineRun};

/// The number of uses that skip the inline run after the first run that counts against the statement. The number
/// doubles after each further one, `DOUBLINGS` times at most.
const FIRST: u32 = 16;
const DOUBLINGS: u32 = 8;

#[derive(Debug, Default)]
pub(crate) struct Backoff {
    /// The number of uses that still skip the inline run.
    left: AtomicU32,
    /// The number of recent runs that counted against the statement.
    fallbacks: AtomicU32,
}

impl Backoff {
    /// Counts a use. Returns true if it may run inline.
    pub(crate) fn may_try(&self) -> bool {
        let left = self.left.load(Ordering::Relaxed);
        if left != 0 {
            self.left.store(left - 1, Ordering::Relaxed);
        }
        left == 0
    }

    /// Records a run that took far too long, although it was not ended. It also counts as one that ended well.
    pub(crate) fn was_long(&self) {
        let doublings = self.fallbacks.load(Ordering::Relaxed).min(DOUBLINGS);
        self.left.store(FIRST << doublings, Ordering::Relaxed);
        self.fallbacks.store(doublings + 2, Ordering::Relaxed);
    }

    /// Records the outcome of an inline run.
    pub(crate) fn tried<T>(&self, run: &InlineRun<T>) {
        let fallbacks = self.fallbacks.load(Ordering::Relaxed);
        match run {
            InlineRun::Done(..) if fallbacks != 0 => self.fallbacks.store(fallbacks - 1, Ordering::Relaxed),
            InlineRun::FellBack(why, _) => self.fell_back(*why),
            _ => {}
        }
    }

    /// Records that a run fell back.
    pub(crate) fn fell_back(&self, why: Fallback) {
        if why.blames_the_text() {
            let doublings = self.fallbacks.load(Ordering::Relaxed).min(DOUBLINGS);
            self.left.store(FIRST << doublings, Ordering::Relaxed);
            self.fallbacks.store(doublings + 1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::inline::outcome::NotTried;

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
    }

    #[test]
    fn what_the_text_is_not_to_blame_for_does_not_count() {
        let backoff = Backoff::default();
        for why in [Fallback::LateRead, Fallback::Locked, Fallback::SchemaChanged, Fallback::Failed] {
            backoff.tried(&fell_back(why));
            assert_eq!(not_tried(&backoff), 0, "{why:?}");
        }
        backoff.tried(&InlineRun::<()>::Ineligible(NotTried::Other));
        assert_eq!(not_tried(&backoff), 0);
    }
}
