//! A backup on the writer's connection, for a database that has no other.
//!
//! Owns: the steps around the copy, and what ends it. Runs on the thread that holds the token. Invariant: afterwards no
//! transaction is open. Leaves out: the copy (`connection::exclusive::page_copy`).

use std::sync::Arc;

use super::WriterShared;
use super::connection::WriterConnection;
use super::interrupts::ends;
use crate::connection::exclusive::page_copy::{self, Target};
use crate::error::{Error, Result};
use crate::queue::ticket::Ticket;
use crate::workers::Answer;

pub(super) fn backup(
    writer: &mut WriterConnection,
    shared: &WriterShared,
    target: &Target,
    ticket: &Arc<Ticket>,
) -> Result<Answer> {
    let ends = ends(writer, ticket);
    let copied = page_copy::backup(writer.connection()?, &shared.options, target, &ends);
    writer.rollback();
    match copied {
        Err(_) if shared.is_left() => Err(Error::closed()),
        copied => copied.map(|()| Answer::Done),
    }
}
