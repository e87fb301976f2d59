//! The writer's connection in an inline run, on the thread of a caller.
//!
//! Owns: the limits of such a run, and the read transaction that it may need. Runs on the thread that holds the slot.
//! Invariant: nothing here waits or opens a file. Leaves out: which writes are eligible (`short`).

use flatwater_sqlite::WalState;

use super::writer_connection::WriterConnection;
use crate::connection::EngineConnection;
use crate::connection::run::inline_run;
use flatwater_base::inline::eligibility::Permit;
use flatwater_base::inline::outcome::Fallback;
use flatwater_sql::catalogue::LeftWal;

/// Runs `f` as an inline run: no snapshot begins in it that would have to wait or to recover the wal-index, and it waits
/// for no locks. Returns `None` if this connection is not capable of inline runs.
pub(crate) fn run_inline<T>(
    writer: &mut WriterConnection,
    permit: &Permit<'_>,
    f: impl FnOnce(&mut WriterConnection) -> T,
) -> Option<T> {
    writer.busy_timeout.never();
    let connection = writer.connection.as_mut()?;
    connection.lengths.lower(&mut connection.sqlite, permit.limits.bytes);
    // In memory nothing waits, and nothing is read from a file.
    let _begun = match writer.context.watch {
        Some(_) => Some(inline_run::begin(permit, &connection.sqlite)?),
        None => None,
    };
    Some(f(writer))
}

/// Removes the length limit of inline runs. Called before a worker uses the connection.
pub(crate) fn unlimit(writer: &mut WriterConnection) {
    if let Some(connection) = &mut writer.connection {
        connection.lengths.restore(&mut connection.sqlite);
    }
}

/// Begins a read transaction beside autocommit, without waiting for a lock, if the schema is the known one.
pub(crate) fn hold(writer: &mut WriterConnection, state: &WalState, left: &LeftWal) -> Result<(), Fallback> {
    writer.busy_timeout.never();
    let Some(EngineConnection { sqlite, control, schema, .. }) = &mut writer.connection else {
        return Err(Fallback::Failed);
    };
    schema.hold_known(sqlite, control, state, left)
}

/// Ends the read transaction that `hold` began.
pub(crate) fn let_go(writer: &mut WriterConnection) {
    if let Some(EngineConnection { sqlite, control, .. }) = &mut writer.connection {
        control.let_go(sqlite);
    }
}
