//! The forms in which the database of a connection is copied, and those that are no copy of its pages in a file.
//!
//! Owns: the compact copy, and the copy in memory. Runs on the thread that uses the connection, and blocks it.
//! Invariants: a copy is of one commit; a compact copy gets its name as a backup does. Leaves out: a copy of the pages
//! in a file (`page_copy`), and which connection copies.

use std::sync::Arc;

use flatwater_sqlite::Interrupt;
use rusqlite::ffi;
use tempfile::NamedTempFile;

use super::page_copy::{self, Target, copy_pages, hold_snapshot, of_sqlite, stop};
use crate::connection::EngineConnection;
use crate::connection::open::pragmas::in_definitions;
use crate::error::hint::hint;
use crate::error::{Error, ErrorKind, Result};
use crate::options::Options;
use crate::options::given::in_rollback_mode;

/// How a database is copied.
#[derive(Debug)]
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
    match form {
        Copy::Pages(target) => page_copy::backup(connection, options, target, ends).map(|()| None),
        Copy::Compact(target) => {
            target.refuse_taken()?;
            let file = target.create(options)?;
            let copied = vacuum_into(connection, target, &file, ends);
            stop(&**ends)?;
            copied.and_then(|()| target.publish(file)).map(|()| None)
        }
        Copy::Bytes if options.key.is_some() => Err(plain_bytes()),
        Copy::Bytes => bytes(connection, ends).map(Some),
    }
}

/// Runs VACUUM INTO, which asks the progress handler while it copies, and makes the connection forget its schema.
fn vacuum_into(
    connection: &mut EngineConnection,
    target: &Target,
    file: &NamedTempFile,
    ends: &Arc<dyn Interrupt>,
) -> Result<()> {
    let Some(path) = file.path().to_str() else {
        return Err(Error::misuse("a compact backup needs a path that is UTF-8").with_hint("choose another path"));
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
        error => of_sqlite(error, target),
    })
}

/// What is asked for by mistake would be written somewhere, or sent.
#[cold]
fn plain_bytes() -> Error {
    Error::misuse("the bytes of an encrypted database would not be encrypted, so it is not serialized")
        .with_hint(hint!["a backup keeps the key; " Export " without a key makes a plain file"])
}

/// Copies all pages into memory. They are not read as SQLite's `sqlite3_serialize` does, which returns zeros for a page
/// that cannot be read, and looks at no interrupt.
fn bytes(connection: &mut EngineConnection, ends: &Arc<dyn Interrupt>) -> Result<Vec<u8>> {
    hold_snapshot(connection, ends)?;
    let told = |error: rusqlite::Error| match Error::from(error) {
        error if error.sqlite_code() == Some(ffi::SQLITE_NOMEM) => {
            Error::new(ErrorKind::Full, "there is not enough memory for the bytes of the database")
        }
        error => error,
    };
    let mut copy = rusqlite::Connection::open_in_memory().map_err(told)?;
    copy_pages(connection.sqlite.rusqlite(), &mut copy, &**ends, told, |_| Ok(()))?;
    let mut bytes = copy.serialize("main").map_err(told)?.to_vec();
    in_rollback_mode(&mut bytes);
    Ok(bytes)
}
