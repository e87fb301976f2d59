//! Waiting for a time: points in time beyond the range of the clock, and how long a worker polls for the next request before it
//! sleeps. `timer` has the alarms, `recurring` one that comes again, `limit`
//! the time of a call.
//!
//! Owns: the decision to poll, from the gaps measured so far. Waking a sleeping thread takes tens of microseconds, longer than
//! a small write; a caller that awaits one write after the other sends the next one within that time. So a worker whose
//! next request usually comes soon polls for it, yielding its processor to other threads, and any other worker sleeps
//! at once. Invariant: an idle worker polls once, for at most `LONGEST`, and then sleeps until it is woken. Pure,
//! except for `look`, which runs on the worker's thread. Leaves out: sleeping.

pub mod limit;
pub mod recurring;
pub mod timer;

use std::time::{Duration, Instant};

/// Far enough in the future to mean never.
const NEVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// Returns `from` plus `by`; a duration beyond the clock's range ends in a hundred years.
pub fn later(from: Instant, by: Duration) -> Instant {
    from.checked_add(by).unwrap_or_else(|| from + NEVER)
}

/// Polling for longer would cost more than waking.
const LONGEST: Duration = Duration::from_micros(60);

/// How long a worker polls before it sleeps.
#[derive(Debug)]
pub struct SpinWait {
    /// Running average of the gaps, each counted as at most twice `LONGEST`.
    gap: Duration,
}

impl SpinWait {
    /// Makes one that knows no gaps yet.
    pub fn new() -> Self {
        Self { gap: LONGEST * 2 }
    }

    /// How long to poll now.
    pub fn now(&self) -> Duration {
        if self.gap > LONGEST { Duration::ZERO } else { LONGEST }
    }

    /// Records that the next request came after this time.
    pub fn waited(&mut self, gap: Duration) {
        self.gap = (self.gap * 7 + gap.min(LONGEST * 2)) / 8;
    }

    /// Polls until `found` returns true, for at most the time that `now` returns.
    pub fn look(&self, found: impl Fn() -> bool) {
        let time = self.now();
        if time.is_zero() {
            return;
        }
        let began = Instant::now();
        while !found() && began.elapsed() < time {
            std::thread::yield_now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_duration_does_not_overflow() {
        let now = Instant::now();
        assert_eq!(later(now, Duration::from_secs(1)) - now, Duration::from_secs(1));
        assert!(later(now, Duration::MAX) > now + Duration::from_secs(3600));
    }

    #[test]
    fn a_worker_looks_only_while_requests_come_soon() {
        let mut patience = SpinWait::new();
        assert_eq!(patience.now(), Duration::ZERO, "at first it sleeps");
        for _ in 0..20 {
            patience.waited(Duration::from_micros(15));
        }
        assert_eq!(patience.now(), LONGEST);
        for _ in 0..20 {
            patience.waited(Duration::from_millis(3));
        }
        assert_eq!(patience.now(), Duration::ZERO);
    }

    #[test]
    fn one_long_pause_does_not_end_its_patience() {
        let mut patience = SpinWait::new();
        for _ in 0..50 {
            patience.waited(Duration::from_micros(10));
        }
        patience.waited(Duration::from_secs(3600));
        assert_eq!(patience.now(), LONGEST);
    }
}
