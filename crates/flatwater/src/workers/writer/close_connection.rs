//! Closing the writer's connection, with or without its WAL, or for another one in its place.
//!
//! Owns: copying the rest of the WAL before, and leaving the WAL where that takes too long. Runs on the thread that holds the
//! token, which may wait. Invariant: the copy is over when the time that it has is. Leaves out: when (`engine::closing`,
//! `park_database`).

use std::time::{Duration, Instant};

use flatwater_sqlite::{CheckpointMode, Cipher};

use super::demanded_checkpoint::append_or_cut;
use super::optimize::at_close;
use super::writer_connection::WriterConnection;
use crate::connection::EngineConnection;
use flatwater_base::error::{Error, ErrorKind, Result};
use flatwater_base::time::{later, timer};

/// Closes the connection. The rest of the WAL is copied into the database and the WAL is removed, if the copy ends
/// within `wait`. Otherwise the WAL stays, and the next open uses it. A parked database gets a connection for that, if
/// parking left a part of the WAL.
pub(crate) fn close(writer: &mut WriterConnection, wait: Duration) {
    if writer.left_wal && !wait.is_zero() {
        writer.busy_timeout.until_for_all(later(Instant::now(), wait));
        // If this fails, the WAL stays.
        let _ = writer.connection();
        writer.context.watch.as_ref().inspect(|watch| watch.release());
    }
    let began = Instant::now();
    if !wait.is_zero() {
        at_close(writer, wait);
    }
    let wait = wait.saturating_sub(began.elapsed());
    let is_copied = !wait.is_zero() && copy_wal(writer, wait).unwrap_or(false);
    drop_connection(writer, is_copied);
}

/// Copies the rest of the WAL into the database, unless that takes longer than `wait`. Returns whether it is copied.
pub(crate) fn copy_wal(writer: &mut WriterConnection, wait: Duration) -> Result<bool> {
    writer.end_lease();
    append_or_cut(writer);
    if writer.context.is_external() || writer.refusal().is_some() {
        return Ok(false);
    }
    let Some(connection) = &mut writer.connection else { return Ok(false) };
    let interrupt = connection.sqlite.rusqlite().get_interrupt_handle();
    let alarm = timer::at(later(Instant::now(), wait), move || interrupt.interrupt());
    let copied = connection.sqlite.checkpoint(CheckpointMode::Passive);
    drop(alarm);
    match copied.map_err(Error::from) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::Cancelled => Ok(false),
        Err(error) => Err(error),
    }
}

/// Closes the connection. If the WAL `is_copied`, SQLite removes it.
pub(crate) fn drop_connection(writer: &mut WriterConnection, is_copied: bool) {
    if let Some(connection) = writer.take().filter(|_| is_copied) {
        connection.close_in_order();
    }
}

/// Opens another connection in the place of this one, and closes this one after that: if it were the last one in the process,
/// the next connection to open the file would recover the WAL.
pub(crate) fn renew(writer: &mut WriterConnection) {
    let before = writer.take();
    // If this fails, the next use tries again, and waits.
    writer.busy_timeout.never();
    let _ = writer.connection();
    drop(before);
}

/// The same, if SQLCipher decrypts nothing on it any more. It says so when it is asked, and, but within a write, it also makes
/// the connection read-only, which costs nothing to see.
pub(crate) fn renew_if_spoilt(writer: &mut WriterConnection, asks: bool) {
    let is_spoilt = |connection: &EngineConnection| {
        let sqlite = &connection.sqlite;
        Cipher::of(sqlite).is_on() && (sqlite.handle().is_read_only() || asks && connection.is_spoilt())
    };
    if writer.connection.as_ref().is_some_and(is_spoilt) {
        renew(writer);
    }
}
