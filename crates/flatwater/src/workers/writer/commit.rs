//! COMMIT, and finding out what became of one that failed.
//!
//! Owns: the step from an open transaction to "committed" or "not committed", with the barrier commit in between. Runs
//! on the thread that holds the slot. Invariant: a commit that is reported as failed is not found after a restart;
//! where that cannot be promised, the error is `CommitUnknown` and the connection is replaced. Leaves out: replaying.

use std::sync::Arc;

use super::WriterShared;
use super::commits_seen::changes;
use super::failed_commit::{AfterFailure, Change, Changes, after_failed_commit};
use super::writer_connection::WriterConnection;
use crate::queue::ticket::Ticket;
use crate::workers::work::Unsettled;
use flatwater_base::error::{Error, ErrorKind, Result};
use flatwater_sql::tokens::quoted;

/// Commits the open transaction, unless the caller leaves before its point of no return. `None`: it is of several callers,
/// and committed without them. After an error no transaction is open, unless its caller wants it to stay open where SQLite
/// leaves it so: for a deferred foreign key, and for a lock.
pub(crate) fn commit(writer: &mut WriterConnection, shared: &WriterShared, ticket: Option<&Arc<Ticket>>) -> Result<()> {
    if let Some(refusal) = writer.refusal() {
        writer.rollback();
        return Err(refusal);
    }
    let before = changes(writer);
    let connection = writer.connection()?;
    let committed = match ticket {
        Some(ticket) => connection.control.commit_unless(&mut connection.sqlite, ticket.clone()),
        None => connection.control.commit(&mut connection.sqlite),
    };
    let Err(error) = committed else { return Ok(()) };
    let error = Error::from(error);
    if !ticket.is_some_and(|ticket| ticket.is_interrupted()) {
        shared.context.recorder.commit_failed(&error);
    }
    if ticket.is_some_and(|ticket| ticket.options.keeps_open) && !writer.is_autocommit() {
        return Err(error);
    }
    writer.rollback();
    Err(settle(writer, shared, error, &before))
}

/// Finds out what became of a write that failed on its caller's thread, and returns the error for the caller.
pub(crate) fn settle_unsettled(writer: &mut WriterConnection, shared: &WriterShared, unsettled: &Unsettled) -> Error {
    settle(writer, shared, unsettled.error.clone(), &Changes::of_main(Change::Wal(unsettled.change)))
}

/// Turns the error of a failed commit, or of a failed autocommit statement, into the error for the caller. `before`
/// holds the change counters from before the commit. Waits for locks as set by `wait_for_locks`, unless the connection is
/// to be opened again.
pub(crate) fn settle(writer: &mut WriterConnection, shared: &WriterShared, error: Error, before: &Changes) -> Error {
    let Some(code) = error.sqlite_code() else { return error };
    writer.refuse_after_failed_sync(&error);
    // A connection that was given up is opened again, to read the change counters and to write the barrier commit. That
    // is worth the whole busy timeout, whatever the deadline: without it the outcome is unknown.
    if !writer.is_open() {
        writer.wait_for_locks_for_all();
    }
    let after = writer.connection().is_ok().then(|| changes(writer));
    let outcome = after.as_ref().map_or(AfterFailure::Unknown, |after| after_failed_commit(code, before, after));
    if error.kind() == ErrorKind::Full && outcome != AfterFailure::Unknown {
        // The barrier commit needs space too.
        shared.make_room(writer, &error);
    }
    match outcome {
        AfterFailure::NotCommitted => error,
        AfterFailure::Barrier if write_barrier(writer).is_ok() => error,
        AfterFailure::Barrier | AfterFailure::Unknown => {
            writer.replace();
            shared.context.recorder.replaced_connection();
            let message = format!(
                "the commit failed ({}), and it is unknown whether its changes will be there after a restart{}",
                error.message(),
                after.map_or_else(String::new, |after| where_it_may_be(before, &after)),
            );
            error
                .with_kind(ErrorKind::CommitUnknown)
                .with_message(message)
                .with_hint("before you retry, read what it should have written")
        }
    }
}

/// With attached files: lists the files in which a commit was published meanwhile.
fn where_it_may_be(before: &Changes, after: &Changes) -> String {
    let moved: Vec<_> = after.moved_since(before).collect();
    if before.attached.is_empty() || moved.is_empty() {
        return String::new();
    }
    format!("; SQLite commits file by file, and these files have a new commit: {}", moved.join(", "))
}

/// Makes the smallest possible commit, in the main file.
pub(crate) fn smallest(writer: &mut WriterConnection) -> Result<()> {
    rewrite_versions(writer, &["main".into()])
}

/// Makes the smallest possible commit in every file that a write may have reached, and syncs the WALs. It overwrites
/// what the failed commit may have left at the end of a WAL, on the disk too: with durability `normal` no commit is
/// synced, and the operating system may have written the failed commit to the disk already.
pub(crate) fn write_barrier(writer: &mut WriterConnection) -> Result<()> {
    let files = writable_files(writer)?;
    rewrite_versions(writer, &files)?;
    let sqlite = &mut writer.connection()?.sqlite;
    let synced = files.iter().try_for_each(|file| sqlite.files().sync_wal(file)).map_err(Error::from);
    if let Err(error) = &synced {
        writer.refuse_after_failed_sync(error);
    }
    synced
}

/// Sets the user versions to the values that they have: SQLite writes the first page even if the number stays the same.
fn rewrite_versions(writer: &mut WriterConnection, files: &[Box<str>]) -> Result<()> {
    let connection = writer.connection()?;
    connection.control.begin(&mut connection.sqlite)?;
    let written: Result<()> = (|| {
        let sqlite = connection.sqlite.rusqlite();
        for file in files {
            let pragma = format!("PRAGMA {}.user_version", quoted(file));
            let version: i64 = sqlite.query_row(&pragma, [], |row| row.get(0))?;
            sqlite.execute_batch(&format!("{pragma} = {version}"))?;
        }
        connection.control.commit(&mut connection.sqlite)?;
        Ok(())
    })();
    if let Err(error) = &written {
        // If the WAL was just started over, SQLite syncs its header here. After a failure no later commit may trust
        // that header.
        writer.refuse_after_failed_sync(error);
        writer.rollback();
    }
    written
}

/// Returns the names of the databases that can be written through the connection.
fn writable_files(writer: &mut WriterConnection) -> Result<Vec<Box<str>>> {
    let names: Vec<Box<str>> = writer.options().attach.iter().map(|attached| attached.name.as_str().into()).collect();
    let sqlite = writer.connection()?.sqlite.rusqlite();
    let can_be_written = |name: &str| sqlite.is_readonly(name).is_ok_and(|is_readonly| !is_readonly);
    Ok(std::iter::once("main".into()).chain(names.into_iter().filter(|name| can_be_written(name))).collect())
}
