//! What is known of the schema, and of the user's functions, on the writer's connection.
//!
//! Owns: reading it again, and finding out whether what is known still holds. Runs on the thread that holds the slot. Waits
//! for no lock where it says so. Leaves out: what is known without reading the cookie (`connection::learn::schema`).

use flatwater_sqlite::WalState;

use super::close_connection::renew;
use super::writer_connection::WriterConnection;
use crate::connection::EngineConnection;
use crate::connection::learn::schema::SchemaFacts;
use flatwater_base::error::Result;
use flatwater_sql::catalogue::LeftWal;

/// Returns true if the known facts of the schema still hold, as seen from inside an open transaction.
pub(crate) fn knows_schema(writer: &mut WriterConnection) -> Result<bool> {
    match &mut writer.connection {
        Some(connection) => writer.facts.are_current(connection),
        None => Ok(false),
    }
}

/// Reads the schema again, and drops the prepared statements with all that was learnt from them.
pub(crate) fn learn_schema(writer: &mut WriterConnection) -> Result<()> {
    let connection = writer.connection()?;
    connection.statements.clear(&mut connection.sqlite);
    writer.facts = SchemaFacts::read(connection)?;
    Ok(())
}

/// Forgets all that is known of the schema, whatever its cookie, and reads it again.
pub(crate) fn relearn_schema(writer: &mut WriterConnection) {
    writer.facts = SchemaFacts::default();
    forget_schema(writer);
    // If this fails, no text is a member of a group before it succeeded.
    let _ = learn_schema(writer);
}

/// Called by a worker, with no transaction open: gives the connection the functions that are registered now. It is replaced
/// if one was removed, unless it is the only one.
pub(crate) fn see_functions(writer: &mut WriterConnection) {
    let is_in_memory = writer.is_in_memory();
    let Some(connection) = &mut writer.connection else { return };
    let has_lost = connection.has_lost_function() && !is_in_memory;
    if has_lost {
        renew(writer);
    } else if connection.is_behind() {
        // If this fails, the next statement tries again, and tells.
        let _ = connection.catch_up();
    } else if writer.facts.know_functions(connection) {
        return;
    }
    // Which tables may call functions is a fact of the schema.
    relearn_schema(writer);
}

/// Notes that the known schema may be out of date from now on.
pub(crate) fn forget_schema(writer: &mut WriterConnection) {
    if let Some(connection) = &mut writer.connection {
        connection.schema.seen.forget();
    }
}

/// Returns true if the schema can only be the known one.
pub(crate) fn has_seen_schema(writer: &WriterConnection, state: &WalState, left: &LeftWal) -> bool {
    writer.connection.as_ref().is_some_and(|connection| connection.schema.seen.holds(state.stamp(), left))
}

/// Reads the schema if it may differ from the known one. Called by a worker. Waits for no lock.
pub(crate) fn see_schema(writer: &mut WriterConnection, left: &LeftWal) {
    writer.busy_timeout.never();
    if let Some(EngineConnection { sqlite, control, schema, .. }) = &mut writer.connection {
        schema.see(sqlite, control, left);
    }
}

/// Returns true if a write may have written a virtual table of the main database.
pub(crate) fn may_write_virtual_tables(writer: &mut WriterConnection) -> bool {
    let Some(EngineConnection { sqlite, schema, .. }) = &mut writer.connection else { return true };
    schema.has_virtual_tables(sqlite).unwrap_or(true)
}

/// Returns true if the schema was seen when the open transaction began.
pub(crate) fn has_settled_schema(writer: &WriterConnection) -> bool {
    let is_seen = |connection: &EngineConnection| writer.is_in_memory() || connection.schema.seen.is_known();
    writer.connection.as_ref().is_some_and(is_seen)
}
