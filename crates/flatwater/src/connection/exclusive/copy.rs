//! Copying the database of a connection: its pages or its rows into a new file, or its pages into memory.
//!
//! Owns: the read transaction that is copied, and the forms of a copy. Runs on the thread that uses the connection, and blocks it.
//! Invariant: a copy is of one commit. Leaves out: the file and its name (`copy_target`), a copy with another key (`another_key`), and
//! which connection copies.

use std::sync::Arc;

use flatwater_sqlite::{Interrupt, set_key};
use rusqlite::backup::{Backup, Progress, StepResult};
use rusqlite::{OpenFlags, ffi};
use tempfile::NamedTempFile;

use super::another_key::export;
use super::copy_target::{CopyKey, Target};
use crate::connection::EngineConnection;
use crate::connection::open::switches::in_definitions;
use crate::options::Options;
use crate::options::given::in_rollback_mode;
use flatwater_base::error::hint::hint;
use flatwater_base::error::{Error, ErrorCode, ErrorKind, Result};

/// The pages that are copied between two looks at whether the backup is still wanted.
const STEP_PAGES: i32 = 64;
/// The steps between two syncs. A sync cannot be interrupted, so none of them has much to write.
const SYNC_STEPS: usize = 256;

/// How a database is copied.
pub(crate) enum Copy {
    /// Its pages, into a file.
    Pages(Target),
    /// Its rows, into a file that has no free pages.
    Compact(Target),
    /// Its pages, as bytes.
    Bytes,
}

/// Copies the main database, until `ends` says stop. Returns the bytes, if it is copied as bytes. The read transaction
/// may stay open.
pub(crate) fn copy(
    connection: &mut EngineConnection,
    options: &Options,
    form: &Copy,
    ends: &Arc<dyn Interrupt>,
) -> Result<Option<Vec<u8>>> {
    let (Copy::Pages(target) | Copy::Compact(target)) = form else {
        if options.key.is_some() {
            // What is asked for by mistake would be written somewhere, or sent.
            let sentence = "the bytes of an encrypted database would not be encrypted, so it is not serialized";
            return Err(Error::new(ErrorCode::Unsupported, sentence)
                .with_hint(hint!["a backup keeps the key; " Export " without a key makes a plain file"]));
        }
        return bytes(connection, ends).map(Some);
    };
    target.refuse_taken()?;
    let file = target.create(options)?;
    let copied = if let Copy::Compact(_) = form {
        vacuum_into(connection, target, &file, ends)
    } else {
        hold_snapshot(connection, ends)?;
        let source = connection.sqlite.rusqlite();
        match &target.key {
            CopyKey::Same => copy_into(source, options, target, &file, &**ends),
            CopyKey::Other(key) => {
                export(source, options, key.as_ref(), file.path(), ends).map_err(|error| target.not_exported(error))
            }
        }
    };
    // What is ended fails in the middle of something.
    stop(&**ends).and(copied)?;
    target.publish(file).map(|()| None)
}

/// Runs VACUUM INTO, which asks the progress handler while it copies, and makes the connection forget its schema.
fn vacuum_into(
    connection: &mut EngineConnection,
    target: &Target,
    file: &NamedTempFile,
    ends: &Arc<dyn Interrupt>,
) -> Result<()> {
    let Some(path) = file.path().to_str() else {
        return Err(Error::new(ErrorCode::InvalidTarget, "a compact backup needs a path that is UTF-8")
            .with_hint("choose another path"));
    };
    in_definitions(&connection.sqlite, true)?;
    connection.sqlite.hooks().interrupts.arm(ends.clone());
    let ran = connection.sqlite.patiently_with(|sqlite| sqlite.execute("VACUUM main INTO ?1", [path]));
    connection.sqlite.hooks().interrupts.disarm();
    in_definitions(&connection.sqlite, connection.double_quoted_strings)?;
    connection.schema.seen.forget();
    ran.map(drop).map_err(|error| match Error::from(error) {
        // Such as a collation that the connection does not have.
        error if error.kind() == ErrorKind::Sql => error,
        error => target.not_copied(error),
    })
}

