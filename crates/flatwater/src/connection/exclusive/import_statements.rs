//! The statements of a dump: a script with a transaction of its own.
//!
//! Owns: preparing them one by one, and what a dump may do that another script may not: mark a transaction, which is not
//! its own, and write the schema, as a dump does for virtual tables. Runs on the thread that has the connection. Leaves out:
//! the transaction.

use flatwater_sqlite::{AuthEvent, Prepared};
use rusqlite::ffi;

use crate::connection::EngineConnection;
use crate::connection::open::pragma_answers::{judge, prepare_under};
use flatwater_base::error::{Error, ErrorCode, Result};
use flatwater_sql::policy;
use flatwater_sql::text::may_replace;

/// What a statement of a dump is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    Begin,
    Commit,
    Rollback,
    /// It is to be run.
    None,
}

/// Prepares the first statement of `sql`. Transaction control and `PRAGMA foreign_keys` are prepared as statements that do
/// nothing.
pub(crate) fn prepare_dumped(connection: &mut EngineConnection, sql: &str) -> Result<Option<Prepared>> {
    let refusal = |event: &AuthEvent| policy::refusal(event, None);
    let prepared = prepare_under(&mut connection.sqlite, sql, policy::dump, refusal)?;
    let Some(prepared) = prepared else { return Ok(None) };
    if prepared.events.iter().any(|event| sets(event, "foreign_keys")) {
        return Ok(Some(prepared));
    }
    Ok(Some(judge(&mut connection.sqlite, &connection.stated, prepared, policy::dump)?.prepared))
}

/// Makes this connection and all others read the schema again, which was written as if it were a table.
pub(crate) fn renew_schema(connection: &mut EngineConnection) -> Result<()> {
    let next = connection.schema.cookie(&mut connection.sqlite)?.wrapping_add(1) & i64::from(i32::MAX);
    Ok(connection.sqlite.execute_batch(&format!("PRAGMA schema_version = {next}; PRAGMA writable_schema = RESET"))?)
}

fn sets(event: &AuthEvent, pragma: &str) -> bool {
    event.action == ffi::SQLITE_PRAGMA && event.first.as_deref().is_some_and(|name| name.eq_ignore_ascii_case(pragma))
}

pub(crate) fn mark(events: &[AuthEvent]) -> Mark {
    let control = events.iter().find(|event| event.action == ffi::SQLITE_TRANSACTION);
    match control.and_then(|event| event.first.as_deref()) {
        Some("BEGIN") => Mark::Begin,
        Some("COMMIT") => Mark::Commit,
        Some(_) => Mark::Rollback,
        None => Mark::None,
    }
}

/// Returns true if the statement may write the schema from now on.
pub(crate) fn writes_schema(events: &[AuthEvent]) -> bool {
    events.iter().any(|event| sets(event, "writable_schema"))
}

/// Returns true if the statement may change or delete rows that are there, so that foreign keys have actions to do.
pub(crate) fn changes_rows(events: &[AuthEvent], sql: &str) -> bool {
    let is_sqlites = |event: &AuthEvent| event.first.as_deref().is_some_and(|table| table.starts_with("sqlite_"));
    let changes = |event: &AuthEvent| match event.action {
        ffi::SQLITE_UPDATE | ffi::SQLITE_DELETE => !is_sqlites(event),
        ffi::SQLITE_DROP_TABLE => true,
        _ => false,
    };
    events.iter().any(changes) || (events.iter().any(|event| event.action == ffi::SQLITE_INSERT) && may_replace(sql))
}

/// Returns the error for a mark that is not where it can be.
pub(crate) fn misplaced(mark: &Mark) -> Error {
    match mark {
        Mark::Begin => {
            Error::new(ErrorCode::LeftTransaction, "the script begins a transaction inside of its own transaction")
                .with_hint("leave the second BEGIN out: the whole script is one transaction")
        }
        Mark::Commit => {
            Error::new(ErrorCode::LeftTransaction, "the script commits a transaction that it has not begun")
                .with_hint("leave COMMIT out: the whole script is one transaction")
        }
        Mark::Rollback => Error::new(
            ErrorCode::LeftTransaction,
            "the script rolls its transaction back, so nothing of it was applied",
        )
        .with_hint("a dump that ends with ROLLBACK is incomplete: making it failed"),
        Mark::None => Error::new(
            ErrorCode::LeftTransaction,
            "the script does not commit its transaction, so nothing of it was applied",
        )
        .with_hint("end it with COMMIT"),
    }
}
