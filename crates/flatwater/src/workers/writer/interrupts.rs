//! What ends a statement on the writer's connection early, and its waits for locks of the file.
//!
//! Owns: arming the connection for one request, or for several, and its busy handler. Runs on the thread that holds the slot.
//! Invariants: nothing is interrupted after a commit's point of no return; a wait ends when the request that it is for is given up,
//! and when a close has left it behind. Leaves out: when a close leaves the connection behind (`ongoing`), the pauses
//! (`busy_handler`) and the line (`turnstile`).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use flatwater_sqlite::{Busy, Interrupt};

use super::state::EndsWhenLeft;
use super::writer_connection::WriterConnection;
use crate::queue::ticket::Ticket;
use flatwater_base::time::later;

impl Interrupt for EndsWhenLeft {
    fn should_stop(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// What interrupts one request besides: its caller, its deadline, and a close.
struct Ends(Arc<Ticket>, Arc<AtomicBool>);

impl Interrupt for Ends {
    fn should_stop(&self) -> bool {
        self.1.load(Ordering::Relaxed) || self.0.should_stop()
    }

    fn lets_commit(&self) -> bool {
        self.0.lets_commit()
    }
}

/// Returns what interrupts the request of this ticket.
pub(crate) fn ends(writer: &WriterConnection, ticket: &Arc<Ticket>) -> Arc<dyn Interrupt> {
    Arc::new(Ends(ticket.clone(), writer.is_left.clone()))
}

/// Lets the caller of `ticket`, its deadline, or a close interrupt what runs from now on, up to the next commit's point
/// of no return.
pub(crate) fn arm(writer: &mut WriterConnection, ticket: &Arc<Ticket>) {
    if let Some(connection) = &writer.connection {
        connection.sqlite.hooks().interrupts.arm(ends(writer, ticket));
    }
}

/// Lets a close that leaves it behind interrupt what runs from now on for several callers.
pub(crate) fn arm_for_all(writer: &mut WriterConnection) {
    if let Some(connection) = &writer.connection {
        connection.sqlite.hooks().interrupts.arm(writer.left.clone());
    }
}

pub(crate) fn disarm(writer: &mut WriterConnection) {
    if let Some(connection) = &writer.connection {
        connection.sqlite.hooks().interrupts.disarm();
    }
}

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
