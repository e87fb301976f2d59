//! A backup on a reader.
//!
//! Owns: the steps around the copy. Runs on a thread of the pool. Invariant: afterwards no transaction is open on the
//! reader, or it is not used again. Leaves out: the copy (`connection::exclusive::page_copy`).

use std::sync::Arc;

use flatwater_sqlite::Interrupt;

use super::reader::{Performed, Reader};
use crate::connection::exclusive::page_copy::Target;
use crate::options::Options;
use crate::queue::ticket::Ticket;
use crate::workers::Answer;
use crate::workers::refusals::not_ended;

impl Reader {
    /// Copies the database. Returns the same as `perform`.
    pub(super) fn backup(&mut self, options: &Options, target: &Target, ticket: &Arc<Ticket>) -> (Performed, bool) {
        if !self.end_lease() {
            return (Performed::Answered(Err(not_ended())), false);
        }
        let ends: Arc<dyn Interrupt> = ticket.clone();
        let copied = self.connection.backup(options, target, &ends);
        (Performed::Answered(copied.map(|()| Answer::Done)), self.end_held())
    }
}
