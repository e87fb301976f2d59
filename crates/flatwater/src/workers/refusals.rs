//! Refusals that are told at more than one place.

use std::path::Path;

use crate::error::{Error, Kind};

/// For a write that the body of a transaction makes outside of it: it would wait for that transaction's end.
#[cold]
pub(crate) fn waits_for_itself() -> Error {
    Error::misuse("the body of a transaction used the database, which waits for that transaction")
        .with_hint("use the transaction the body was given")
}

/// For a write through a handle that may only read.
#[cold]
pub(crate) fn opened_to_read(path: &Path) -> Error {
    let code = flatwater_sqlite::SqliteError::from_code(rusqlite::ffi::SQLITE_READONLY);
    Error::from(code)
        .with_kind(Kind::Misuse)
        .with_message(format!("{} was opened to be read only", path.display()))
        .with_hint("open it without `Options::read_only` to write")
}
