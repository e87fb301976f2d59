//! A WAL that is copied to its end, beside Litestream.
//!
//! Owns: what is done after each checkpoint of this process, so that none leaves a WAL that the next writer restarts without a trace.
//! Runs on the thread that holds the slot. Invariant: afterwards the WAL has a frame that is not copied, or its file has no
//! frames from before a restart. Both show to Litestream, when it comes back, what it has not read. Leaves out: the checkpoint itself.
//!
//! A TRUNCATE that is blocked by a reader may have copied all frames before it waits. When that reader ends, the next commit of any
//! process restarts the WAL, and what Litestream had not read is lost to it (`docs/design/checkpoints.md`).

use super::commit;
use super::writer_connection::WriterConnection;
use crate::error::Result;

/// Appends a commit to a WAL that is copied to its end. If the reader that kept it from being restarted has ended meanwhile, that commit
/// restarts it and cuts its file (<https://sqlite.org/pragma.html#pragma_journal_size_limit>).
pub(super) fn append_or_cut(writer: &mut WriterConnection) {
    if !writer.context.is_beside_litestream() || !writer.is_open() || writer.refusal().is_some() {
        return;
    }
    let Some(header) = writer.wal_header().filter(|header| header.copied >= header.max_frame) else { return };
    let bytes = writer.connection.as_ref().and_then(|connection| connection.sqlite.files().wal_bytes());
    if header.max_frame == 0 && bytes.is_none_or(|bytes| bytes == 0) {
        return;
    }
    // After a failure the next checkpoint tries again; a failed sync has latched the database.
    let _ = with_a_cut(writer);
}

fn with_a_cut(writer: &mut WriterConnection) -> Result<()> {
    let limit: i64 = ask(writer, "PRAGMA main.journal_size_limit")?;
    ask(writer, "PRAGMA main.journal_size_limit = 0")?;
    let written = commit::smallest(writer);
    ask(writer, &format!("PRAGMA main.journal_size_limit = {limit}"))?;
    written
}

fn ask(writer: &mut WriterConnection, pragma: &str) -> Result<i64> {
    Ok(writer.connection()?.sqlite.rusqlite().query_row(pragma, [], |row| row.get(0))?)
}
