//! Closing the connections of the pool.
//!
//! Owns: closing the idle connections, after which new ones may be opened, and closing the pool for good. Runs on the
//! thread that closes, and blocks it. Invariants: requests that wait or run are served to their end, or interrupted at
//! the deadline; after the close of the pool no connection is left. Leaves out: when to close.

use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use super::Readers;
use super::running_reads::Running;
use crate::workers::outbox::{Outbox, refuse_closed};

/// After its deadline a close looks again after this time, then after twice this time, and so on.
const PAUSE: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_secs(1);

impl Readers {
    /// Closes the idle connections. Blocks.
    pub(crate) fn let_go(&self) {
        let idle = std::mem::take(&mut self.0.lock().idle);
        self.0.freed(self.0.close_idle(idle));
    }

    /// Returns a function that calls `let_go`. The function does not keep the readers alive.
    pub(crate) fn letting_go(&self) -> impl Fn() + Send + Sync + use<> {
        let shared = Arc::downgrade(&self.0);
        move || {
            if let Some(shared) = shared.upgrade() {
                Self(shared).let_go();
            }
        }
    }

    /// Interrupts the reads that run, and gives back the readers that are held, because the time of a close is over.
    pub(crate) fn end_reads(&self) {
        let mut state = self.0.lock();
        state.ended = true;
        let running = state.running.clone();
        drop(state);
        running.iter().for_each(Running::close);
    }

    /// Ends the reads, and answers what waits, because something does not end.
    pub(crate) fn refuse_waiting(&self) {
        self.end_reads();
        let mut state = self.0.lock();
        state.waiting.admit_all(None);
        state.holding.admit_all(None);
        let mut waiting = state.waiting.take_out(|_| true);
        waiting.extend(state.holding.take_out(|_| true));
        drop(state);
        self.0.closed.notify_all();
        refuse_closed(waiting, &self.0.context.recorder);
    }

    /// Takes no more requests, serves those that wait or run to their end, and closes all connections. At `deadline`,
    /// interrupts the reads that still run. Blocks.
    pub(crate) fn close(&self, deadline: Instant) {
        let mut state = self.0.lock();
        state.closed = true;
        state.waiting.admit_all(None);
        state.holding.admit_all(None);
        let asleep = std::mem::take(&mut state.asleep);
        state.coming += asleep.len();
        drop(state);
        asleep.into_iter().for_each(|thread| thread.unpark());
        let mut state = self.0.lock();
        let mut pause = PAUSE;
        loop {
            if state.waiting.is_empty() && !state.idle.is_empty() {
                let idle = std::mem::take(&mut state.idle);
                drop(state);
                state = self.0.close_idle(idle);
                continue;
            }
            let are_done = state.waiting.is_empty() && state.holding.is_empty();
            if are_done && state.connections == 0 && state.held == 0 {
                return;
            }
            // Where no thread can be started, this one does what is left.
            if state.threads == 0
                && let Some(job) = state.next_job(&self.0.context.options)
            {
                drop(state);
                let mut outbox = Outbox::decoding(&self.0.context.recorder);
                self.0.work(job, &mut outbox);
                outbox.deliver();
                state = self.0.lock();
                continue;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                drop(state);
                self.end_reads();
                state = self.0.lock();
            }
            let left = left.max(pause);
            pause = (pause * 2).min(PAUSE_MAX);
            state = self.0.closed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
