//! One short statement under the rules of an inline run, and what undoes it if it fails.
//!
//! Owns: the run inside of a transaction, its time, and its undo. Runs on the thread that has the connection. Invariant: of a statement that
//! fails nothing is left, or its transaction is rolled back; no write in a transaction is interrupted, because SQLite would roll
//! back the transaction. Leaves out: which statements are short (`gate`), writes that commit by themselves (`write`).

use std::time::Duration;

use rusqlite::ffi;

use crate::connection::run::execute::Bounds;
use crate::connection::run::failures::name_constraint;
use crate::connection::run::statement_cache::CachedStatement;
use crate::workers::Answer;
use crate::workers::perform::frame::note_scan;
use crate::workers::perform::statements::run_one;
use crate::workers::work::Work;
use crate::workers::writer::inline_access::run_inline;
use crate::workers::writer::writer_connection::WriterConnection;
use flatwater_base::error::Result;
use flatwater_base::inline::eligibility::Permit;
use flatwater_base::time::later;

/// What undoes a statement that fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Undo {
    /// It changes nothing.
    Nothing,
    /// SQLite: the statement fails before it has changed anything, unless the file system, the memory or the file fails. Then
    /// the transaction is rolled back, if SQLite has not done so.
    Statement,
    /// A savepoint around it, since SQLite by itself does not undo every failed statement. If that cannot be ended, the
    /// transaction is rolled back, so that nothing of it is left for the worker that runs the statement again.
    Savepoint,
}

impl Undo {
    fn of(ready: &CachedStatement, work: &Work) -> Self {
        match ready.inline_write().filter(|_| !work.describe().only_reads()) {
            None => Self::Nothing,
            Some(write) if write.fails_before_changes => Self::Statement,
            Some(_) => Self::Savepoint,
        }
    }
}

/// Runs the statement, and records how long it took. Of one that fails nothing is left, or the transaction is rolled back.
/// Returns `None` if this connection is not capable of inline runs.
pub(crate) fn run_short(
    writer: &mut WriterConnection,
    ready: &CachedStatement,
    work: &Work,
    permit: &Permit<'_>,
) -> Option<(Result<Answer>, Duration)> {
    let undo = Undo::of(ready, work);
    if undo == Undo::Savepoint
        && let Err(error) = open_savepoint(writer)
    {
        return Some((Err(error), permit.began.elapsed()));
    }
    let ran = run(writer, ready, work, permit);
    let answer = if writer.is_autocommit() {
        // The caller gets the error of what has ended its transaction.
        ran?.map_err(|error| match &writer.connection {
            Some(connection) => name_constraint(&connection.sqlite, error, &ready.class.writes),
            None => error,
        })
    } else {
        end(writer, undo, ran)?
    };
    let took = permit.began.elapsed();
    let counted = permit.limits.counted(took);
    ready.read_took(|| counted);
    if undo != Undo::Nothing && answer.is_ok() {
        ready.text.took(counted);
        note_scan(writer, ready, took);
    }
    Some((answer, took))
}

fn open_savepoint(writer: &mut WriterConnection) -> Result<()> {
    let connection = writer.connection()?;
    Ok(connection.control.savepoint(&mut connection.sqlite)?)
}

/// Undoes a statement that has failed in a transaction that is still open, or keeps what it did.
fn end(writer: &mut WriterConnection, undo: Undo, ran: Option<Result<Answer>>) -> Option<Result<Answer>> {
    let failed = ran.as_ref().and_then(|ran| ran.as_ref().err());
    let ended = match undo {
        Undo::Nothing => Ok(()),
        Undo::Statement => {
            if failed.is_some_and(|error| !error.sqlite_code().is_none_or(comes_before_changes)) {
                writer.rollback();
            }
            Ok(())
        }
        Undo::Savepoint if failed.is_some() => writer.undo(),
        Undo::Savepoint => {
            writer.connection().and_then(|connection| Ok(connection.control.release(&mut connection.sqlite)?))
        }
    };
    match ended {
        Ok(()) => ran,
        Err(error) => {
            writer.rollback();
            Some(Err(error))
        }
    }
}

/// Returns true for the codes of failures that SQLite reports before such a write has changed anything.
fn comes_before_changes(code: i32) -> bool {
    use ffi::{
        SQLITE_AUTH, SQLITE_BUSY, SQLITE_CONSTRAINT, SQLITE_ERROR, SQLITE_LOCKED, SQLITE_MISMATCH, SQLITE_RANGE,
        SQLITE_SCHEMA, SQLITE_TOOBIG,
    };
    matches!(
        code & 0xff,
        SQLITE_AUTH
            | SQLITE_BUSY
            | SQLITE_CONSTRAINT
            | SQLITE_ERROR
            | SQLITE_LOCKED
            | SQLITE_MISMATCH
            | SQLITE_RANGE
            | SQLITE_SCHEMA
            | SQLITE_TOOBIG
    )
}

/// Runs the statement under the rules of an inline run, which those of the savepoint around it are not: they may have to be
/// prepared again.
fn run(
    writer: &mut WriterConnection,
    ready: &CachedStatement,
    work: &Work,
    permit: &Permit<'_>,
) -> Option<Result<Answer>> {
    let (limits, began) = (permit.limits, permit.began);
    let only_reads = work.describe().only_reads();
    // After an interrupt SQLite rolls the whole transaction back, unless the statement only reads.
    let end = only_reads.then(|| later(began, limits.time));
    let rows = if only_reads { limits.rows } else { usize::MAX };
    let bounds = Bounds::Inline { end, rows, bytes: limits.bytes };
    let result = run_inline(writer, permit, |writer| run_one(writer, ready, work, bounds))?;
    permit.note_steps(writer.connection.as_ref().map_or(0, |connection| connection.steps_of(ready)));
    Some(result)
}
