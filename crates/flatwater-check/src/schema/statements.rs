//! Which statements a call runs, by what SQLite reports of them while it prepares.
//!
//! Owns: the refusals. Invariant: they depend on actions, never on words of a text. Leaves out: what a policy refuses that depends on
//! a connection.

use flatwater_sqlite::AuthEvent;
use rusqlite::ffi;

use crate::fault::Fault;

const SCHEMA: [i32; 17] = [
    ffi::SQLITE_CREATE_INDEX,
    ffi::SQLITE_CREATE_TABLE,
    ffi::SQLITE_CREATE_TEMP_INDEX,
    ffi::SQLITE_CREATE_TEMP_TABLE,
    ffi::SQLITE_CREATE_TEMP_TRIGGER,
    ffi::SQLITE_CREATE_TEMP_VIEW,
    ffi::SQLITE_CREATE_TRIGGER,
    ffi::SQLITE_CREATE_VIEW,
    ffi::SQLITE_CREATE_VTABLE,
    ffi::SQLITE_ALTER_TABLE,
    ffi::SQLITE_DROP_INDEX,
    ffi::SQLITE_DROP_TABLE,
    ffi::SQLITE_DROP_TEMP_INDEX,
    ffi::SQLITE_DROP_TEMP_TABLE,
    ffi::SQLITE_DROP_TRIGGER,
    ffi::SQLITE_DROP_VIEW,
    ffi::SQLITE_DROP_VTABLE,
];

/// Refuses what no call of Flatwater runs, and what would change the schema.
pub(super) fn refuse(events: &[AuthEvent]) -> Result<(), Fault> {
    let has = |actions: &[i32]| events.iter().any(|event| actions.contains(&event.action));
    if has(&[ffi::SQLITE_TRANSACTION, ffi::SQLITE_SAVEPOINT]) {
        return Err(Fault::new("transactions and savepoints are not begun or ended as SQL")
            .with_hint("use `transaction` or `begin` of the database"));
    }
    if has(&[ffi::SQLITE_ATTACH, ffi::SQLITE_DETACH]) {
        return Err(
            Fault::new("databases are not attached as SQL").with_hint("an option of the database attaches them")
        );
    }
    if has(&SCHEMA) {
        return Err(Fault::new("the text changes the schema")
            .with_hint("the schema is what the migrations make: write another migration for the change"));
    }
    Ok(())
}

/// A PRAGMA may act while it is prepared.
pub(super) fn is_pragma(events: &[AuthEvent]) -> bool {
    events.iter().any(|event| event.action == ffi::SQLITE_PRAGMA)
}
