//! Counters, each declared once: as a field of the snapshot that a caller gets. And the times of one kind of event.
//!
//! Owns: one counter, the macro that makes the recorder of a snapshot, and the histogram of times. Any thread counts and reads a
//! counter. Invariant: each is a single atomic, which is read independently of the others. Leaves out: what is counted; the lock
//! of a histogram.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hdrhistogram::Histogram;

pub(super) const SLOWEST_US: u64 = 3_600_000_000;

/// Converts a time to what a histogram accepts: whole microseconds, at least one.
pub(super) fn us(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(SLOWEST_US).max(1)
}

/// The times of one kind of event, in microseconds, exact to 1 %. It grows with the longest one: from 1 to 15 KB.
#[derive(Clone)]
pub(super) struct Times(Histogram<u32>);

impl Default for Times {
    fn default() -> Self {
        Self(Histogram::new(2).expect("two digits are valid"))
    }
}

impl Times {
    pub(super) fn record(&mut self, time: Duration) {
        // The histogram grows up to the slowest time, which fits into it. A count that is full stays full.
        let _ = self.0.record(us(time).min(SLOWEST_US));
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.0.add(&other.0).expect("it grows");
    }

    pub(super) fn len(&self) -> u64 {
        self.0.len()
    }

    pub(super) fn quantile(&self, quantile: f64) -> u64 {
        self.0.value_at_quantile(quantile)
    }

    pub(super) fn max(&self) -> u64 {
        self.0.max()
    }
}

#[derive(Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn count(&self) {
        self.add(1);
    }

    pub(super) fn add(&self, number: u64) {
        self.0.fetch_add(number, Ordering::Relaxed);
    }

    pub(super) fn set(&self, number: u64) {
        self.0.store(number, Ordering::Relaxed);
    }

    /// Sets the number if it is higher than the one before.
    pub(super) fn raise(&self, number: u64) {
        if number > self.get() {
            self.0.fetch_max(number, Ordering::Relaxed);
        }
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Declares a recorder, with fields of its own in braces, and its snapshot: of each field of the snapshot that is marked with
/// `= Counter` the recorder has the counter. `counted` returns a snapshot in which the other fields have their defaults.
macro_rules! counters {
    (
        pub(crate) struct $recorder:ident { $($own:tt)* }

        $(#[$of_stats:meta])*
        pub struct $stats:ident {
            $($(#[$doc:meta])* pub $field:ident: $type:ty $(= $counter:ident)?,)*
        }
    ) => {
        #[derive(Default)]
        pub(crate) struct $recorder {
            $($(pub(crate) $field: $counter,)?)*
            $($own)*
        }

        impl $recorder {
            #[allow(clippy::needless_update, reason = "not each has other fields")]
            pub(super) fn counted(&self) -> $stats {
                $stats { $($($field: $counter::get(&self.$field),)?)* ..$stats::default() }
            }
        }

        $(#[$of_stats])*
        pub struct $stats {
            $($(#[$doc])* pub $field: $type,)*
        }
    };
}

pub(super) use counters;
