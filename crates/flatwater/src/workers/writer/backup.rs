//! A backup on the writer's connection, for a database that has no other.
//!
//! Owns: the steps around the copy, and what ends it. Runs on the thread that holds the token. Invariant: afterwards no
//! transaction is open. Leaves out: the copy (`connection::backup`).

use std::sync::Arc;

use flatwater_sqlite::Interrupt;

use super::Shared;
use super::connection::WriterConnection;
use crate::connection::backup::Target;
use crate::error::{Error, Result};
use crate::queue::ticket::Ticket;
use crate::workers::answer::Answer;

/// What ends a backup here: its caller, and a close that leaves it behind.
struct Ends(Arc<Ticket>, Arc<dyn Interrupt>);

impl Interrupt for Ends {
    fn should_stop(&self) -> bool {
        self.0.should_stop() || self.1.should_stop()
    }
}

pub(super) fn backup(
    writer: &mut WriterConnection,
    shared: &Shared,
    target: &Target,
    ticket: &Arc<Ticket>,
) -> Result<Answer> {
    let ends: Arc<dyn Interrupt> = Arc::new(Ends(ticket.clone(), writer.ends(ticket)));
    let copied = writer.connection()?.backup(&shared.options, target, &ends);
    writer.rollback();
    match copied {
        Err(_) if shared.is_left() => Err(Error::closed()),
        copied => copied.map(|()| Answer::Done),
    }
}
