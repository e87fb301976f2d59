//! A checkpoint that a caller demands, or that something needs which runs on the writer.
//!
//! Owns: running it on the writer's connection, and counting it. Runs on the thread that holds the slot, and blocks
//! it. Invariant: after a failed sync nothing is written any more. Leaves out: the checkpointer's own
//! (`workers::checkpoint`).

use std::time::Instant;

use flatwater_sqlite::{CheckpointInfo, CheckpointMode};

use super::writer_connection::WriterConnection;
use super::{WriterShared, commit, copied_wal};
use crate::error::{Error, ErrorKind, Result};

/// Runs a checkpoint. Waits for other connections until the busy timeout ends, or the deadline.
pub(crate) fn checkpoint(
    writer: &mut WriterConnection,
    shared: &WriterShared,
    mode: CheckpointMode,
) -> Result<CheckpointInfo> {
    let listener = shared.listener.get();
    let _unpinned = listener.map(|listener| listener.unpin(&mut || commit::smallest(writer))).transpose()?;
    let done = run(writer, shared, mode);
    copied_wal::append_or_cut(writer);
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
