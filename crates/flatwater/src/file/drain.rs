//! Drains: closing every connection to a file so that the file can be opened again.
//!
//! Owns: asking the owners of connections to close them, and delaying new connections meanwhile. SQLite opens the
//! `-shm` of a file once in a process, when the first connection needs it, and closes it with the last one: if it could
//! be opened for reading only, no connection can write before all are closed. Runs on the writer's thread; the waiting
//! happens on the threads that open connections. Invariants: only the writer begins a drain, while it holds the slot,
//! so there is one drain at a time; opening a connection waits no longer than the drain lasts, nor than it is wanted.
//! Leaves out: when to drain, and for how long.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use crate::thread::lock;

/// How often a thread that waits for the end of a drain looks whether its connection is still wanted.
const LOOK: Duration = Duration::from_millis(2);

/// Closes idle connections, and makes the others close when their users give them back.
type LetGo = Box<dyn Fn() + Send + Sync>;

#[derive(Default)]
pub(crate) struct Drains {
    /// The current generation. A connection opened under another number is not used again.
    number: AtomicU64,
    is_on: Mutex<bool>,
    over: Condvar,
    let_go: OnceLock<LetGo>,
}

impl Drains {
    /// Sets the callback that closes connections. Called once, before the first request.
    pub(crate) fn tell(&self, let_go: LetGo) {
        let _ = self.let_go.set(let_go);
    }

    /// Returns the number that a new connection must remember. Waits until a drain is over; `None` if `is_unwanted` before.
    pub(crate) fn enter(&self, is_unwanted: impl Fn() -> bool) -> Option<u64> {
        let mut is_on = lock(&self.is_on);
        while *is_on {
            if is_unwanted() {
                return None;
            }
            is_on = self.over.wait_timeout(is_on, LOOK).unwrap_or_else(PoisonError::into_inner).0;
        }
        Some(self.number())
    }

    /// The current number. A connection that remembers another number must be closed.
    pub(crate) fn number(&self) -> u64 {
        self.number.load(Ordering::SeqCst)
    }

    /// Begins a drain. Until the returned value is dropped, no other thread opens a connection.
    pub(crate) fn begin(&self) -> Drain<'_> {
        *lock(&self.is_on) = true;
        self.number.fetch_add(1, Ordering::SeqCst);
        Drain(self)
    }
}

/// A drain in progress.
pub(crate) struct Drain<'a>(&'a Drains);

impl Drain<'_> {
    /// Closes connections that are idle now, also those that were in use at the previous call.
    pub(crate) fn collect(&self) {
        if let Some(let_go) = self.0.let_go.get() {
            let_go();
        }
    }
}

impl Drop for Drain<'_> {
    fn drop(&mut self) {
        *lock(&self.0.is_on) = false;
        self.0.over.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicU32;

    use super::*;

    #[test]
    fn what_is_opened_while_there_is_a_recall_is_opened_after_it() {
        let (drains, collected) = (Arc::new(Drains::default()), Arc::new(AtomicU32::new(0)));
        let counter = collected.clone();
        drains.tell(Box::new(move || _ = counter.fetch_add(1, Ordering::SeqCst)));
        let before = drains.enter(|| false).unwrap();
        let drain = drains.begin();
        assert_ne!(drains.number(), before, "what was opened before is old");
        drain.collect();
        assert_eq!(collected.load(Ordering::SeqCst), 1);
        let is_over = Arc::new(AtomicU32::new(0));
        let other = std::thread::spawn({
            let (drains, is_over) = (drains.clone(), is_over.clone());
            move || (drains.enter(|| false).unwrap(), is_over.load(Ordering::SeqCst))
        });
        is_over.store(1, Ordering::SeqCst);
        drop(drain);
        assert_eq!(other.join().unwrap(), (drains.number(), 1));
    }
}
