//! The checkpointer and the live queries, connected to the other workers, which do not know each other.
//!
//! Owns: which functions of the other workers each may call. Runs while a database is opened. Invariant: the checkpointer, which the
//! writer refers to, keeps neither the writer nor the readers. Leaves out: how they use them.

use std::sync::{Arc, Mutex};

use crate::options::Checkpoint;
use crate::workers::checkpoint::{self, Checkpointer, OldestRead};
use crate::workers::context::Context;
use crate::workers::live::{self, LiveQueries, LooksForOthers, Push, RunsHere};
use crate::workers::readers::{Look, Readers, Stamps};
use crate::workers::writer::Writer;
use flatwater_base::error::Error;
use flatwater_base::thread::lock;
use flatwater_sql::dependencies::change::Change;

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
    let powers = checkpoint::Powers {
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

/// Returns the live queries of a database that is being opened: there are none yet.
pub(super) fn live_queries(context: &Arc<Context>, writer: Option<&Writer>, readers: Option<&Readers>) -> LiveQueries {
    let (push, look) = (push(writer.cloned(), readers.cloned()), look(writer.cloned(), readers.cloned()));
    let here = readers.cloned();
    let run_here: RunsHere = Box::new(move |query, known| here.as_ref()?.run_live_inline(query, known));
    let powers = live::Powers { push, run_here, look };
    // One reader is always left for others.
    let at_once = if readers.is_some() { context.options.readers.saturating_sub(1).max(1) } else { 1 };
    let live = LiveQueries::new(context.clone(), powers, at_once);
    if let Some(writer) = writer {
        writer.tell_live(live.listener());
    }
    live
}

fn push(writer: Option<Writer>, readers: Option<Readers>) -> Push {
    match (readers, writer) {
        (Some(readers), _) => Box::new(move |request| readers.push(request).map(drop)),
        (None, Some(writer)) => Box::new(move |request| writer.push(request).map(drop).map_err(|(error, _)| error)),
        (None, None) => Box::new(|_| Err(Error::closed())),
    }
}

/// The writer finds the commits of others by itself, when it is given the occasion. A database that is only read
/// compares the headers of the WALs with those of the look before; if it has no connection to read them, the runs of the
/// queries open one.
fn look(writer: Option<Writer>, readers: Option<Readers>) -> LooksForOthers {
    match (writer, readers) {
        (Some(writer), _) => Box::new(move |_| writer.look_for_others()),
        (None, Some(readers)) => {
            let seen = Mutex::new(Stamps::default());
            Box::new(move |live| {
                let look = readers.look(&mut lock(&seen));
                if look != Look::Nothing {
                    live.publish(&Change::Everything);
                    live.start();
                }
            })
        }
        (None, None) => Box::new(|_| {}),
    }
}
