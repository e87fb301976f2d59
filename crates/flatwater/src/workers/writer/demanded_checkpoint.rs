//! A checkpoint that a caller demands, or that something needs which runs on the writer, and what follows one beside Litestream.
//!
//! Owns: running it on the writer's connection, and counting it; and what is done after each checkpoint of this process, so that
//! none leaves a WAL that the next writer restarts without a trace. Runs on the thread that holds the slot, and blocks it.
//! Invariants: after a failed sync nothing is written any more; beside Litestream the WAL then has a frame that is not copied, or its
//! file has no frames from before a restart: both show to Litestream, when it comes back, what it has not read. Leaves out: the
//! checkpointer's own (`workers::checkpoint`).
//!
//! A TRUNCATE that is blocked by a reader may have copied all frames before it waits. When that reader ends, the next commit of any
//! process restarts the WAL, and what Litestream had not read is lost to it (`docs/design/checkpoints.md`).
//! `journal_size_limit` is not 0 all the time, because a file that is cut while Litestream runs costs it a snapshot.

use std::time::Instant;

use flatwater_sqlite::{CheckpointInfo, CheckpointMode};

use super::writer_connection::WriterConnection;
use super::{WriterShared, commit};
use flatwater_base::error::{Error, ErrorKind, Result};

/// Runs a checkpoint. Waits for other connections until the busy timeout ends, or the deadline.
pub(crate) fn checkpoint(
    writer: &mut WriterConnection,
    shared: &WriterShared,
    mode: CheckpointMode,
) -> Result<CheckpointInfo> {
    let listener = shared.listener.get();
    let _unpinned = listener.map(|listener| listener.unpin(&mut || commit::smallest(writer))).transpose()?;
    let done = run(writer, shared, mode);
    append_or_cut(writer);
    done
}

fn run(writer: &mut WriterConnection, shared: &WriterShared, mode: CheckpointMode) -> Result<CheckpointInfo> {
    let _without_leases = shared.listener.get().map(|listener| listener.end_leases());
    let (mut again, mut tries) = (writer.busy(), 0);
    let began = Instant::now();
    let before = writer.connection()?.sqlite.wal().header().map(|header| header.copied);
    let done = loop {
        let error = match writer.connection()?.sqlite.checkpoint(mode) {
            Ok(done) => break done,
            Err(error) => Error::from(error),
        };
        // SQLite calls no busy handler while another checkpoint runs, such as one of our own checkpointer.
        if error.kind() == ErrorKind::Busy && again(tries) {
            tries += 1;
            continue;
        }
        writer.refuse_after_failed_sync(&error);
        return Err(error);
    };
    // Otherwise there is no WAL.
    if let Some(before) = before {
        let (frames, left) = (done.copied.saturating_sub(before), done.frames.saturating_sub(done.copied));
        shared.context.recorder.wal.checkpointed_on_demand(mode, frames, left, began.elapsed());
    }
    Ok(done)
}

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
