//! Giving the event loop its turn: how long inline runs have held this thread since it last suspended.
//!
//! Owns: one number per thread. Invariant: the call whose inline work makes it `SHARE` suspends once before it tells its
//! answer, so that other tasks get their turn. Its work is done by then: a call that came after it does not overtake it.
//! Leaves out: waking, and what runs.

use std::cell::Cell;
use std::time::Duration;

/// Inline work that one thread does without suspending.
const SHARE: Duration = Duration::from_millis(1);

thread_local! {
    static SPENT: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// Inline work held this thread for so long.
pub(crate) fn spend(time: Duration) {
    SPENT.set(SPENT.get().saturating_add(time));
}

/// Whether it is the others' turn.
pub(crate) fn is_spent() -> bool {
    is_spent_with(Duration::ZERO)
}

/// Whether it is after `more` inline work.
pub(crate) fn is_spent_with(more: Duration) -> bool {
    SPENT.get().saturating_add(more) >= SHARE
}

/// This thread goes back to its loop.
pub(crate) fn suspend() {
    SPENT.set(Duration::ZERO);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_has_its_share_and_gets_another_after_it_suspended() {
        assert!(!is_spent());
        spend(SHARE / 2);
        assert!(!is_spent());
        assert!(is_spent_with(SHARE / 2));
        spend(SHARE / 2);
        assert!(is_spent());
        suspend();
        assert!(!is_spent());
        std::thread::spawn(|| assert!(!is_spent(), "each thread has its own")).join().unwrap();
    }
}
