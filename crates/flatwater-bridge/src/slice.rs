//! The length of what is done until other tasks get their turn.
//!
//! Owns: looking at the clock, as rarely as the steps are short. Runs on the loop's thread. Invariant: a slice takes half
//! a millisecond and one step, or a few short ones. Leaves out: what the steps do.

use std::time::{Duration, Instant};

const SLICE: Duration = Duration::from_micros(500);
/// The clock is looked at once per so many steps, if these took no longer than this.
const STEPS: u32 = 32;
const SHORT: Duration = Duration::from_micros(50);

/// A slice of the loop's time.
#[derive(Debug)]
pub struct Slice {
    end: Instant,
    looked: Instant,
    /// The number of steps until the next look.
    steps: u32,
}

impl Slice {
    /// Begins a slice.
    #[must_use]
    pub fn begin() -> Self {
        let now = Instant::now();
        Self { end: now + SLICE, looked: now, steps: 1 }
    }

    /// Notes that a step was done. Returns true if the slice is over.
    #[inline]
    pub fn is_over(&mut self) -> bool {
        self.steps -= 1;
        self.steps == 0 && self.look()
    }

    /// Looks at the clock. Returns true if the slice is over.
    pub fn look(&mut self) -> bool {
        let now = Instant::now();
        self.steps = if now - self.looked < SHORT { STEPS } else { 1 };
        self.looked = now;
        now >= self.end
    }
}
