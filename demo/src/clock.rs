//! A clock that all processes of the demo share. Usable on any thread. Leaves out: durations within one process.

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// The time in nanoseconds since a moment that is the same for all processes.
pub(crate) fn now() -> i64 {
    let now: Duration = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("the system has this clock").into();
    i64::try_from(now.as_nanos()).unwrap_or(i64::MAX)
}

/// The nanoseconds since that moment, and zero if it is still to come.
pub(crate) fn age(began: i64) -> u64 {
    u64::try_from(now() - began).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_has_an_age() {
        let began = now();
        std::thread::sleep(Duration::from_millis(2));
        assert!(age(began) >= 2_000_000);
        assert_eq!(age(i64::MAX), 0);
    }
}
