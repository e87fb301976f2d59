//! A clock that all processes share.
//!
//! Owns: moments in nanoseconds that another process understands, waiting for one, and keeping the processor busy.
//! Usable on any thread. Leaves out: durations within one process, which are `Instant`'s.

use std::thread;
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// Nanoseconds since a moment that is the same for all processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Moment(u64);

impl Moment {
    pub fn now() -> Self {
        let now: Duration = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("the system has this clock").into();
        Self(u64::try_from(now.as_nanos()).expect("the machine has run for less than centuries"))
    }

    pub fn after(self, duration: Duration) -> Self {
        Self(self.0 + u64::try_from(duration.as_nanos()).expect("it is a time that somebody waits for"))
    }

    /// The time since an earlier moment, and zero since a later one.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// Sleeps until then.
    pub fn wait(self) {
        thread::sleep(self.since(Self::now()));
    }
}

/// Keeps the processor for so long.
pub fn spin(lasts: Duration) {
    let began = Instant::now();
    while began.elapsed() < lasts {
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_waited_for_and_an_earlier_one_is_not() {
        let began = Moment::now();
        let then = began.after(Duration::from_millis(2));
        then.wait();
        assert!(Moment::now() >= then);
        assert_eq!(began.since(then), Duration::ZERO);
        assert_eq!(then.since(began), Duration::from_millis(2));
    }
}
