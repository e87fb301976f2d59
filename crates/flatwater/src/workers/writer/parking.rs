//! Parking: closing every connection of a database that stays open.
//!
//! Owns: the order of it. Runs on a thread of the database that may block, in the writer slot. Invariants: nothing runs
//! and nothing waits when it begins; the writer's connection is the last one closed; no connection is opened meanwhile.
//! Leaves out: which databases are parked, and when (`engine::parking`), and opening again, which the next use does.

use std::time::Duration;

use super::Writer;
use super::slot::Slot;

/// A call that arrives meanwhile waits no longer than this for the WAL to be copied.
const COPY: Duration = Duration::from_millis(100);

impl Writer {
    /// Parks the database, if no request is served or waits. `are_closed` returns true if no other connection is open.
    /// Returns false if the database is in use. Blocks.
    pub(crate) fn park(&self, are_closed: impl FnOnce() -> bool) -> bool {
        let Some(mut slot) = Slot::acquire_idle(self) else { return false };
        slot.run(|writer, _| {
            let Some(watch) = writer.watch.clone().filter(|watch| watch.refusal().is_none()) else { return false };
            if !writer.is_open() {
                return watch.is_parked();
            }
            let recall = watch.recalls.begin();
            recall.collect();
            if !are_closed() {
                return false;
            }
            let is_copied = match writer.copy_wal(COPY) {
                Ok(is_copied) => is_copied,
                Err(error) => {
                    writer.refuse_after_failed_sync(&error);
                    return false;
                }
            };
            // SQLite must be the last user of the files, so that it can remove the WAL.
            drop(watch.unguard());
            writer.drop_connection(is_copied);
            watch.park();
            true
        })
    }
}
