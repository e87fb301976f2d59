//! The budget of inline runs: how long they have held this thread since it last suspended, so that the event loop gets
//! its turn.
//!
//! Owns: the end of each thread's share. The time between two inline runs counts too if it is short: the thread did not
//! return to its event loop in between, or only for a moment. Runs on the thread that polls a call. Invariant: the call
//! whose inline run uses up the share suspends once before it returns its result, so that other tasks run. The work of
//! this call is complete by then, so a call that begins later does not overtake it. Leaves out: waking, and what runs.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// The inline work that one thread does without suspending.
const SHARE: Duration = Duration::from_millis(1);
/// A longer gap between two runs does not count: the event loop may have waited for something else meanwhile.
const GAP: Duration = Duration::from_micros(100);

/// The inline runs since the thread last suspended.
#[derive(Clone, Copy)]
struct Held {
    /// When the last one ended.
    end: Instant,
    /// When the share is used up. A long gap moves it.
    full: Instant,
}

thread_local! {
    static HELD: Cell<Option<Held>> = const { Cell::new(None) };
}

/// Adds an inline run that began at `began` and held this thread for `time`.
pub(crate) fn spend(began: Instant, time: Duration) {
    let full = match HELD.get() {
        None => began + SHARE,
        Some(Held { end, full }) if began <= end + GAP => full,
        Some(Held { end, full }) => full + began.saturating_duration_since(end),
    };
    HELD.set(Some(Held { end: began + time, full }));
}

/// Returns true if this thread has used up its share, so that other tasks must get their turn.
pub(crate) fn is_spent() -> bool {
    HELD.get().is_some_and(|held| held.end >= held.full)
}

/// Returns true if the share is used up after `more` inline work.
pub(crate) fn is_spent_with(more: Duration) -> bool {
    HELD.get().map_or(more >= SHARE, |held| held.end + more >= held.full)
}

/// Resets the budget: this thread returns to its event loop.
pub(crate) fn suspend() {
    HELD.set(None);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_has_its_share_and_gets_another_after_it_suspended() {
        let now = Instant::now();
        assert!(!is_spent());
        spend(now, SHARE / 2);
        assert!(!is_spent());
        assert!(is_spent_with(SHARE / 2));
        spend(now + SHARE / 2, SHARE / 2);
        assert!(is_spent());
        suspend();
        assert!(!is_spent());
        std::thread::spawn(|| assert!(!is_spent(), "each thread has its own")).join().unwrap();
    }

    #[test]
    fn what_lies_between_two_runs_counts_unless_it_is_long() {
        let mut now = Instant::now();
        suspend();
        for _ in 0..10 {
            assert!(!is_spent());
            spend(now, GAP / 10);
            now += GAP + GAP / 10;
        }
        assert!(is_spent(), "ten runs of 10 us and nine gaps of 100 us");
        suspend();
        for _ in 0..90 {
            spend(now, GAP / 10);
            now += GAP * 2;
        }
        assert!(!is_spent(), "90 runs of 10 us, with long gaps");
        suspend();
    }
}
