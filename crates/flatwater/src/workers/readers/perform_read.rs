//! How a reader performs one request: a query, a live query, a closure of the user, a backup.
//!
//! Owns: the steps from a connection out of the pool to one that can be used again. Runs on the thread that borrowed the
//! connection. Invariants: a request runs between `enter` and `leave`, or without a lease, after which no transaction is open
//! except that of a lease; a closure sees one snapshot, and after it the connection is as it was before, or it is not used
//! again. Leaves out: one query (`run_query`), the copy (`connection::exclusive::copy`).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use flatwater_sqlite::Interrupt;

use super::reader::{Performed, Reader, busy};
use super::run_query::query;
use crate::connection::exclusive::copy::{Copy, copy};
use crate::connection::learn::live_query::{Derived, LiveQuery, run_live};
use crate::connection::repair::{is_idle, restore_handlers};
use crate::options::Options;
use crate::queue::ticket::Ticket;
use crate::workers::Answer;
use crate::workers::context::Context;
use crate::workers::shared_errors::not_ended;
use crate::workers::user_closures::{ReadClosure, Returned};
use crate::workers::work::Work;
use flatwater_base::error::Result;
use flatwater_sql::catalogue::Catalogue;
use flatwater_sql::policy;

/// Performs the work. Returns the outcome, and true if the connection can be used again.
pub(super) fn perform(reader: &mut Reader, context: &Context, work: Work, ticket: &Arc<Ticket>) -> (Performed, bool) {
    let Context { options, catalogue, .. } = context;
    reader.connection.lengths.restore(&mut reader.connection.sqlite);
    let now = reader.wait_for_locks(options, ticket);
    if reader.connection.is_behind()
        && let Err(error) = reader.connection.catch_up()
    {
        return (Performed::Answered(Err(error)), true);
    }
    match work {
        Work::ReadWith(read) => {
            let (answer, usable) = closure(reader, read, ticket);
            (Performed::Answered(answer), usable)
        }
        Work::Copy(form) => backup(reader, options, &form, ticket),
        Work::Live(query, known) => live(reader, catalogue, &query, &known, ticket),
        work if work.describe().holds_reader => open_held(reader, catalogue, work, ticket),
        work => read(reader, catalogue, work, ticket, now),
    }
}

/// Opens a cursor or a snapshot. Returns the same as `perform`.
fn open_held(reader: &mut Reader, catalogue: &Catalogue, work: Work, ticket: &Arc<Ticket>) -> (Performed, bool) {
    if !reader.end_lease() {
        return (Performed::Answered(Err(not_ended())), false);
    }
    reader.see_schema(catalogue);
    let interrupt: Arc<dyn Interrupt> = ticket.clone();
    let performed = if let Work::Snapshot = work {
        let begun = reader.begin_snapshot(ticket);
        reader.connection.sqlite.hooks().interrupts.disarm();
        match begun {
            Ok(schema) => {
                reader.in_snapshot = Some(schema);
                Performed::Opened(None)
            }
            Err(error) => Performed::Answered(Err(error)),
        }
    } else {
        query(reader, work, &interrupt)
    };
    if matches!(performed, Performed::Opened(_)) {
        return (performed, true);
    }
    let epoch = reader.epoch;
    let is_usable = reader.end_held();
    if matches!(performed, Performed::Answered(Ok(_))) {
        // It was held for no longer than any read, and knows the schema as after one.
        reader.epoch = epoch;
    }
    (performed, is_usable)
}

/// Runs a live query. Returns the same as `perform`.
fn live(
    reader: &mut Reader,
    catalogue: &Catalogue,
    query: &LiveQuery,
    known: &[Option<Derived>],
    ticket: &Arc<Ticket>,
) -> (Performed, bool) {
    if !reader.end_lease() {
        return (Performed::Answered(Err(not_ended())), false);
    }
    reader.see_schema(catalogue);
    reader.connection.sqlite.hooks().interrupts.arm(ticket.clone());
    let run = run_live(&mut reader.connection, query.parts(known));
    reader.connection.sqlite.hooks().interrupts.disarm();
    let usable = reader.leave(run.is_ok(), Instant::now());
    (Performed::Answered(run.map(Answer::Live)), usable)
}

/// Runs a query, in the transaction of a lease or in its own. Returns the same as `perform`.
fn read(
    reader: &mut Reader,
    catalogue: &Catalogue,
    work: Work,
    ticket: &Arc<Ticket>,
    now: Instant,
) -> (Performed, bool) {
    let Some(continues) = reader.enter(now) else { return (Performed::Answered(Err(not_ended())), false) };
    if !continues {
        reader.see_schema(catalogue);
    }
    let interrupt: Arc<dyn Interrupt> = ticket.clone();
    let performed = query(reader, work, &interrupt);
    let usable = reader.leave(performed.is_ok(), Instant::now());
    (performed, usable)
}

/// Copies the database. Returns the same as `perform`.
pub(super) fn backup(reader: &mut Reader, options: &Options, form: &Copy, ticket: &Arc<Ticket>) -> (Performed, bool) {
    if !reader.end_lease() {
        return (Performed::Answered(Err(not_ended())), false);
    }
    let ends: Arc<dyn Interrupt> = ticket.clone();
    let copied = copy(&mut reader.connection, options, form, &ends);
    (Performed::Answered(copied.map(Answer::of_copy)), reader.end_held())
}

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
