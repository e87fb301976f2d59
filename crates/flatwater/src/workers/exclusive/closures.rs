//! Closures of the user on the writer's connection: in a transaction that is committed if the closure says so, and, in a database
//! that has no other connection, one that only reads.
//!
//! Owns: the steps around the closure. Runs on the thread that holds the slot. Invariants: the closure may replace handlers, leak
//! statements, or panic; whatever can be checked of that is restored, or the connection is replaced, before any other work runs;
//! no transaction is open afterwards. Leaves out: closures with the entire connection (`connection`).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use flatwater_sqlite::Interrupt;
use rusqlite::DropBehavior;

use crate::connection::EngineConnection;
use crate::connection::repair::{is_idle, restore_handlers};
use crate::queue::ticket::Ticket;
use crate::workers::Answer;
use crate::workers::user_closures::{ReadClosure, Returned, WriteClosure};
use crate::workers::writer::WriterShared;
use crate::workers::writer::commit::commit;
use crate::workers::writer::effects::Effects;
use crate::workers::writer::interrupts::{arm, ends};
use crate::workers::writer::writer_connection::WriterConnection;
use flatwater_base::error::cause::panicked;
use flatwater_base::error::{Error, ErrorCode, ErrorKind, Result};
use flatwater_sql::policy;

/// Runs a closure in a transaction, which is committed if the closure returns `Ok`.
pub(crate) fn write_with(
    writer: &mut WriterConnection,
    shared: &WriterShared,
    closure: WriteClosure,
    ticket: &Arc<Ticket>,
) -> Result<Answer> {
    let mut closure = Some(closure);
    let ends = ends(writer, ticket);
    let ran = shared.twice(writer, |writer| begin_closure(writer.connection()?, &mut closure, ends.clone()))?;
    let busy = writer.busy();
    let connection = writer.connection()?;
    let mut trusted = restore_handlers(connection, busy);
    let still_open = !connection.sqlite.handle().is_autocommit();
    let still_runs = connection.sqlite.handle().has_busy_statement();
    let mut effects = Effects::default();
    effects.note_closure(writer);
    let result = match ran {
        Ok(Some(returned)) if returned.is_ok && still_open => match commit(writer, shared, Some(ticket)) {
            Ok(()) => returned.answer(ticket),
            Err(error) if still_runs && error.kind() == ErrorKind::Busy => Err(left_running()),
            Err(error) => Err(error),
        },
        Ok(_) if shared.is_left() || ticket.is_ended() => Err(Error::closed()),
        Ok(Some(returned)) if !returned.is_ok => returned.answer(ticket),
        Ok(_) => Err(Error::new(ErrorCode::LeftTransaction, "the closure ended the transaction it was given")
            .with_hint("return Ok to commit, or an error to roll back")),
        Err(panic) => Err(panicked(&*panic).with_hint("nothing was committed")),
    };
    writer.rollback();
    effects.clean_up(writer, &shared.context.catalogue);
    shared.look_at_disk(writer);
    trusted = trusted && is_idle(writer.connection()?);
    if !trusted {
        writer.replace();
        shared.context.recorder.replaced_connection();
    }
    result
}

/// Returns the error for a closure after which a statement still writes: its commit is SQLITE_BUSY.
fn left_running() -> Error {
    Error::new(
        ErrorCode::LeftTransaction,
        "a statement was still running when the closure returned; the transaction was rolled back",
    )
    .with_hint("run statements to their end, or drop them")
}

/// Begins a transaction and runs the closure in it. The transaction stays open. An error is one of BEGIN; the closure
/// is then left in `closure`.
fn begin_closure(
    connection: &EngineConnection,
    closure: &mut Option<WriteClosure>,
    ends: Arc<dyn Interrupt>,
) -> Result<std::thread::Result<Option<Returned>>> {
    let mut transaction = connection.sqlite.begin_immediate()?;
    transaction.set_drop_behavior(DropBehavior::Ignore);
    connection.sqlite.hooks().authorizer.set_policy(policy::write_closure);
    connection.sqlite.hooks().interrupts.arm(ends);
    Ok(catch_unwind(AssertUnwindSafe(|| closure.take().map(|closure| closure(&transaction)))))
}

/// Runs a read closure on the writer's connection, for a database that has no other connection.
pub(crate) fn read_with(
    writer: &mut WriterConnection,
    shared: &WriterShared,
    closure: ReadClosure,
    ticket: &Arc<Ticket>,
) -> Result<Answer> {
    let busy = writer.busy();
    let connection = writer.connection()?;
    connection.sqlite.execute_batch("BEGIN; PRAGMA query_only = ON")?;
    connection.sqlite.hooks().authorizer.set_policy(policy::read_closure);
    arm(writer, ticket);
    let connection = writer.connection()?;
    let ran = catch_unwind(AssertUnwindSafe(|| closure(connection.sqlite.rusqlite())));
    let failed = connection.sqlite.hooks().failure.take();
    let trusted = restore_handlers(connection, busy);
    writer.rollback();
    let connection = writer.connection()?;
    let writes_again = connection.sqlite.execute_batch("PRAGMA query_only = OFF").is_ok();
    if !(trusted && writes_again && is_idle(connection)) {
        writer.replace();
        shared.context.recorder.replaced_connection();
    }
    Returned::of_read(ran, failed, ticket)
}
