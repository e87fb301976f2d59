//! The right to run one call on its caller's thread, from the gate of inline runs to the breaker.
//!
//! Owns: the permit, and what its run is found to have done. Used by the thread that has it. Invariants: no run begins without a
//! permit, which only the gate gives (`eligibility`); no outcome of a run is told without its time, which the permit tells the
//! breaker. So each place where calls run on their callers' threads asks one breaker, and feeds it. Leaves out: the rules of
//! the gate, and those of the breaker.

use std::cell::Cell;
use std::time::{Duration, Instant};

use super::breaker::{InlineBreaker, Run};
use super::limits::InlineLimits;
use super::outcome::{Fallback, Held};

/// The right to run one call on this thread, now.
pub(crate) struct Permit<'a> {
    pub(crate) limits: &'a InlineLimits,
    pub(crate) began: Instant,
    breaker: &'a InlineBreaker,
    /// How long reads of pages from files took; `None` if there was none.
    reading: Cell<Option<Duration>>,
    steps: Cell<u32>,
    is_of_foreign_code: Cell<bool>,
}

impl<'a> Permit<'a> {
    pub(super) fn new(limits: &'a InlineLimits, began: Instant, breaker: &'a InlineBreaker) -> Self {
        let (reading, steps, is_of_foreign_code) = Default::default();
        Self { limits, began, breaker, reading, steps, is_of_foreign_code }
    }

    /// Pages were read from files, which took so long.
    pub(crate) fn note_reading(&self, time: Duration) {
        self.reading.set(Some(self.reading.get().unwrap_or_default().saturating_add(time)));
    }

    /// The steps that the progress handler counted; 0 for a statement without a loop, which ends by itself.
    pub(crate) fn note_steps(&self, steps: u32) {
        self.steps.set(steps);
    }

    /// What the run takes is foreign code's time, and says nothing about the disk.
    pub(crate) fn note_foreign_code(&self) {
        self.is_of_foreign_code.set(true);
    }

    /// Ends the run, which took so long, and tells the breaker.
    pub(crate) fn held(&self, took: Duration) -> Held {
        if !self.is_of_foreign_code.get() {
            self.breaker.ended(&self.run(took), self.began + took);
        }
        Held::of(took)
    }

    /// The same, now.
    pub(crate) fn held_until_now(&self) -> Held {
        self.held(self.began.elapsed())
    }

    /// Why a run of this time fell back: one that was interrupted may have waited for pages.
    pub(crate) fn reason(&self, why: Fallback, took: Duration) -> Fallback {
        let run = self.run(took);
        match why {
            Fallback::Interrupted
                if self.reading.get().is_some() && !run.is_by_its_steps() && !self.is_of_foreign_code.get() =>
            {
                Fallback::LateRead
            }
            why => why,
        }
    }

    fn run(&self, took: Duration) -> Run {
        let reading = self.reading.get().unwrap_or_default();
        Run { took, limit: self.limits.time, reading, steps: self.steps.get() }
    }
}
