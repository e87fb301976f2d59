//! The connections of callers that an engine has open.
//!
//! Owns: the list, for parking and for the close. Runs on the threads that serve connections, on those that park a
//! database and close it. Invariant: a connection is in the list before it is opened, and until it is closed; while a
//! database is parked, none is. One lock guards the list, and is held for a few assignments. Leaves out: what a connection does.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use super::OwnConnection;
use flatwater_base::error::{Error, Result};
use flatwater_base::thread::lock;

/// How long a connection that is opened waits for the writer's, before it looks whether the database is still parked.
const PARKED: Duration = Duration::from_millis(50);

#[derive(Default)]
pub(crate) struct OwnConnections {
    open: Mutex<Open>,
    /// Signalled when one was closed, and when all are kept closed no more.
    left: Condvar,
}

#[derive(Default)]
struct Open {
    connections: Vec<Weak<OwnConnection>>,
    closes: bool,
    /// The database is being parked: none is opened meanwhile.
    kept_closed: bool,
}

impl Open {
    /// One that was lost to a panic is not waited for.
    fn has_some(&self) -> bool {
        self.connections.iter().any(|own| own.strong_count() > 0)
    }
}

/// None is opened while it lives. The list itself is not locked: who parks the database wakes tasks, which may drop a handle.
pub(crate) struct KeptClosed<'a>(&'a OwnConnections);

impl Drop for KeptClosed<'_> {
    fn drop(&mut self) {
        self.0.lock().kept_closed = false;
        self.0.left.notify_all();
    }
}

impl OwnConnections {
    fn lock(&self) -> MutexGuard<'_, Open> {
        lock(&self.open)
    }

    fn all(&self) -> Vec<Arc<OwnConnection>> {
        self.lock().connections.iter().filter_map(Weak::upgrade).collect()
    }

    /// Called before a connection is used. Blocks while the database is parked.
    pub(super) fn enter(&self, own: &OwnConnection) -> Result<()> {
        let open = self.left.wait_while(self.lock(), |open| open.kept_closed);
        let mut open = open.unwrap_or_else(PoisonError::into_inner);
        if open.connections.iter().any(|one| std::ptr::eq(one.as_ptr(), own)) {
            return Ok(());
        }
        if open.closes {
            return Err(Error::closed());
        }
        open.connections.push(own.this.clone());
        drop(open);
        let (Some(watch), Some(writer)) = (&own.given.context.watch, &own.given.writer) else { return Ok(()) };
        while watch.parked.is_set() {
            writer.look_again();
            watch.parked.wait_for_end(PARKED);
        }
        Ok(())
    }

    /// Called when a connection was closed.
    pub(super) fn leave(&self, own: &OwnConnection) {
        let mut open = self.lock();
        open.connections.retain(|one| !std::ptr::eq(one.as_ptr(), own));
        drop(open);
        self.left.notify_all();
    }

    /// Returns true if there are some.
    pub(crate) fn are_open(&self) -> bool {
        self.lock().has_some()
    }

    /// Keeps all closed for as long as the guard lives. `None` if one is open.
    pub(crate) fn keep_closed(&self) -> Option<KeptClosed<'_>> {
        let mut open = self.lock();
        if open.has_some() || open.kept_closed {
            return None;
        }
        open.kept_closed = true;
        Some(KeptClosed(self))
    }

    /// Called when the database begins to close: each connection ends as soon as no transaction is open on it.
    pub(crate) fn close_soon(&self) {
        self.lock().closes = true;
        self.all().iter().for_each(|own| own.close_soon());
    }

    /// Called when the time of that close is over: what runs is interrupted, and transactions are rolled back.
    pub(crate) fn end(&self) {
        self.all().iter().for_each(|own| own.end_now());
    }

    /// Waits until all are closed; those that are not at the deadline are ended. Blocks.
    pub(crate) fn wait_until_closed(&self, deadline: Instant) {
        let time = deadline.saturating_duration_since(Instant::now());
        let waits = |open: &mut Open| open.has_some();
        let waited = self.left.wait_timeout_while(self.lock(), time, waits);
        drop(waited);
        self.end();
        let waited = self.left.wait_while(self.lock(), waits);
        drop(waited);
    }
}
