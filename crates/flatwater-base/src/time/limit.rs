//! How long a call may take, and until when.
//!
//! Owns: both, as two numbers of nanoseconds, because each call is moved with them. Pure, but for the clock. Invariant: of both, the
//! earlier one holds. Leaves out: what ends a call (`timer`).

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use super::later;

/// A limit that is not set.
const NONE: u64 = u64::MAX;

/// The limits of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeLimit {
    /// From its beginning.
    most: u64,
    /// From `start`.
    until: u64,
}

impl Default for TimeLimit {
    fn default() -> Self {
        Self { most: NONE, until: NONE }
    }
}

impl TimeLimit {
    /// The same with this time from the beginning of a call on.
    #[must_use]
    pub fn with_timeout(self, timeout: Option<Duration>) -> Self {
        Self { most: timeout.map_or(NONE, nanoseconds), ..self }
    }

    /// The same with this end, whenever a call begins; an earlier one stays.
    #[must_use]
    pub fn with_deadline(self, deadline: Instant) -> Self {
        let until = nanoseconds(deadline.saturating_duration_since(start()));
        Self { until: until.min(self.until), ..self }
    }

    /// The same without an end: for what gives back what the calls before it have taken.
    #[must_use]
    pub fn without_deadline(self) -> Self {
        Self { until: NONE, ..self }
    }

    /// Returns the end of all calls, if there is one.
    #[must_use]
    pub fn deadline(self) -> Option<Instant> {
        duration(self.until).map(|until| later(start(), until))
    }

    /// Returns when a call that begins then must have ended.
    #[must_use]
    pub fn ends(self, began: Instant) -> Option<Instant> {
        let own = duration(self.most).map(|most| later(began, most));
        own.into_iter().chain(self.deadline()).min()
    }

    /// Returns how long a call that begins now may take.
    #[inline]
    #[must_use]
    pub fn left(self) -> Option<Duration> {
        let most = duration(self.most);
        let Some(deadline) = self.deadline() else { return most };
        let left = deadline.saturating_duration_since(Instant::now());
        Some(most.map_or(left, |most| most.min(left)))
    }

    /// The same for a call that has waited so long before it begins.
    #[must_use]
    pub fn after(self, waited: Duration) -> Self {
        self.with_timeout(duration(self.most).map(|most| most.saturating_sub(waited)))
    }
}

/// A point in time before all deadlines that are not over.
fn start() -> Instant {
    static START: OnceLock<Instant> = OnceLock::new();
    *START.get_or_init(Instant::now)
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(NONE)
}

#[inline]
fn duration(nanoseconds: u64) -> Option<Duration> {
    (nanoseconds != NONE).then(|| Duration::from_nanos(nanoseconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earlier_one_of_a_timeout_and_a_deadline_holds() {
        let (now, second) = (Instant::now(), Duration::from_secs(1));
        let none = TimeLimit::default();
        assert_eq!((none.ends(now), none.left(), none.deadline()), (None, None, None));
        let timeout = none.with_timeout(Some(second));
        assert_eq!((timeout.ends(now), timeout.left()), (Some(now + second), Some(second)));
        let deadline = now + second * 5;
        let both = timeout.with_deadline(deadline);
        assert_eq!((both.ends(now), both.ends(now + second * 10)), (Some(now + second), Some(deadline)));
        assert_eq!((both.left(), both.with_timeout(None).ends(now)), (Some(second), Some(deadline)));
        assert_eq!(none.with_deadline(now - second).left(), Some(Duration::ZERO), "it is over");
        assert_eq!(none.with_timeout(Some(Duration::MAX)).ends(now), None);
        assert_eq!(timeout.after(second * 2).left(), Some(Duration::ZERO));
        assert_eq!(none.after(second).left(), None);
    }
}
