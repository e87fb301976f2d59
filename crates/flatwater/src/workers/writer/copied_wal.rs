//! A WAL that is copied to its end, beside Litestream.
//!
//! Owns: what is done after each checkpoint of this process, so that none leaves a WAL that the next writer restarts without a trace.
//! Runs on the thread that holds the slot. Invariant: afterwards the WAL has a frame that is not copied, or its file has no
//! frames from before a restart. Both show to Litestream, when it comes back, what it has not read. Leaves out: the checkpoint itself.
//!
//! A TRUNCATE that is blocked by a reader may have copied all frames before it waits. When that reader ends, the next commit of any
//! process restarts the WAL, and what Litestream had not read is lost to it (`docs/design/checkpoints.md`).
//! `journal_size_limit` is not 0 all the time, because a file that is cut while Litestream runs costs it a snapshot.

use super::commit;
use super::writer_connection::WriterConnection;
use crate::error::Result;

/// Appends a commit to a WAL that is copied to its end. If the reader that kept it from being restarted has ended meanwhile, that commit
/// restarts it and cuts its file (<https://sqlite.org/pragma.html#pragma_journal_size_limit>).
pub(crate) fn append_or_cut(writer: &mut WriterConnection) {
    let Some(connection) = writer.connection.as_ref().filter(|_| writer.refusal().is_none()) else { return };
    if !writer.context.look_for_litestream(&connection.sqlite).unwrap_or(true) {
        return;
    }
    let Some(header) = writer.wal_header().filter(|header| header.copied >= header.max_frame) else { return };
    let bytes = writer.connection.as_ref().and_then(|connection| connection.sqlite.files().wal_bytes());
    if header.max_frame == 0 && bytes.is_none_or(|bytes| bytes == 0) {
        return;
    }
    // After a failure the limit stays, so that the next commit of this connection does what this one should have done. A failed sync has
    // latched the database.
    let _ = with_a_cut(writer);
}

fn with_a_cut(writer: &mut WriterConnection) -> Result<()> {
    let limit = ask(writer, "PRAGMA main.journal_size_limit")?;
    ask(writer, "PRAGMA main.journal_size_limit = 0")?;
    commit::smallest(writer)?;
    // It is 0 after a failure; without one it is unlimited unless a program set it.
    let limit = if limit == 0 { -1 } else { limit };
    ask(writer, &format!("PRAGMA main.journal_size_limit = {limit}")).map(drop)
}

fn ask(writer: &mut WriterConnection, pragma: &str) -> Result<i64> {
    Ok(writer.connection()?.sqlite.rusqlite().query_row(pragma, [], |row| row.get(0))?)
}
