//! Waiting for a time: the one timer of the process, and what is built on it.
//!
//! Owns: points in time beyond the range of the clock. Pure; the files have the rest: `timer` has the alarms, `deadline` one that
//! moves, `recurring` one that comes again, `spin` how long a thread polls before it sleeps.

pub(crate) mod deadline;
pub(crate) mod recurring;
pub(crate) mod spin;
pub(crate) mod timer;

use std::time::{Duration, Instant};

/// Far enough in the future to mean never.
const NEVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// Returns `from` plus `by`; a duration beyond the clock's range ends in a hundred years.
pub(crate) fn later(from: Instant, by: Duration) -> Instant {
    from.checked_add(by).unwrap_or_else(|| from + NEVER)
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
}
