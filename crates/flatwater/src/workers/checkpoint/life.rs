//! The life of the checkpointer's thread.
//!
//! Owns: starting the thread when there is something to do, and ending it. A thread that has no place to linger ends
//! too, and an alarm starts another one that goes on with what it knew. Runs on the threads that start and end it, and on
//! the timer's. Invariants: there is at most one thread; a thread that ends has closed its connection; growth of the WAL
//! that must be looked at never goes unnoticed. Leaves out: what the thread does (`thread`).
//!
//! ```text
//! writer's thread                          fw-checkpoint, without a place to linger
//!                                          sets `wake_at`; the WAL is shorter
//! the WAL is longer than `wake_at`:
//!   makes it the highest number
//! waits for the lock, to wake the thread
//!                                          has the lock: `wake_at` is the highest number, goes on
//! ```

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::decision::Policy;
use super::{Checkpointer, CheckpointerShared, ThreadState};
use flatwater_base::error::{Error, ErrorCode};
use flatwater_base::thread::background::{AGAIN, start_worker};
use flatwater_base::time::later;

impl ThreadState {
    pub(super) fn must_end(&self) -> bool {
        self.closed || self.rests
    }
}

impl Checkpointer {
    /// Ends the thread and closes its connection. Blocks until that is done.
    pub(crate) fn close(&self) {
        let mut state = self.0.lock();
        state.closed = true;
        while let Some(thread) = &state.thread {
            thread.unpark();
            state = self.0.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        drop(state);
        self.0.alarm.clear();
    }

    /// Asks the thread to end, and with it its connection. Returns false if it has not ended after `wait`. Blocks.
    pub(crate) fn rest(&self, wait: Duration) -> bool {
        let until = Instant::now() + wait;
        let mut state = self.0.lock();
        state.rests = true;
        while let Some(thread) = &state.thread {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            thread.unpark();
            state = self.0.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        state.rests = false;
        // The alarm of a thread that ended before may not start another one meanwhile: growth of the WAL does.
        let is_resting = state.thread.is_none();
        if is_resting {
            self.0.wake_at.store(0, Ordering::SeqCst);
        }
        is_resting
    }

    /// Returns true if there is no thread, and so no connection.
    pub(crate) fn is_resting(&self) -> bool {
        self.0.lock().thread.is_none()
    }

    /// Wakes the thread, or starts it.
    pub(super) fn wake(&self) {
        let mut state = self.0.lock();
        if state.closed || self.0.watch().parked.is_set() {
            return;
        }
        if let Some(thread) = &state.thread {
            return thread.unpark();
        }
        self.0.alarm.clear();
        let shared = self.0.clone();
        let started = start_worker("fw-checkpoint", move || shared.run());
        let has_failed = started.is_err();
        match started {
            Ok(thread) => state.thread = Some(thread),
            // Without a thread the WAL grows until the next write tries to start one, or the alarm does.
            Err(_) => {
                self.0.wake_at.store(0, Ordering::Relaxed);
                self.0.start_later(AGAIN);
            }
        }
        drop(state);
        if has_failed {
            self.0.make_no_room();
        }
    }

    /// Returns a closure that wakes the thread, which then closes its connection if a drain is on. The closure does not
    /// keep the checkpointer alive.
    pub(crate) fn letting_go(&self) -> impl Fn() + Send + Sync + use<> {
        let shared = Arc::downgrade(&self.0);
        move || {
            if let Some(shared) = shared.upgrade()
                && let Some(thread) = &shared.lock().thread
            {
                thread.unpark();
            }
        }
    }
}

impl CheckpointerShared {
    /// The body of the thread.
    fn run(self: Arc<Self>) {
        let mut policy = self.lock().policy.take().unwrap_or_else(|| Policy::new(u32::MAX));
        loop {
            let later = catch_unwind(AssertUnwindSafe(|| self.serve(&mut policy))).unwrap_or_else(|_| {
                self.context.recorder.wal.failed(&Error::new(ErrorCode::Internal, "the checkpointer panicked"));
                self.make_no_room();
                None
            });
            let mut state = self.lock();
            if let Some(later) = later.filter(|_| !state.must_end()) {
                if self.wake_at.load(Ordering::SeqCst) == u32::MAX {
                    continue;
                }
                self.start_later(later);
                state.policy = Some(policy);
                return self.ended(state);
            }
            // Under the lock: a writer that finds the WAL grown from here on, or that waits for the lock to wake this
            // thread, starts another one.
            self.wake_at.store(0, Ordering::SeqCst);
            return self.ended(state);
        }
    }

    fn ended(&self, mut state: MutexGuard<'_, ThreadState>) {
        self.pin.give_up();
        state.thread = None;
        drop(state);
        self.changed.notify_all();
    }

    /// Sets the alarm that starts another thread. Called under the lock of the state.
    fn start_later(self: &Arc<Self>, after: Duration) {
        self.alarm.set(later(Instant::now(), after), self, |shared| Checkpointer(shared).wake());
    }
}
