//! What interrupts a statement on the writer's connection.
//!
//! Owns: arming the connection for one request, or for several. Runs on the thread that holds the slot. Invariant: nothing is
//! interrupted after a commit's point of no return. Leaves out: when a close leaves the connection behind (`ongoing`).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use flatwater_sqlite::Interrupt;

use super::state::EndsWhenLeft;
use super::writer_connection::WriterConnection;
use crate::queue::ticket::Ticket;

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
