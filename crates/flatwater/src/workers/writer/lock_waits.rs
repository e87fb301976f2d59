//! How long the writer's connection waits for a lock of the file, and what it does meanwhile.
//!
//! Owns: the busy handler of the connection. Runs on the thread that holds the slot. Invariant: a wait ends when the
//! request that it is for is given up, and when a close has left it behind. Leaves out: the pauses (`busy_handler`) and
//! the line (`turnstile`).

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use flatwater_sqlite::Busy;

use super::writer_connection::WriterConnection;
use crate::queue::ticket::Ticket;
use crate::time::later;

impl WriterConnection {
    /// Returns the busy handler.
    pub(crate) fn busy(&self) -> Busy {
        let (wait, is_left) = (self.busy_timeout.clone(), self.is_left.clone());
        // A connection of a caller has waited for the slot, and only polls for the lock.
        let in_line = self.own.is_none().then(|| self.context.clone());
        let again = move |tries| match in_line.as_ref().and_then(|context| context.turnstile.as_ref()) {
            Some(turnstile) => turnstile.found_busy(tries, &wait),
            None => wait.again(tries),
        };
        Box::new(move |tries| !is_left.load(Ordering::SeqCst) && again(tries))
    }

    /// Lets the connection wait for locks until the busy timeout of a request that began to wait at `since` ends, its
    /// deadline passes, or its caller leaves.
    pub(crate) fn wait_for_locks(&self, since: Instant, ticket: &Arc<Ticket>) {
        let end = later(since, self.options().busy_timeout);
        self.busy_timeout.until(ticket.deadline.map_or(end, |deadline| end.min(deadline)), ticket.clone());
    }

    /// Lets the connection wait for locks for the busy timeout, whoever waits for what it does.
    pub(crate) fn wait_for_locks_for_all(&self) {
        self.busy_timeout.until_for_all(later(Instant::now(), self.options().busy_timeout));
    }
}