/// Copies all pages into memory. They are not read as SQLite's `sqlite3_serialize` does, which returns zeros for a page
/// that cannot be read, and looks at no interrupt.
fn bytes(connection: &mut EngineConnection, ends: &Arc<dyn Interrupt>) -> Result<Vec<u8>> {
    hold_snapshot(connection, ends)?;
    let failed = |error: rusqlite::Error| match Error::from(error) {
        error if error.sqlite_code() == Some(ffi::SQLITE_NOMEM) => {
            Error::new(ErrorCode::NoRoom, "there is not enough memory for the bytes of the database")
        }
        error => error,
    };
    let mut copy = rusqlite::Connection::open_in_memory().map_err(failed)?;
    copy_pages(connection.sqlite.rusqlite(), &mut copy, &**ends, failed, |_, _| Ok(()))?;
    let mut bytes = copy.serialize("main").map_err(failed)?.to_vec();
    in_rollback_mode(&mut bytes);
    Ok(bytes)
}

/// Begins a read transaction, which stays open, and takes its snapshot.
fn hold_snapshot(connection: &mut EngineConnection, ends: &Arc<dyn Interrupt>) -> Result<()> {
    connection.control.begin_read(&mut connection.sqlite)?;
    connection.sqlite.hooks().interrupts.arm(ends.clone());
    // The first read takes the snapshot.
    let begun = connection.schema.cookie(&mut connection.sqlite);
    connection.sqlite.hooks().interrupts.disarm();
    begun.map(drop)
}

/// Copies all pages into the file.
fn copy_into(
    source: &rusqlite::Connection,
    options: &Options,
    target: &Target,
    file: &NamedTempFile,
    ends: &dyn Interrupt,
) -> Result<()> {
    let failed = |error: rusqlite::Error| target.not_copied(error.into());
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let opened = match options.vfs.as_deref() {
        Some(vfs) => rusqlite::Connection::open_with_flags_and_vfs(file.path(), flags, vfs),
        None => rusqlite::Connection::open_with_flags(file.path(), flags),
    };
    let mut copy = opened.map_err(failed)?;
    // The copy of an encrypted file has its key.
    if let Some(key) = &options.key {
        let key = key.of_file(&options.path)?;
        set_key(&copy, key.bytes()).map_err(|error| target.not_copied(error.into()))?;
    }
    // A file that is not whole is removed, so nothing has to be undone in it.
    copy.execute_batch("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF").map_err(failed)?;
    copy_pages(source, &mut copy, ends, failed, |step, progress| {
        if let Some(report) = &target.report {
            let pages = |count: i32| u32::try_from(count).unwrap_or(0);
            report(pages(progress.pagecount), pages(progress.remaining));
        }
        match step % SYNC_STEPS {
            0 => file.as_file().sync_data().map_err(|error| target.failed("synced", &error)),
            _ => Ok(()),
        }
    })?;
    // A VFS may keep its files elsewhere, in memory for instance.
    match file.as_file().metadata() {
        Ok(written) if written.len() > 0 => Ok(()),
        Ok(_) => Err(Error::new(
            ErrorCode::Unsupported,
            format!("the VFS of the database wrote no file {}", target.path.display()),
        )
        .with_hint("a backup needs a VFS that keeps its files in the file system")),
        Err(error) => Err(target.failed("read", &error)),
    }
}

/// Copies all pages, without a pause between the steps: the transaction is open, so SQLite never begins anew. `after`
/// is called with the number of each step.
fn copy_pages(
    source: &rusqlite::Connection,
    copy: &mut rusqlite::Connection,
    ends: &dyn Interrupt,
    failed: impl Fn(rusqlite::Error) -> Error,
    mut after: impl FnMut(usize, Progress) -> Result<()>,
) -> Result<()> {
    let backup = Backup::new(source, copy).map_err(&failed)?;
    for step in 1.. {
        stop(ends)?;
        match backup.step(STEP_PAGES).map_err(&failed)? {
            StepResult::Done => return after(step, backup.progress()),
            StepResult::More => after(step, backup.progress())?,
            _ => {
                return Err(Error::new(
                    ErrorCode::Internal,
                    "the backup's connection has a write transaction; please report it",
                ));
            }
        }
    }
    Ok(())
}

fn stop(ends: &dyn Interrupt) -> Result<()> {
    if ends.should_stop() { Err(Error::new(ErrorCode::GivenUp, "the backup was cancelled")) } else { Ok(()) }
}
