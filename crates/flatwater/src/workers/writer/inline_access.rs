//! The writer's connection in an inline run, on the thread of a caller.
//!
//! Owns: the limits of such a run, the read transaction that it may need, and giving up a connection that cannot be trusted
//! after it. Runs on the thread that holds the slot. Invariant: nothing here waits or opens a file, except `renew`, which only
//! a worker calls. Leaves out: which writes are eligible (`short`).

use flatwater_sqlite::{Cipher, ReadTime, WalState};

use super::writer_connection::WriterConnection;
use crate::connection::EngineConnection;
use crate::connection::run::inline_run::{self, Begun};
use flatwater_base::inline::eligibility::Permit;
use flatwater_base::inline::outcome::Fallback;
use flatwater_sql::catalogue::LeftWal;

/// Runs `f` as an inline run: no snapshot begins in it that would have to wait or to recover the wal-index, it
/// waits for no locks, and one page that is read from a file after `read_time` is refused. Also returns true if one was.
/// Returns `None` if this connection is not capable of inline runs.
pub(crate) fn run_inline<T>(
    writer: &mut WriterConnection,
    permit: &Permit<'_>,
    read_time: Option<ReadTime>,
    f: impl FnOnce(&mut WriterConnection) -> T,
) -> Option<(T, bool)> {
    writer.busy_timeout.never();
    let connection = writer.connection.as_mut()?;
    connection.lengths.lower(&mut connection.sqlite, permit.limits.bytes);
    // In memory nothing waits, and nothing is read from a file.
    let begun = if writer.context.watch.is_none() {
        None
    } else {
        Some(inline_run::begin(permit, &connection.sqlite, read_time)?)
    };
    let result = f(writer);
    Some((result, begun.is_some_and(Begun::end)))
}

/// Removes the length limit of inline runs. Called before a worker uses the connection.
pub(crate) fn unlimit(writer: &mut WriterConnection) {
    if let Some(connection) = &mut writer.connection {
        connection.lengths.restore(&mut connection.sqlite);
    }
}

/// Begins a read transaction beside autocommit, without waiting for a lock, if the schema is the known one.
pub(crate) fn hold(writer: &mut WriterConnection, state: &WalState, left: &LeftWal) -> Result<(), Fallback> {
    writer.busy_timeout.never();
    let Some(EngineConnection { sqlite, control, schema, .. }) = &mut writer.connection else {
        return Err(Fallback::Failed);
    };
    schema.hold_known(sqlite, control, state, left)
}

/// Ends the read transaction that `hold` began.
pub(crate) fn let_go(writer: &mut WriterConnection) {
    if let Some(EngineConnection { sqlite, control, .. }) = &mut writer.connection {
        control.let_go(sqlite);
    }
}

/// Marks the connection as suspect: a page was refused that SQLite read to roll back, so its cache may hold pages
/// that were never committed. Nothing runs on the connection any more, and a worker opens another.
pub(crate) fn suspect(writer: &mut WriterConnection) {
    writer.is_suspect = true;
}

/// Marks an encrypted connection as suspect if SQLCipher decrypts nothing on it any more. It says so when it is asked,
/// and, but within a write, it also makes the connection read-only, which costs nothing to see.
pub(crate) fn suspect_spoilt(writer: &mut WriterConnection, asks: bool) {
    let is_spoilt = writer.connection.as_ref().is_some_and(|connection| {
        let sqlite = &connection.sqlite;
        Cipher::of(sqlite).is_on() && (sqlite.handle().is_read_only() || asks && connection.is_spoilt())
    });
    writer.is_suspect |= is_spoilt;
}

/// Opens another connection in the place of a suspect one, and closes the suspect one after that: if it were the
/// last one in the process, the next connection to open the file would recover the WAL.
pub(crate) fn renew(writer: &mut WriterConnection) {
    if !std::mem::take(&mut writer.is_suspect) {
        return;
    }
    let suspect = writer.take();
    // If this fails, the next use tries again, and waits.
    writer.busy_timeout.never();
    let _ = writer.connection();
    drop(suspect);
}
