//! Until when nobody is in line, as far as is known.
//!
//! Owns: that moment, in a form that a write reads without a lock. Any thread. Leaves out: looking (`turnstile`).

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

pub(super) struct Quiet {
    made: Instant,
    /// Nanoseconds after `made`.
    until: AtomicU64,
}

impl Quiet {
    pub(super) fn new() -> Self {
        Self { made: Instant::now(), until: AtomicU64::new(0) }
    }

    pub(super) fn is_at(&self, now: Instant) -> bool {
        let nanos = now.saturating_duration_since(self.made).as_nanos();
        nanos < u128::from(self.until.load(Ordering::Relaxed))
    }

    pub(super) fn set(&self, until: Instant) {
        let nanos = until.saturating_duration_since(self.made).as_nanos();
        self.until.store(u64::try_from(nanos).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub(super) fn end(&self) {
        self.until.store(0, Ordering::Relaxed);
    }
}
