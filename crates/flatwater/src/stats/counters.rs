//! Counters, each declared once: as a field of the snapshot that a caller gets.
//!
//! Owns: one counter, and the macro that makes the recorder of a snapshot. Any thread counts and reads. Invariant: each
//! counter is a single atomic, which is read independently of the others. Leaves out: what is counted; histograms.

use std::sync::atomic::{AtomicU64, Ordering};

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
            fn counted(&self) -> $stats {
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
