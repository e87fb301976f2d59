//! What the tasks share that serve callers.
//!
//! Owns: the way to the cluster, the settings, and who is told that a caller has left. Used on the thread of the connection only. Leaves
//! out: the tasks (`reads`, `writes`, `thread`).

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::{Duration, Instant};

use flatwater::bindings::server::Asked;
use tokio::sync::{Notify, Semaphore};

use crate::cluster::ask::Cluster;
use crate::levels::Levels;
use crate::options::RemoteOptions;
use crate::seen::Seen;
use crate::writes::guard::Writer;

/// So many results are read in parts at a time: the server has a connection for each.
const CURSORS: usize = 32;

/// What the tasks of the thread share.
pub(crate) struct Shared {
    pub(crate) cluster: Cluster,
    pub(crate) options: RemoteOptions,
    pub(crate) levels: Arc<Levels>,
    pub(crate) left: Arc<Notify>,
    /// Those of transactions that have ended. A number that is used again leaves no row behind.
    writers: RefCell<Vec<Writer>>,
    /// Held by the transaction of this client that is open, or by its request of writes. The server has one of all clients, so
    /// another one would only wait there, where it cannot be given up.
    pub(crate) slot: Arc<Semaphore>,
    /// What other clients left was removed.
    pub(crate) has_cleaned: Cell<bool>,
    pub(crate) seen: Seen,
    /// Held by results that are read in parts.
    pub(crate) cursors: Semaphore,
    /// When the database was closed.
    closed: Cell<Option<Instant>>,
    closing: Notify,
}

impl Shared {
    pub(crate) fn new(cluster: Cluster, options: RemoteOptions, levels: Arc<Levels>, left: Arc<Notify>) -> Self {
        let (writers, slot) = (RefCell::default(), Arc::new(Semaphore::new(1)));
        let (has_cleaned, seen, cursors) = (Cell::new(false), Seen::default(), Semaphore::new(CURSORS));
        let (closed, closing) = (Cell::new(None), Notify::new());
        Self { cluster, options, levels, left, writers, slot, has_cleaned, seen, cursors, closed, closing }
    }

    /// Until when a write is tried: one that was sent is finished, also if its caller has left by then.
    pub(crate) fn finishes_by(&self, asked: &Asked) -> Instant {
        self.ends(asked).max(asked.began() + self.options.timeout)
    }

    /// Returns a writer that nobody uses.
    pub(crate) fn writer(&self) -> Writer {
        self.writers.borrow_mut().pop().unwrap_or_else(|| Writer::new(rand::random()))
    }

    /// Keeps a writer whose request has ended.
    pub(crate) fn keep_writer(&self, writer: Writer) {
        self.writers.borrow_mut().push(writer);
    }

    /// Until when a call goes on trying: its own deadline, if it has one.
    pub(crate) fn ends(&self, asked: &Asked) -> Instant {
        asked.deadline().unwrap_or_else(|| asked.began() + self.options.timeout)
    }

    /// Notes that the database was closed.
    pub(crate) fn close(&self) {
        self.closed.set(self.closed.get().or_else(|| Some(Instant::now())));
        self.closing.notify_waiters();
    }

    /// Returns when the database has been closed for so long.
    pub(crate) async fn closed_for(&self, wait: Duration) {
        loop {
            // Nothing else runs on this thread between the look and the wait.
            match self.closed.get() {
                Some(closed) => return tokio::time::sleep_until((closed + wait).into()).await,
                None => self.closing.notified().await,
            }
        }
    }

    /// Returns when the caller has left.
    pub(crate) async fn left(&self, asked: &Asked) {
        left_by(&self.left, asked).await;
    }
}

/// Returns when the caller has left; `left` is told of each that does.
pub(crate) async fn left_by(left: &Notify, asked: &Asked) {
    loop {
        // Made before the look: what is told from then on is not missed.
        let told = left.notified();
        if asked.is_left() {
            return;
        }
        told.await;
    }
}
