//! The busy handler: waiting for a lock that another process or another connection holds, by trying again.
//!
//! Owns: the pauses between two attempts, and the end of the wait. Runs inside SQLite's busy handler, on the waiting
//! thread, and uses no connection. Invariant: pauses never exceed 1 ms, so that a connection that has waited longer
//! does not get the lock later than one that has just started to wait; a wait for a caller ends when the caller leaves,
//! and at its deadline. Leaves out: any order among processes (`turnstile`).
//!
//! SQLite's own busy timeout tries after 1, 2, 5, 10, 15, 20, 25, 25, 25, 50 and 50 ms, and then every 100 ms
//! (`sqliteDefaultBusyCallback`). So while several processes poll here without a pause, a program that waits with it
//! finds the lock taken at nearly all of its tries; between two turns the lock is free for longer.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use flatwater_sqlite::Interrupt;

/// Returns the pause before attempt number `tries` (from 0). The first attempt has no pause: BEGIN IMMEDIATE also
/// reports a lost race for a lock that is already free again.
pub fn pause(tries: u32) -> Duration {
    match tries {
        0 => Duration::ZERO,
        1..=20 => Duration::from_micros(75),
        21..=60 => Duration::from_micros(250),
        _ => Duration::from_millis(1),
    }
}

/// When the current wait on a connection ends. The worker sets it before it runs a request; the busy handler reads it
/// on the same thread. The numbers are atomic only because the connection moves between threads.
#[derive(Clone)]
pub struct BusyWait {
    made: Instant,
    shared: Arc<SharedWait>,
}

#[derive(Default)]
struct SharedWait {
    /// Nanoseconds after `made`; 0 if the connection does not wait for locks.
    ends: AtomicU64,
    /// Nanoseconds that all waits took.
    waited: AtomicU64,
    /// Who the connection waits for; `None`: the wait is not given up.
    caller: Mutex<Option<Arc<dyn Interrupt>>>,
}

impl SharedWait {
    fn caller(&self) -> MutexGuard<'_, Option<Arc<dyn Interrupt>>> {
        self.caller.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for BusyWait {
    fn default() -> Self {
        Self { made: Instant::now(), shared: Arc::default() }
    }
}

impl BusyWait {
    /// Waits until `end`, and no longer than the caller wants to.
    pub fn until(&self, end: Instant, caller: Arc<dyn Interrupt>) {
        *self.shared.caller() = Some(caller);
        self.end_at(end);
    }

    /// Waits until `end` for what must be done whoever waits for it: to settle what a failed commit left, for instance.
    pub fn until_for_all(&self, end: Instant) {
        *self.shared.caller() = None;
        self.end_at(end);
    }

    /// Changes when the wait ends, for the same caller.
    pub fn end_at(&self, end: Instant) {
        let nanos = end.saturating_duration_since(self.made).as_nanos();
        self.shared.ends.store(u64::try_from(nanos).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Returns true if it would not wait now.
    pub fn is_over(&self) -> bool {
        self.left().is_zero() || self.shared.caller().as_ref().is_some_and(|caller| caller.should_stop())
    }

    /// How long the wait lasts at most.
    pub fn left(&self) -> Duration {
        Duration::from_nanos(self.shared.ends.load(Ordering::Relaxed)).saturating_sub(self.made.elapsed())
    }

    /// When the wait ends, for a later `end_at`.
    pub fn end(&self) -> Instant {
        self.made + Duration::from_nanos(self.shared.ends.load(Ordering::Relaxed))
    }

    /// Makes the connection not wait for locks.
    pub fn never(&self) {
        self.shared.ends.store(0, Ordering::Relaxed);
    }

    /// The busy handler: waits and returns true, or returns false after the deadline. Without a deadline it returns
    /// false at once.
    pub fn again(&self, tries: u32) -> bool {
        if self.is_over() {
            return false;
        }
        let pause = pause(tries).min(self.left());
        if !pause.is_zero() {
            let began = Instant::now();
            std::thread::sleep(pause);
            self.has_waited(began.elapsed());
        }
        true
    }

    /// Adds a part of the wait that was spent elsewhere.
    pub fn has_waited(&self, time: Duration) {
        self.shared.waited.fetch_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// How long the connection has waited for locks since it was made.
    pub fn waited(&self) -> Duration {
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
        wait.until_for_all(Instant::now() + Duration::from_secs(60));
        assert!(wait.again(0));
        assert_eq!(wait.waited(), Duration::ZERO);
        assert!(wait.again(1));
        assert!(wait.waited() >= pause(1));
        wait.until_for_all(Instant::now());
        assert!(!wait.again(0));
    }

    struct Left;

    impl Interrupt for Left {
        fn should_stop(&self) -> bool {
            true
        }
    }

    #[test]
    fn a_wait_ends_when_its_caller_left_and_the_next_one_does_not() {
        let wait = BusyWait::default();
        wait.until(Instant::now() + Duration::from_secs(60), Arc::new(Left));
        assert!(!wait.again(0));
        wait.until_for_all(Instant::now() + Duration::from_secs(60));
        assert!(wait.again(0));
    }
}
