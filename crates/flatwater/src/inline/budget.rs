//! The budget of inline runs: how long they have held this thread since it last suspended, so that the event loop gets
//! its turn.
//!
//! Owns: the end of each thread's share. The time between two inline runs counts too if it is short: the thread did not
//! return to its event loop in between, or only for a moment. Of a longer time between them counts what the thread worked:
//! a task that computes between its calls holds the event loop as well. Runs on the thread that polls a call. Invariant: the call
//! whose inline run uses up the share suspends once before it returns its result, so that other tasks run. The work of
//! this call is complete by then, so a call that begins later does not overtake it. Leaves out: waking, and what runs.

use std::cell::Cell;
use std::time::{Duration, Instant};

use flatwater_sqlite::thread_cpu_time;

/// The inline work that one thread does without suspending.
const SHARE: Duration = Duration::from_millis(1);
/// A longer gap between two runs is no inline work: the event loop may have waited for something else meanwhile.
const GAP: Duration = Duration::from_micros(100);

/// The inline runs since the thread last suspended.
#[derive(Clone, Copy)]
struct Held {
    /// When the last one ended.
    end: Instant,
    /// When the share is used up. A long gap moves it.
    full: Instant,
    /// The CPU time of the thread after its first long gap.
    worked_before: Option<Duration>,
    /// The thread has worked for a whole share since then.
    has_worked: bool,
}

impl Held {
    /// Adds an inline run. The clock of the thread's CPU time is read only after a long gap, because that is a system call.
    fn add(before: Option<Self>, began: Instant, time: Duration, cpu_time: impl Fn() -> Option<Duration>) -> Self {
        let end = began + time;
        let Some(held) = before else {
            return Self { end, full: began + SHARE, worked_before: None, has_worked: false };
        };
        if began <= held.end + GAP {
            return Self { end, ..held };
        }
        let now = cpu_time();
        let worked = held.worked_before.zip(now).map(|(before, now)| now.saturating_sub(before));
        Self {
            end,
            full: held.full + began.saturating_duration_since(held.end),
            worked_before: held.worked_before.or(now),
            has_worked: worked.is_some_and(|worked| worked >= SHARE),
        }
    }
}

thread_local! {
    static HELD: Cell<Option<Held>> = const { Cell::new(None) };
}

/// Adds an inline run that began at `began` and held this thread for `time`.
pub(crate) fn spend(began: Instant, time: Duration) {
    HELD.set(Some(Held::add(HELD.get(), began, time, thread_cpu_time)));
}

/// Returns true if this thread has used up its share, so that other tasks must get their turn.
pub(crate) fn is_spent() -> bool {
    HELD.get().is_some_and(|held| held.end >= held.full || held.has_worked)
}

/// Returns true if the inline work alone uses up the share after `more` of it.
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
        assert!(HELD.get().is_some_and(|held| held.end < held.full), "90 runs of 10 us, with long gaps");
        suspend();
    }

    #[test]
    fn what_the_thread_worked_in_long_gaps_counts_and_what_it_slept_does_not() {
        let runs = |count: u32, work: Duration| {
            let began = Instant::now();
            let run = |held, n| Held::add(held, began + 20 * GAP * n, GAP / 10, || Some(work * n));
            (0..count).fold(None, |held, n| Some(run(held, n))).unwrap()
        };
        assert!(!runs(11, SHARE / 10).has_worked, "nine tenths of a share since the first gap");
        assert!(runs(12, SHARE / 10).has_worked);
        let sleeps = runs(90, SHARE / 1_000);
        assert!(!sleeps.has_worked && sleeps.end < sleeps.full);
        let began = Instant::now();
        let without_a_clock =
            (0..90).fold(None, |held, n| Some(Held::add(held, began + 2 * GAP * n, GAP / 10, || None)));
        assert!(without_a_clock.is_some_and(|held| !held.has_worked && held.end < held.full));
    }
}
