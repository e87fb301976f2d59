//! Giving the event loop its turn: how long inline runs have held this thread since it last suspended.
//!
//! Owns: one number per thread. What its owner does between two runs that follow soon counts too: the thread did not go back
//! to its loop there, or only for a moment. Invariant: the call whose inline work makes it `SHARE` suspends once before it
//! tells its answer, so that other tasks get their turn. Its work is done by then: a call that came after it does not
//! overtake it. Leaves out: waking, and what runs.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// Inline work that one thread does without suspending.
const SHARE: Duration = Duration::from_millis(1);
/// After a longer gap it is not known who held the thread: the loop may have waited for something else.
const GAP: Duration = Duration::from_micros(100);

#[derive(Clone, Copy)]
struct Held {
    spent: Duration,
    /// When the last run ended.
    end: Option<Instant>,
}

const NOTHING: Held = Held { spent: Duration::ZERO, end: None };

thread_local! {
    static HELD: Cell<Held> = const { Cell::new(NOTHING) };
}

/// A run that began at `began` held this thread for so long.
pub(crate) fn spend(began: Instant, time: Duration) {
    let Held { spent, end } = HELD.get();
    let gap = end.map_or(Duration::ZERO, |end| began.saturating_duration_since(end));
    let gap = if gap <= GAP { gap } else { Duration::ZERO };
    HELD.set(Held { spent: spent.saturating_add(gap).saturating_add(time), end: Some(began + time) });
}

/// Whether it is the others' turn.
pub(crate) fn is_spent() -> bool {
    is_spent_with(Duration::ZERO)
}

/// Whether it is after `more` inline work.
pub(crate) fn is_spent_with(more: Duration) -> bool {
    HELD.get().spent.saturating_add(more) >= SHARE
}

/// This thread goes back to its loop.
pub(crate) fn suspend() {
    HELD.set(NOTHING);
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
        spend(now, SHARE / 2);
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
