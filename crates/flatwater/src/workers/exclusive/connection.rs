//! The writer's exclusive connection, for a closure of the user or for migrations, which may change anything of it.
//!
//! Owns: lending it, and what follows. Runs on the thread that holds the slot. Invariants: whatever was done with the
//! connection, and however that ended, no transaction is open afterwards, nothing that was learnt before is relied on,
//! and what runs next runs on a connection with its settings: another one, or in memory the same one, reset; a commit
//! that may have failed meanwhile is followed by a barrier commit. Leaves out: what runs on it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use crate::connection::exclusive::lend::{self, Remains};
use crate::connection::exclusive::migration::enforce_foreign_keys;
use crate::connection::repair::exclusive_policy;
use crate::queue::ticket::{Ticket, late};
use crate::workers::Answer;
use crate::workers::user_closures::{ExclusiveClosure, Returned};
use crate::workers::writer::WriterShared;
use crate::workers::writer::close_connection::renew;
use crate::workers::writer::commit::write_barrier;
use crate::workers::writer::commits_seen::change;
use crate::workers::writer::effects::wrote_everything;
use crate::workers::writer::failed_commit::Change;
use crate::workers::writer::interrupts::ends;
use crate::workers::writer::known_schema::relearn_schema;
use crate::workers::writer::writer_connection::WriterConnection;
use flatwater_base::error::cause::panicked;
use flatwater_base::error::{Error, ErrorCode, ErrorKind, Result, TimeoutEffect};

/// Runs a closure with the exclusive connection.
pub(crate) fn with_connection(
    writer: &mut WriterConnection,
    shared: &WriterShared,
    closure: ExclusiveClosure,
    ticket: &Arc<Ticket>,
) -> Result<Answer> {
    shared.twice(writer, |writer| writer.connection().map(drop))?;
    let before = change(writer);
    let ends = ends(writer, ticket);
    let connection = writer.connection()?;
    connection.sqlite.hooks().authorizer.set_policy(exclusive_policy(connection));
    connection.sqlite.hooks().interrupts.arm(ends);
    let ran = lend_exclusively(writer, |connection| catch_unwind(AssertUnwindSafe(|| closure(connection))))?;
    // Outside of WAL mode no counter shows it.
    let committed = !matches!((before, change(writer)), (Change::Wal(before), Change::Wal(after)) if before == after);
    let left = take_back(writer, shared, ticket).and_then(|left| {
        if left.may_have_phantom && has_wal(writer)? {
            writer.wait_for_locks_for_all();
            write_barrier(writer).map_err(unknown)?;
        }
        Ok(left)
    });
    left.and_then(|left| answer(ran, &left, ticket, committed))
}

/// Returns the answer of a closure after which this was `left`.
fn answer(ran: std::thread::Result<Returned>, left: &Remains, ticket: &Ticket, committed: bool) -> Result<Answer> {
    const STAYS: &str = "an open transaction was rolled back; earlier commits of the closure stay";
    match ran {
        Err(panic) => Err(panicked(&*panic).with_hint(STAYS)),
        Ok(returned) if !returned.is_ok && ticket.is_past_deadline() => {
            let applied = if committed || left.may_have_phantom { TimeoutEffect::Unknown } else { TimeoutEffect::No };
            Err(late(applied))
        }
        Ok(returned) if returned.is_ok && left.transaction => {
            Err(Error::new(ErrorCode::LeftTransaction, "the closure left a transaction open, which was rolled back")
                .with_hint("commit it before the closure ends; its earlier commits stay"))
        }
        Ok(returned) => Ok(Answer::Returned(returned.result, returned.error)),
    }
}

/// Called when the whole connection was lent, or used like that. Returns what was left on it.
pub(crate) fn take_back(writer: &mut WriterConnection, shared: &WriterShared, ticket: &Arc<Ticket>) -> Result<Remains> {
    shared.look_at_disk(writer);
    shared.context.catalogue.next_epoch();
    wrote_everything(writer);
    let busy = writer.busy();
    // The connection itself is gone if a closure took it away, or if it was given up after a failed commit.
    let left = writer.connection.as_mut().map(|connection| lend::take_back(connection, busy));
    let left = match left {
        Some(Ok(left)) => Ok(left),
        // It cannot even roll back: closing it does.
        Some(Err(_)) => Ok(Remains { transaction: true, may_have_phantom: true }),
        None => Err(taken(writer)),
    };
    let replaced = if writer.is_in_memory() {
        reset(writer)
    } else {
        renew(writer);
        Ok(())
    };
    writer.wait_for_locks(Instant::now(), ticket);
    relearn_schema(writer);
    replaced.and(left)
}

/// Runs `f` with foreign keys enforced or not. Afterwards they are as the options say.
pub(crate) fn with_foreign_keys<T>(
    writer: &mut WriterConnection,
    ticket: &Arc<Ticket>,
    enforced: bool,
    f: impl FnOnce(&mut WriterConnection) -> Result<T>,
) -> Result<T> {
    writer.wait_for_locks(Instant::now(), ticket);
    enforce_foreign_keys(&writer.connection()?.sqlite, enforced)?;
    let ran = f(writer);
    let as_before = writer.options().foreign_keys;
    // A connection that was given up is opened with the options.
    if writer.is_open() && enforce_foreign_keys(&writer.connection()?.sqlite, as_before).is_err() {
        writer.replace();
    }
    ran
}

/// Returns the error for a connection that did not come back.
fn taken(writer: &WriterConnection) -> Error {
    let error = Error::new(
        ErrorCode::ChangedConnection,
        "the closure moved the connection away, so Flatwater cannot use it again",
    );
    if writer.is_in_memory() {
        return error.with_hint("its database in memory is lost; a new, empty one was opened");
    }
    error.with_hint("an open transaction on it may hold locks until the connection is dropped")
}

/// Returns the error for commits that may have failed, and whose remains could not be overwritten.
fn unknown(error: Error) -> Error {
    let message = format!(
        "a commit of the closure may have failed, and it is unknown whether its changes will be there after a \
         restart: {}",
        error.message()
    );
    error
        .with_kind(ErrorKind::CommitUnknown)
        .with_message(message)
        .with_hint("before you retry, read what it should have written")
}

/// Lends the whole connection to `f`, which may take it away.
fn lend_exclusively<T>(writer: &mut WriterConnection, f: impl FnOnce(&mut rusqlite::Connection) -> T) -> Result<T> {
    writer.connection()?;
    let Some(connection) = writer.connection.take() else { unreachable!("it was opened above") };
    let (result, back) = lend::lend(connection, f)?;
    writer.connection = back;
    Ok(result)
}

/// Brings a database in memory back to its options.
fn reset(writer: &mut WriterConnection) -> Result<()> {
    let context = writer.context.clone();
    lend::reset(writer.connection()?, &context.options)
}

fn has_wal(writer: &mut WriterConnection) -> Result<bool> {
    Ok(!writer.is_in_memory() && writer.connection()?.journal == "wal")
}
