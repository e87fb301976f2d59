//! What is measured of requests: the run of one, for the event of its call, and how many writes are in progress.
//!
//! Owns: the times, the place and the numbers of the last run, which the caller's call and the worker share; counting writes, on
//! callers' and workers' threads. Invariants: a request without a listener has no metrics, and a worker then reads no clock for them;
//! a write counts until it is answered or dropped, and once only. Leaves out: the event, and who asks for the count.

use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::events::statement_event::ExecutedOn;
use flatwater_base::thread::lock;

#[derive(Debug, Default)]
pub(crate) struct RunMetrics(Mutex<Measured>);

/// What was noted so far.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Measured {
    pub(crate) run: Option<MeasuredRun>,
    /// How long the runs before, which were undone, waited for locks.
    pub(crate) lock_before: Duration,
    pub(crate) counts: Counts,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct MeasuredRun {
    pub(crate) ran_on: ExecutedOn,
    /// When it began, or began to wait for locks.
    pub(crate) began: Instant,
    pub(crate) lock: Duration,
    /// `None` while it runs.
    pub(crate) run: Option<Duration>,
}

/// The rows that an answer contains, and those that were changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) rows: Option<u64>,
    pub(crate) changes: Option<u64>,
}

/// A run that began, and how long its connection had waited for locks until then.
pub(crate) struct Started {
    ran_on: ExecutedOn,
    began: Instant,
    waited: Duration,
}

impl RunMetrics {
    pub(crate) fn read(&self) -> Measured {
        *lock(&self.0)
    }

    /// Notes that a run begins now. `waited` returns how long its connection has waited for locks so far.
    pub(super) fn start(&self, ran_on: ExecutedOn, waited: impl FnOnce() -> Duration) -> Started {
        let began = Instant::now();
        self.runs(MeasuredRun { ran_on, began, lock: Duration::ZERO, run: None });
        Started { ran_on, began, waited: waited() }
    }

    /// Notes that the run ended.
    pub(super) fn end(&self, started: Started, waited: impl FnOnce() -> Duration) {
        let Started { ran_on, began, waited: before } = started;
        let locked = waited().saturating_sub(before);
        let run = Some(began.elapsed().saturating_sub(locked));
        lock(&self.0).run = Some(MeasuredRun { ran_on, began, lock: locked, run });
    }

    /// Notes a run. One that was noted before was undone.
    pub(crate) fn runs(&self, run: MeasuredRun) {
        let mut measured = lock(&self.0);
        if let Some(before) = measured.run.replace(run) {
            measured.lock_before += before.lock;
        }
    }

    /// Forgets a run that was undone.
    pub(crate) fn forget(&self) {
        *lock(&self.0) = Measured::default();
    }

    pub(crate) fn counted(&self, counts: Counts) {
        lock(&self.0).counts = counts;
    }
}

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
