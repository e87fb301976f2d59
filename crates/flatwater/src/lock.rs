//! Waiting for a lock that another process or another connection holds.
//!
//! Owns: the pauses between two attempts, and the end of the wait. Runs inside SQLite's busy handler, on the waiting
//! thread, and uses no connection. Invariant: pauses never exceed 1 ms, so that a connection that has waited longer
//! does not get the lock later than one that has just started to wait. Leaves out: any order among processes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Returns the pause before attempt number `tries` (from 0). The first attempt has no pause: BEGIN IMMEDIATE also
/// reports a lost race for a lock that is already free again.
pub(crate) fn pause(tries: u32) -> Duration {
    match tries {
        0 => Duration::ZERO,
        1..=20 => Duration::from_micros(75),
        21..=60 => Duration::from_micros(250),
        _ => Duration::from_millis(1),
    }
}

/// When the current wait on a connection ends. The worker sets it before it runs a request; the busy handler reads it
/// on the same thread. The numbers are atomic only because the connection moves between threads.
#[derive(Debug, Clone)]
pub(crate) struct BusyWait {
    made: Instant,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Nanoseconds after `made`; 0 if the connection does not wait for locks.
    ends: AtomicU64,
    /// Nanoseconds that all waits took.
    waited: AtomicU64,
}

impl Default for BusyWait {
    fn default() -> Self {
        Self { made: Instant::now(), shared: Arc::default() }
    }
}

impl BusyWait {
    pub(crate) fn until(&self, deadline: Instant) {
        let nanos = deadline.saturating_duration_since(self.made).as_nanos();
        self.shared.ends.store(u64::try_from(nanos).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// When the wait ends, for a later `until`.
    pub(crate) fn end(&self) -> Instant {
        self.made + Duration::from_nanos(self.shared.ends.load(Ordering::Relaxed))
    }

    /// Makes the connection not wait for locks.
    pub(crate) fn never(&self) {
        self.shared.ends.store(0, Ordering::Relaxed);
    }

    /// The busy handler: waits and returns true, or returns false after the deadline. Without a deadline it returns
    /// false at once.
    pub(crate) fn again(&self, tries: u32) -> bool {
        let left = Duration::from_nanos(self.shared.ends.load(Ordering::Relaxed)).saturating_sub(self.made.elapsed());
        if left.is_zero() {
            return false;
        }
        let pause = pause(tries).min(left);
        if !pause.is_zero() {
            let began = Instant::now();
            std::thread::sleep(pause);
            let waited = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
            self.shared.waited.fetch_add(waited, Ordering::Relaxed);
        }
        true
    }

    /// How long the connection has waited for locks since it was made.
    pub(crate) fn waited(&self) -> Duration {
        Duration::from_nanos(self.shared.waited.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_try_is_immediate_and_pauses_stop_growing_at_a_millisecond() {
        assert_eq!(pause(0), Duration::ZERO);
        let pauses: Vec<_> = (0..500).map(pause).collect();
        assert!(pauses.is_sorted());
        assert_eq!(pauses[499], Duration::from_millis(1));
    }

    #[test]
    fn a_wait_ends_at_its_deadline() {
        let wait = BusyWait::default();
        assert!(!wait.again(0), "no deadline, no wait");
        wait.until(Instant::now() + Duration::from_secs(60));
        assert!(wait.again(0));
        assert_eq!(wait.waited(), Duration::ZERO);
        assert!(wait.again(1));
        assert!(wait.waited() >= pause(1));
        wait.until(Instant::now());
        assert!(!wait.again(0));
    }
}
