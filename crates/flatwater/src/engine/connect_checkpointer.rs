//! The checkpointer, connected to the other workers, which do not know each other.
//!
//! Owns: which functions of the other workers the checkpointer may call. Runs while a database is opened. Invariant: the
//! checkpointer, which the writer refers to, keeps neither the writer nor the readers. Leaves out: how it uses them.

use std::sync::Arc;

use crate::options::Checkpoint;
use crate::workers::checkpoint::{Checkpointer, OldestRead, Powers};
use crate::workers::context::Context;
use crate::workers::readers::Readers;
use crate::workers::writer::Writer;

/// Returns the checkpointer, or `None` if another program checkpoints the WAL, or if there is no WAL that Flatwater
/// writes.
pub(super) fn checkpointer(
    context: &Arc<Context>,
    writer: Option<&Writer>,
    readers: Option<&Readers>,
) -> Option<Checkpointer> {
    let (writer, readers) = (writer?, readers?.downgrade());
    let managed = match context.options.checkpoint {
        Checkpoint::Managed(managed) => managed,
        _ => {
            context.recorder.wal.is_external();
            return None;
        }
    };
    let leasing = readers.clone();
    let powers = Powers {
        in_slot: Box::new(writer.in_slot()),
        end_leases: Box::new(move || Box::new(leasing.upgrade().map(|readers| readers.end_leases()))),
        oldest_read: Box::new(move || {
            let oldest = readers.upgrade()?.oldest()?;
            Some(OldestRead { age: oldest.age(), sql: oldest.sql(), cut_off: Box::new(move || oldest.cut_off()) })
        }),
    };
    let checkpointer = Checkpointer::new(context.clone(), managed, powers);
    writer.tell(checkpointer.listener());
    Some(checkpointer)
}
