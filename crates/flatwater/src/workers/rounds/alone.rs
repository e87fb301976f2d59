//! A write that runs by itself: in plain autocommit, or in a transaction of its own if it has several steps.
//!
//! Owns: the steps around the statements of such a write. Runs on the thread that holds the slot: the writer's thread,
//! or the thread of a blocking caller. Invariants: SQLite's own semantics apply, FAIL included; its caller, its deadline
//! and a close may interrupt the write, and not after the commit's point of no return. Leaves out: groups, interactive
//! transactions, single statements (`autocommit`).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use flatwater_sqlite::Interrupt;
use rusqlite::DropBehavior;

use crate::connection::EngineConnection;
use crate::connection::exclusive::reset::{is_idle, restore_handlers};
use crate::connection::learn::live_query::run_live;
use crate::connection::run::blobs::use_blob;
use crate::error::panics::panicked;
use crate::error::{Error, ErrorKind, Result};
use crate::queue::ticket::Ticket;
use crate::sql::policy;
use crate::sql::script::dump;
use crate::workers::Answer;
use crate::workers::exclusive::connection::with_connection;
use crate::workers::exclusive::import_script::load;
use crate::workers::exclusive::memory_backup::backup;
use crate::workers::exclusive::migration::migrate;
use crate::workers::exclusive::rekey::rekey;
use crate::workers::exclusive::vacuum::vacuum;
use crate::workers::perform::autocommit::autocommit;
use crate::workers::perform::statements::{Rules, perform};
use crate::workers::work::{ReadClosure, Returned, Work, WriteClosure};
use crate::workers::writer::WriterShared;
use crate::workers::writer::commit::commit;
use crate::workers::writer::demanded_checkpoint::checkpoint;
use crate::workers::writer::effects::Effects;
use crate::workers::writer::interrupts::{arm, disarm, ends};
use crate::workers::writer::writer_connection::WriterConnection;

/// Runs the work and returns its answer.
pub(crate) fn run_alone(
    writer: &mut WriterConnection,
    shared: &WriterShared,
    work: Work,
    ticket: &Arc<Ticket>,
    since: Instant,
) -> Result<Answer> {
    writer.wait_for_locks(since, ticket);
    let result = match work {
        Work::WriteWith(closure) => write_with(writer, shared, closure, ticket),
        Work::ReadWith(closure) => read_with(writer, shared, closure, ticket),
        Work::Live(query, known) => {
            arm(writer, ticket);
            run_live(writer.connection()?, query.parts(&known)).map(Answer::Live)
        }
        Work::WithConnection(closure) => with_connection(writer, shared, closure, ticket),
        Work::Copy(form) => backup(writer, shared, &form, ticket),
        Work::Vacuum(text) => vacuum(writer, shared, text, ticket),
        Work::Rekey(key) => rekey(writer, &key, ticket),
        Work::HasKey(key) => Ok(Answer::Flag(shared.context.options.key.as_ref() == Some(&key))),
        Work::Migrate(migrations) => migrate(writer, shared, &migrations, ticket),
        Work::Unpark => writer.connection().map(|_| Answer::Done),
        Work::Checkpoint(mode) => {
            shared.twice(writer, |writer| checkpoint(writer, shared, mode)).map(Answer::Checkpointed)
        }
        // It needs no lock of writers.
        Work::Blob(blob) if blob.only_reads() => {
            arm(writer, ticket);
            use_blob(writer.connection()?, &blob).map(|used| Answer::Blob(Box::new(used)))
        }
        work @ (Work::Execute { .. } | Work::Query { .. } | Work::Prepare(_)) => {
            shared.twice(writer, |writer| autocommit(writer, shared, &work, ticket))
        }
        Work::Script(text) if let Some(found) = dump(&text.sql) => load(writer, shared, &text, found, ticket),
        work => shared
            .twice(writer, |writer| {
                in_transaction(writer, shared, ticket, |writer, effects| {
                    arm(writer, ticket);
                    perform(writer, effects, Rules::Statement(&shared.context.catalogue), &work)
                })
            })
            .map_err(|error| work.explain(error)),
    };
    disarm(writer);
    result.map_err(|error| error.timed(ticket))
}

/// Runs `body` in a transaction of its own, and commits all of it or nothing.
fn in_transaction<T>(
    writer: &mut WriterConnection,
    shared: &WriterShared,
    ticket: &Arc<Ticket>,
    body: impl FnOnce(&mut WriterConnection, &mut Effects) -> Result<T>,
) -> Result<T> {
    writer.begin()?;
    let mut effects = Effects::default();
    let result = match body(writer, &mut effects) {
        Ok(result) => commit(writer, shared, Some(ticket)).map(|()| result),
        Err(error) => {
            writer.rollback();
            Err(error)
        }
    };
    effects.clean_up(writer, &shared.context.catalogue);
    result
}

/// Runs a closure of the user on the writer's connection. The closure may replace handlers, leak statements, or panic.
/// Whatever can be checked of that is restored, or the connection is replaced, before any other work runs.
fn write_with(
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
        Ok(_) => Err(Error::misuse("the closure ended the transaction it was given")
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
    Error::misuse("a statement was still running when the closure returned; the transaction was rolled back")
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
fn read_with(
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
