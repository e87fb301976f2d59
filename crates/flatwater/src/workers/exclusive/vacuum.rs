//! Rebuilding the file without its free pages.
//!
//! Owns: VACUUM, and copying what it wrote from the WAL into the file, which gets shorter by that. Runs on the thread
//! that holds the slot. Invariants: a vacuum that fails has changed nothing; after it the connection has the settings
//! of its options, or is not used again. Leaves out: the statement itself, which runs as any other (`autocommit`).
//!
//! VACUUM builds the new database in a temporary one, commits it to the WAL as one transaction, and needs the lock of
//! writers for that (`sqlite3RunVacuum`). A temporary database of the writer is in memory, where a large file has no
//! room.

use std::sync::Arc;

use flatwater_sqlite::CheckpointMode;

use crate::connection::EngineConnection;
use crate::connection::open::pragmas::{in_definitions, temp_store};
use crate::error::Result;
use crate::options::TempStore;
use crate::queue::ticket::Ticket;
use crate::sql::statement_info::StatementInfo;
use crate::values::params::Params;
use crate::workers::Answer;
use crate::workers::perform::autocommit::autocommit;
use crate::workers::work::Work;
use crate::workers::writer::WriterShared;
use crate::workers::writer::demanded_checkpoint::checkpoint;
use crate::workers::writer::interrupts::disarm;
use crate::workers::writer::writer_connection::WriterConnection;

/// The value of `PRAGMA temp_store` for files.
const IN_FILES: i64 = 1;

pub(crate) fn vacuum(
    writer: &mut WriterConnection,
    shared: &WriterShared,
    text: Arc<StatementInfo>,
    ticket: &Arc<Ticket>,
) -> Result<Answer> {
    let work = Work::Execute { text, params: Params::default() };
    let options = &shared.context.options;
    let moves = options.temp_store == TempStore::Auto && !options.is_memory();
    shared.twice(writer, |writer| {
        let connection = writer.connection()?;
        if moves {
            store_temp(connection, IN_FILES)?;
        }
        in_definitions(&connection.sqlite, true)?;
        let done = autocommit(writer, shared, &work, ticket);
        disarm(writer);
        let is_back = |connection: &mut EngineConnection| {
            in_definitions(&connection.sqlite, options.double_quoted_strings).is_ok()
                && (!moves || store_temp(connection, temp_store(options, true)).is_ok())
        };
        if writer.is_open() && !writer.connection().is_ok_and(is_back) {
            writer.replace();
        }
        done
    })?;
    if shared.journal == "wal" && !shared.context.is_external() {
        // What cannot be copied now is copied later: the vacuum is committed.
        let _ = checkpoint(writer, shared, CheckpointMode::Passive);
    }
    Ok(Answer::Done)
}

fn store_temp(connection: &mut EngineConnection, at: i64) -> Result<()> {
    Ok(connection.sqlite.execute_batch(&format!("PRAGMA temp_store = {at}"))?)
}
