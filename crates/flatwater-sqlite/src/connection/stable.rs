//! Stable statements: those whose plan does not depend on the values that are bound.
//!
//! Owns: preparing them, and preparing one again when the schema has changed. Runs on the thread that uses the connection.
//! Invariant: while the schema is the same, each run has the plan of the first prepare, in which no value was known.
//! Leaves out: which statements should be stable (`plans` compares their plans), and running them (`statement`).
//!
//! SQLite plans `indexed = ?`, `LIMIT ?` and `LIKE ?` by the values that are bound, and expires the statement when these change
//! (`sqlite3VdbeReprepareOnBind`). A statement that `sqlite3_prepare` made, the oldest of its functions, keeps no text to be
//! prepared of again, so no value expires it, and it is SQLITE_SCHEMA when the schema has changed
//! (<https://sqlite.org/c3ref/prepare.html>). The other way, SQLITE_DBCONFIG_ENABLE_QPSG, belongs to a whole connection, and to
//! switch it expires all statements.

use std::ffi::{c_char, c_int};

use rusqlite::ffi;

use super::Sqlite;
use super::prepare::{Prepared, prepare_by};
use crate::error::{Error, Result};
use crate::statements::StatementId;

unsafe extern "C" {
    // libsqlite3-sys leaves these out.
    fn sqlite3_prepare(
        db: *mut ffi::sqlite3,
        text: *const c_char,
        bytes: c_int,
        statement: *mut *mut ffi::sqlite3_stmt,
        tail: *mut *const c_char,
    ) -> c_int;
}

/// Like [`Sqlite::prepare`], but the statement is a stable one: its plan is that of unknown values.
///
/// # Errors
/// As there.
pub fn prepare_stable(connection: &mut Sqlite, sql: &str) -> Result<Option<Prepared>> {
    let prepared = prepare_by(connection, sql, |db, text, bytes, statement, tail| {
        // SAFETY: as `prepare_by` promises.
        unsafe { sqlite3_prepare(db, text, bytes, statement, tail) }
    })?;
    if let Some(Prepared { id, length, .. }) = &prepared {
        connection.statements.mark_stable(*id, sql[..*length].into());
    }
    Ok(prepared)
}

/// Prepares a stable statement again. What is bound stays bound. As in SQLite, which does the same for other statements, the
/// policy is asked, and what it is asked is not recorded.
pub(super) fn prepare_again(connection: &mut Sqlite, id: StatementId, text: &str) -> Result<()> {
    let bytes = c_int::try_from(text.len()).map_err(|_| Error::TextTooLong)?;
    let mut raw: *mut ffi::sqlite3_stmt = std::ptr::null_mut();
    let db = connection.handle.raw();
    connection.wal.files.mapping.forget();
    // SAFETY: the connection is open and only this value uses it; `text` has `bytes` bytes; the out-pointer lives for the call,
    // and there may be none for the tail.
    let code = unsafe { sqlite3_prepare(db, text.as_ptr().cast(), bytes, &raw mut raw, std::ptr::null_mut()) };
    if code != ffi::SQLITE_OK || raw.is_null() {
        return connection.hooks().interrupts.explain(Err(connection.handle.error(code)));
    }
    // SAFETY: both are statements of this connection, of the same text, and not stepped; the first one was just prepared, the
    // other one is of no use any more.
    unsafe {
        let before = connection.statements.replace(id, raw);
        ffi::sqlite3_transfer_bindings(before, raw);
        ffi::sqlite3_finalize(before);
    }
    Ok(())
}
