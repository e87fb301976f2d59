//! A backup on a reader.
//!
//! Owns: the steps around the copy. Runs on a thread of the pool. Invariant: afterwards no transaction is open on the
//! reader, or it is not used again. Leaves out: the copy (`connection::exclusive::copy`).

use std::sync::Arc;

use flatwater_sqlite::Interrupt;

use super::reader::{Performed, Reader};
use crate::connection::exclusive::copy::{Copy, copy};
use crate::options::Options;
use crate::queue::ticket::Ticket;
use crate::workers::Answer;
use crate::workers::shared_errors::not_ended;

/// Copies the database. Returns the same as `perform`.
pub(super) fn backup(reader: &mut Reader, options: &Options, form: &Copy, ticket: &Arc<Ticket>) -> (Performed, bool) {
    if !reader.end_lease() {
        return (Performed::Answered(Err(not_ended())), false);
    }
    let ends: Arc<dyn Interrupt> = ticket.clone();
    let copied = copy(&mut reader.connection, options, form, &ends);
    (Performed::Answered(copied.map(Answer::of_copy)), reader.end_held())
}
