//! What a worker measures of the run of a request, for the event of its call.
//!
//! Owns: the times, the place and the numbers of the last run. Shared by the caller's call and the worker. Invariant: a
//! request without a listener has no metrics, and a worker then reads no clock for them. Leaves out: the event.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::events::statement_event::ExecutedOn;
use crate::thread::lock;

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
