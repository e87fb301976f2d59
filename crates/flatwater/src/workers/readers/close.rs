//! The end of the pool.
//!
//! Owns: closing, for good or to be opened anew. Invariants: what waits and runs comes to its end, or is interrupted at
//! the deadline; afterwards no connection is left. Leaves out: when to close.

use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use super::Readers;

impl Readers {
    /// Closes the connections that nobody uses. Blocks.
    pub(crate) fn let_go(&self) {
        let idle = std::mem::take(&mut self.0.lock().idle);
        let closed = idle.len();
        drop(idle);
        // Not before they are closed: a close waits for this number.
        let mut state = self.0.lock();
        state.connections -= closed;
        self.0.closed.notify_all();
        // Without a thread the requests that came meanwhile wait for the next push.
        let _ = self.rouse(state);
    }

    /// What calls `let_go`. It does not keep the readers alive.
    pub(crate) fn letting_go(&self) -> impl Fn() + Send + Sync + use<> {
        let shared = Arc::downgrade(&self.0);
        move || {
            if let Some(shared) = shared.upgrade() {
                Self(shared).let_go();
            }
        }
    }

    /// Takes no more requests, lets those that wait and run come to their end, and closes all connections. At
    /// `deadline` those that run are interrupted. Blocks.
    pub(crate) fn close(&self, deadline: Instant) {
        let mut state = self.0.lock();
        state.closed = true;
        state.waiting.admit_all(None);
        let asleep = std::mem::take(&mut state.asleep);
        drop(state);
        asleep.into_iter().for_each(|thread| thread.unpark());
        let mut state = self.0.lock();
        loop {
            if state.waiting.is_empty() && !state.idle.is_empty() {
                let idle = std::mem::take(&mut state.idle);
                let closed = idle.len();
                drop(state);
                drop(idle);
                state = self.0.lock();
                state.connections -= closed;
                continue;
            }
            if state.waiting.is_empty() && state.connections == 0 {
                return;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                state.running.iter().for_each(|running| running.ticket.cancel());
            }
            let left = left.max(Duration::from_millis(10));
            state = self.0.closed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
