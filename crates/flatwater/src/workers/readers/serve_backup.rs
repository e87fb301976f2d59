//! A backup on a reader.
//!
//! Owns: the steps around the copy. Runs on a thread of the pool. Invariant: afterwards no transaction is open on the
//! reader, or it is not used again. Leaves out: the copy (`connection::exclusive::page_copy`).

use std::sync::Arc;

use flatwater_sqlite::Interrupt;

use super::reader::{Performed, Reader};
use crate::connection::exclusive::page_copy::{self, Target};
use crate::options::Options;
use crate::queue::ticket::Ticket;
use crate::workers::Answer;
use crate::workers::refusals::not_ended;

/// Copies the database. Returns the same as `perform`.
pub(super) fn backup(
    reader: &mut Reader,
    options: &Options,
    target: &Target,
    ticket: &Arc<Ticket>,
) -> (Performed, bool) {
    if !reader.end_lease() {
        return (Performed::Answered(Err(not_ended())), false);
    }
    let ends: Arc<dyn Interrupt> = ticket.clone();
    let copied = page_copy::backup(&mut reader.connection, options, target, &ends);
    (Performed::Answered(copied.map(|()| Answer::Done)), reader.end_held())
}
