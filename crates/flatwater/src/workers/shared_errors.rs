//! Errors that more than one module returns.
//!
//! Owns: their texts. Pure, so any thread may use it. Leaves out: deciding when to return them.

use std::path::Path;

use rusqlite::ffi;

use flatwater_base::error::hint::hint;
use flatwater_base::error::{Error, ErrorCode, ErrorKind, TimeoutEffect, timed_out};

/// Returns the error for a write that the body of a transaction makes outside of that transaction: the write would wait
/// for the end of the transaction.
#[cold]
pub(crate) fn waits_for_itself() -> Error {
    Error::new(ErrorCode::NestedWrite, "the database was used inside its own transaction, which would deadlock")
        .with_hint("use the transaction the body was given")
}

/// Returns the error for what only an engine has.
#[cold]
pub fn not_on_a_server(what: &str) -> Error {
    Error::new(ErrorCode::Unsupported, format!("{what} needs a database of this process, and this one is on a server"))
        .with_hint(hint!["use statements: " Batch " is all or nothing, and one request"])
}

/// Returns the error for a statement whose rows nobody has asked for.
#[cold]
pub fn returns_rows(is_write: bool) -> Error {
    let hint = match is_write {
        false => hint!["use " Query ", " QueryOne " or " QueryValue],
        true => hint!["it has RETURNING, or is a PRAGMA that returns rows: use " Query],
    };
    Error::new(ErrorCode::ReturnsRows, "the statement returns rows").with_hint(hint)
}

/// Returns the same for one that has many rows of parameters.
#[cold]
pub fn returns_rows_of_many() -> Error {
    Error::new(ErrorCode::ReturnsRows, "the statement returns rows")
        .with_hint(hint!["use " QueryMany ", which returns the rows of all its runs"])
}

/// Returns the error for a statement that has no rows.
#[cold]
pub fn returns_no_rows() -> Error {
    Error::new(ErrorCode::ReturnsNoRows, "the statement returns no rows")
        .with_hint(hint!["use " Execute ", or add RETURNING"])
}

/// Returns the reason of what ended with a panic, which only a bug in this crate can cause.
#[cold]
pub(crate) fn fault() -> Error {
    Error::new(ErrorCode::Internal, "a fault inside Flatwater ended it; please report it")
}

/// Returns the error for a request whose deadline passed before it ran.
pub(crate) fn too_late() -> Error {
    timed_out("the deadline of the call passed while it waited", TimeoutEffect::No)
}

/// Returns the error for a statement around which the schema was read, and could not be: that ended its transaction.
#[cold]
pub(crate) fn lost_meanwhile() -> Error {
    Error::new(ErrorCode::ReadFailed, "SQLite rolled the transaction back because the schema could not be read")
        .with_hint("begin the transaction again")
}

/// Returns the error for a write in a snapshot.
#[cold]
pub(crate) fn snapshot_writes() -> Error {
    Error::new(ErrorCode::ReadOnly, "a snapshot only reads").with_hint("write with the database, or in a transaction")
}

/// Returns the error for a write through a read-only handle.
#[cold]
pub(crate) fn opened_to_read(path: &Path) -> Error {
    let code = flatwater_sqlite::SqliteError::from_code(rusqlite::ffi::SQLITE_READONLY);
    Error::from(code)
        .with_kind(ErrorKind::Misuse)
        .with_message(format!("{} was opened read-only", path.display()))
        .with_hint(hint!["open it without " ReadOnly " to write"])
}

#[cold]
pub(crate) fn polled_again() -> Error {
    Error::new(ErrorCode::Finished, "the call was polled again after it had returned")
}

#[cold]
pub(crate) fn not_ended() -> Error {
    Error::new(ErrorCode::ReadFailed, "a read transaction could not be ended, and its connection was discarded")
        .with_hint("try again")
}

/// Returns true for the errors of a statement that a close has ended. Others tell what became of it.
pub(crate) fn may_come_of_a_close(error: &Error) -> bool {
    let is_refused = error.sqlite_code() == Some(ffi::SQLITE_CONSTRAINT_COMMITHOOK);
    is_refused || matches!(error.kind(), ErrorKind::Cancelled | ErrorKind::Busy)
}
