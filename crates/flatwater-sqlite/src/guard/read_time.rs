//! When a page is read too late on a thread that must not be held up.
//!
//! Owns: the rule (pure). Leaves out: refusing the page (`guard`).

use std::time::{Duration, Instant};

use crate::guard::refusals::PageRefusal;

/// Pages that come as fast as this, with the work between them, come from the system's cache and not from a disk.
const FAST: Duration = Duration::from_micros(10);
/// While pages come fast, they are read for so many times the time.
const TIMES: u32 = 4;

/// How long pages are read on a thread that must not be held up, and how a later read is refused.
#[derive(Debug, Clone, Copy)]
pub struct ReadTime {
    /// When the statement began.
    pub began: Instant,
    /// How long after that pages are read, at whatever speed.
    pub time: Duration,
    /// How a later read is refused.
    pub refusal: PageRefusal,
}

impl ReadTime {
    /// Returns true if a page is read too late at `now`, after `reads` others.
    pub(super) fn is_over(&self, reads: u32, now: Instant) -> bool {
        let took = now.saturating_duration_since(self.began);
        let comes_fast = took <= FAST * reads;
        took > if comes_fast { self.time.saturating_mul(TIMES) } else { self.time }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_the_systems_cache_are_read_for_longer_than_those_of_a_disk() {
        let began = Instant::now();
        let time = ReadTime { began, time: Duration::from_micros(50), refusal: PageRefusal::Interrupt };
        let is_over = |reads, micros| time.is_over(reads, began + Duration::from_micros(micros));
        assert!(!is_over(0, 50) && is_over(0, 51), "a page that is the first");
        assert!(is_over(1, 51), "a read that took long");
        assert!(is_over(10, 110) && !is_over(11, 110), "a page in 10 us");
        assert!(!is_over(100, 200) && is_over(100, 201), "however fast they come");
        assert!(!ReadTime { time: Duration::MAX, ..time }.is_over(1, began), "no limit");
    }
}
