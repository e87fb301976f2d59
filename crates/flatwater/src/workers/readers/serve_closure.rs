//! A closure of the user on a reader's connection.
//!
//! Owns: the read transaction that it runs in, and checking what it may have changed. Runs on the thread that borrowed
//! the connection. Invariants: the closure sees one snapshot; after it the connection is as it was before, or it is not
//! used again. Leaves out: queries (`reader`).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::reader::{Reader, busy};
use crate::error::{Error, Result};
use crate::queue::ticket::Ticket;
use crate::sql::policy;
use crate::workers::Answer;
use crate::workers::refusals::not_ended;
use crate::workers::request::ReadClosure;

impl Reader {
    /// Runs a closure of the user inside a read transaction, so that it sees one snapshot. Afterwards checks what the
    /// closure may have changed on the connection.
    pub(super) fn closure(&mut self, closure: ReadClosure, ticket: &Arc<Ticket>) -> (Result<Answer>, bool) {
        if !self.end_lease() {
            return (Err(not_ended()), false);
        }
        if let Err(error) = self.begin_snapshot(ticket) {
            let rolled_back = self.connection.control.rollback(&mut self.connection.sqlite).is_ok();
            return (Err(error), rolled_back && self.connection.is_idle());
        }
        self.connection.sqlite.set_policy(policy::read_closure);
        let sqlite = self.connection.sqlite.rusqlite();
        let ran = catch_unwind(AssertUnwindSafe(|| closure(sqlite)));
        let trusted = self.connection.restore_handlers(busy(&self.busy_timeout));
        let rolled_back = self.connection.control.rollback(&mut self.connection.sqlite).is_ok();
        let usable = trusted && rolled_back && self.connection.is_idle();
        let answer = match ran {
            Ok(returned) => returned.answer(ticket),
            Err(panic) => Err(Error::panicked(&*panic).with_hint("nothing of it was committed")),
        };
        (answer, usable)
    }
}
