//! What is known of a text when the writer chooses a group.
//!
//! Owns: the properties that make a text groupable, and the average of its execution time. Any thread may read and
//! record them. Invariant: every field is a hint. A stale one costs speed, never correctness: the writer compares the
//! schema before it runs a group, and looks at the class of each write when it prepares it. Leaves out: the choice
//! (`workers::rounds::choice`), whose properties these are (`catalogue`).

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// The number of executions after which the average cost of a text can be trusted.
const HISTORY: u32 = 8;

/// `class`, if the text may not be grouped. An epoch in which it may is stored plus `FIRST_EPOCH`.
const RUNS_ALONE: u64 = 1;
const FIRST_EPOCH: u64 = 2;

/// The properties of one text, or of all texts that are alike.
#[derive(Debug, Default)]
pub struct Grouping {
    /// 0 before the first prepare; then `RUNS_ALONE`, or the epoch in which the text was found to be groupable.
    class: AtomicU64,
    /// It once ended the transaction of a group.
    pub(super) aborting: AtomicBool,
    /// It failed in a group that had no savepoint for it.
    pub(super) failed: AtomicBool,
    /// The running average of its execution time in nanoseconds, plus 1; 0 before the first execution.
    cost_ns: AtomicU32,
    /// The number of timed executions, counted up to `HISTORY`.
    timed: AtomicU32,
}

impl Grouping {
    /// Records what the writer learned when it prepared the text under the schema of `epoch`.
    pub(super) fn learn(&self, groupable: bool, epoch: u64) {
        self.class.store(if groupable { epoch + FIRST_EPOCH } else { RUNS_ALONE }, Ordering::Relaxed);
    }

    /// Returns true if the writer has prepared it, under any schema.
    pub(super) fn is_known(&self) -> bool {
        self.class.load(Ordering::Relaxed) != 0
    }

    /// Returns true if it may run in a group whose writes must take no longer than `short`.
    pub(super) fn is_groupable(&self, epoch: u64, short: Duration) -> bool {
        let cost = self.cost_ns.load(Ordering::Relaxed);
        self.class.load(Ordering::Relaxed) == epoch + FIRST_EPOCH
            && !self.aborting.load(Ordering::Relaxed)
            && cost != 0
            && u128::from(cost - 1) <= short.as_nanos()
    }

    /// Records an execution time. An average of the last eight, because one slow run may be due to the machine.
    pub(super) fn took(&self, time: Duration) {
        let now = u32::try_from(time.as_nanos()).unwrap_or(u32::MAX - 1).min(u32::MAX - 1);
        let before = self.cost_ns.load(Ordering::Relaxed);
        let average = match before {
            0 => now,
            before => (before - 1) - (before - 1) / 8 + now / 8,
        };
        self.cost_ns.store(average.min(u32::MAX - 1) + 1, Ordering::Relaxed);
        let timed = self.timed.load(Ordering::Relaxed);
        if timed < HISTORY {
            self.timed.store(timed + 1, Ordering::Relaxed);
        }
    }

    /// Forgets all execution times.
    pub(super) fn forget_times(&self) {
        self.timed.store(0, Ordering::Relaxed);
        self.cost_ns.store(0, Ordering::Relaxed);
    }

    /// Returns the average of the executions, if enough were timed.
    pub(super) fn average(&self) -> Option<Duration> {
        let cost = self.cost_ns.load(Ordering::Relaxed).checked_sub(1)?;
        let is_known = self.timed.load(Ordering::Relaxed) >= HISTORY;
        is_known.then(|| Duration::from_nanos(u64::from(cost)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_groupable_once_it_is_known_to_be_short_under_this_schema() {
        let short = Duration::from_millis(1);
        let text = Grouping::default();
        assert!(!text.is_known());
        text.learn(true, 0);
        assert!(text.is_known() && !text.is_groupable(0, short), "never run");
        text.took(Duration::from_micros(5));
        assert!(text.is_groupable(0, short));
        assert!(!text.is_groupable(1, short), "another schema");
        text.learn(false, 0);
        assert!(text.is_known() && !text.is_groupable(0, short), "it runs alone");
        text.learn(true, 0);
        for _ in 0..100 {
            text.took(Duration::from_millis(9));
        }
        assert!(!text.is_groupable(0, short), "slow");
        text.took(Duration::ZERO);
        for _ in 0..100 {
            text.took(Duration::ZERO);
        }
        assert!(text.is_groupable(0, short), "short again");
        text.aborting.store(true, Ordering::Relaxed);
        assert!(!text.is_groupable(0, short));
    }
}
