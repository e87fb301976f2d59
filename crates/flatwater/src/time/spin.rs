//! How long a worker looks for the next request before it goes to sleep.
//!
//! Owns: the decision from the gaps seen so far. Waking a sleeping thread takes tens of microseconds, more than a small
//! write; a caller that awaits one write after the other comes back within that time. So a worker whose next request
//! usually comes soon looks for it, giving its processor to anybody who wants it, and one whose does not sleeps at
//! once. Invariant: an idle worker looks once, for at most `LONGEST`, and then sleeps until it is woken. Pure, except
//! for `look`.

use std::time::{Duration, Instant};

/// Looking for longer would cost more than waking.
const LONGEST: Duration = Duration::from_micros(60);

#[derive(Debug)]
pub(crate) struct SpinWait {
    /// Running average of the gaps, each counted as at most twice `LONGEST`.
    gap: Duration,
}

impl SpinWait {
    pub(crate) fn new() -> Self {
        Self { gap: LONGEST * 2 }
    }

    /// How long to look now.
    pub(crate) fn now(&self) -> Duration {
        if self.gap > LONGEST { Duration::ZERO } else { LONGEST }
    }

    /// The next request came after this time.
    pub(crate) fn waited(&mut self, gap: Duration) {
        self.gap = (self.gap * 7 + gap.min(LONGEST * 2)) / 8;
    }

    /// Looks for as long as it pays, until `found`.
    pub(crate) fn look(&self, found: impl Fn() -> bool) {
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
