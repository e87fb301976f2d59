//! The writes that are in progress.
//!
//! Owns: counting them. Used by callers' and workers' threads. Invariant: a write counts until it is answered or dropped,
//! and once only. Leaves out: who asks for the count.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts a write in progress, from its first push until it is answered or dropped.
pub(crate) struct PendingWrite<C: Deref<Target = AtomicU64> = Arc<AtomicU64>>(C);

impl<C: Deref<Target = AtomicU64>> PendingWrite<C> {
    pub(crate) fn new(count: C) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count)
    }
}

impl<C: Deref<Target = AtomicU64>> Drop for PendingWrite<C> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}
