//! A backup on the writer's connection, for a database that has no other.
//!
//! Owns: the steps around the copy, and what ends it. Runs on the thread that holds the slot. Invariant: afterwards no
//! transaction is open. Leaves out: the copy (`connection::exclusive::copy`).

use std::sync::Arc;

use crate::connection::exclusive::copy::{Copy, copy};
use crate::error::{Error, Result};
use crate::queue::ticket::Ticket;
use crate::workers::Answer;
use crate::workers::writer::WriterShared;
use crate::workers::writer::interrupts::ends;
use crate::workers::writer::writer_connection::WriterConnection;

pub(crate) fn backup(
    writer: &mut WriterConnection,
    shared: &WriterShared,
    form: &Copy,
    ticket: &Arc<Ticket>,
) -> Result<Answer> {
    let ends = ends(writer, ticket);
    let copied = copy(writer.connection()?, &shared.context.options, form, &ends);
    writer.rollback();
    match copied {
        Err(_) if shared.is_left() => Err(Error::closed()),
        copied => copied.map(Answer::of_copy),
    }
}
