//! A closure of the user on a reader's connection.
//!
//! Owns: the read transaction that it runs in, and checking what it may have changed. Runs on the thread that borrowed
//! the connection. Invariants: the closure sees one snapshot; after it the connection is as it was before, or it is not
//! used again. Leaves out: queries (`run_query`).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::reader::{Reader, busy};
use crate::connection::exclusive::reset::{is_idle, restore_handlers};
use crate::error::Result;
use crate::queue::ticket::Ticket;
use crate::sql::policy;
use crate::workers::Answer;
use crate::workers::shared_errors::not_ended;
use crate::workers::work::{ReadClosure, Returned};

/// Runs a closure of the user inside a read transaction, so that it sees one snapshot. Afterwards checks what the
/// closure may have changed on the connection.
pub(super) fn closure(reader: &mut Reader, read: ReadClosure, ticket: &Arc<Ticket>) -> (Result<Answer>, bool) {
    if !reader.end_lease() {
        return (Err(not_ended()), false);
    }
    if let Err(error) = reader.begin_snapshot(ticket) {
        let rolled_back = reader.connection.control.rollback(&mut reader.connection.sqlite).is_ok();
        return (Err(error), rolled_back && is_idle(&reader.connection));
    }
    reader.connection.sqlite.hooks().authorizer.set_policy(policy::read_closure);
    let sqlite = reader.connection.sqlite.rusqlite();
    let ran = catch_unwind(AssertUnwindSafe(|| read(sqlite)));
    let failed = reader.connection.sqlite.hooks().failure.take();
    let trusted = restore_handlers(&mut reader.connection, busy(&reader.busy_timeout));
    let rolled_back = reader.connection.control.rollback(&mut reader.connection.sqlite).is_ok();
    let usable = trusted && rolled_back && is_idle(&reader.connection);
    (Returned::of_read(ran, failed, ticket), usable)
}
