//! What is measured of requests: the record of one call, for its event, and how many writes are in progress.
//!
//! Owns: what is known of a call, which the caller and the worker share; counting writes, on callers' and workers' threads.
//! Invariants: a call without a listener has no record, and a worker then reads no clock for it; a write counts until it is answered
//! or dropped, and once only. Leaves out: the event (`api::report`), and who asks for the count.

use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::events::statement_event::ExecutedOn;
use flatwater_base::thread::lock;

/// The record of a call that somebody listens to.
#[derive(Debug)]
pub(crate) struct CallRecord {
    pub(crate) began: Instant,
    /// Locked for one note.
    known: Mutex<Known>,
}

/// What is known of a call, or of several that are one for their caller.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Known {
    /// Where it ran the last time.
    pub(crate) ran_on: Option<ExecutedOn>,
    /// What came before that, but for locks.
    pub(crate) queue: Duration,
    /// How long all runs waited for locks.
    pub(crate) lock: Duration,
    pub(crate) run: Duration,
    /// Present while it runs.
    since: Option<Instant>,
    pub(crate) numbers: Numbers,
}

/// How many rows an answer contains, and how many were changed.
pub(crate) type Numbers = (Option<u64>, Option<u64>);

impl CallRecord {
    /// Returns the record of a call that begins now.
    pub(crate) fn begin() -> Arc<Self> {
        Arc::new(Self { began: Instant::now(), known: Mutex::default() })
    }

    pub(crate) fn read(&self) -> Known {
        let known = *lock(&self.known);
        match (known.ran_on, known.since) {
            (None, _) => Known { queue: self.began.elapsed(), ..known },
            (_, Some(since)) => Known { run: since.elapsed(), ..known },
            _ => known,
        }
    }

    /// Notes that the run ended, which waited so long for locks.
    pub(super) fn ends(&self, locked: Duration) {
        let mut known = lock(&self.known);
        if let Some(since) = known.since.take() {
            known.lock += locked;
            known.run = since.elapsed().saturating_sub(locked);
        }
    }

    /// Notes a run that began then, or began to wait for locks, and how long it took, if it has ended. One that was noted before was
    /// undone.
    pub(crate) fn runs(&self, ran_on: ExecutedOn, began: Instant, locked: Duration, run: Option<Duration>) {
        let mut known = lock(&self.known);
        let queue = began.saturating_duration_since(self.began).saturating_sub(known.lock);
        let (lock, since) = (known.lock + locked, run.is_none().then_some(began));
        *known = Known { ran_on: Some(ran_on), queue, lock, run: run.unwrap_or_default(), since, ..*known };
    }

    /// Forgets a run that was undone.
    pub(crate) fn forget(&self) {
        *lock(&self.known) = Known::default();
    }

    pub(crate) fn answered(&self, numbers: Numbers) {
        lock(&self.known).numbers = numbers;
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
