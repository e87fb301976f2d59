//! A database that is open and has no connection: for a moment, so that the file can be opened again (a drain), or until it is used
//! again (parked).
//!
//! Owns: asking the owners of connections to close them, delaying new connections meanwhile, and the state of being parked, with the
//! wait for its end and who is told of that. SQLite opens the `-shm` of a file once in a process, when the first connection needs it,
//! and closes it with the last one: if it could be opened for reading only, no connection can write before all are closed. A drain
//! runs on the writer's thread; the waiting happens on the threads that open connections. Invariants: only the writer begins a drain,
//! while it holds the slot, so there is one drain at a time; opening a connection waits no longer than the drain lasts, nor than it
//! is wanted; a database is parked under a drain, and is so until the writer has opened its connection again. Leaves out: when to
//! drain, and for how long; closing and opening the connections (`workers::writer`), which databases are parked (`engine::parking`).

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use flatwater_base::error::Result;
use flatwater_base::thread::lock;

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

/// Waits until there is room for the connections of a parked database, or it is over, and then fails. The opening ends when what it
/// returns is dropped.
type WaitForRoom = Box<dyn Fn(&dyn Fn() -> bool) -> Result<Box<dyn Send>> + Send + Sync>;

#[derive(Default)]
pub(crate) struct ParkedState {
    is_set: Mutex<bool>,
    /// Signalled when it is not parked any more.
    ended: Condvar,
    room: OnceLock<WaitForRoom>,
    has_connections: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

impl ParkedState {
    /// Returns true if the database is open and has no connection, so that only the writer may open one.
    pub(crate) fn is_set(&self) -> bool {
        *lock(&self.is_set)
    }

    /// Sets what waits before connections are opened again, and what is called when there are some. Called once.
    pub(crate) fn tell(&self, room: WaitForRoom, has_connections: Box<dyn Fn() + Send + Sync>) {
        let _ = self.room.set(room);
        let _ = self.has_connections.set(has_connections);
    }

    /// Waits until a parked database may have connections again. Blocks.
    pub(crate) fn wait_for_room(&self, is_over: &dyn Fn() -> bool) -> Result<Option<Box<dyn Send>>> {
        self.room.get().filter(|_| self.is_set()).map(|wait| wait(is_over)).transpose()
    }

    /// Waits until the database is not parked, or for this time.
    pub(crate) fn wait_for_end(&self, time: Duration) {
        let is_set = lock(&self.is_set);
        if *is_set {
            drop(self.ended.wait_timeout(is_set, time).unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// Records that all connections were closed. Called under a drain.
    pub(crate) fn begin(&self) {
        *lock(&self.is_set) = true;
    }

    /// Allows connections again.
    pub(crate) fn end(&self) {
        *lock(&self.is_set) = false;
        self.ended.notify_all();
        self.has_connections.get().inspect(|has_connections| has_connections());
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
