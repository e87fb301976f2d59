//! Parking: closing every connection of a database that stays open.
//!
//! Owns: the order of it. Runs on a thread of the database that may block, in the writer slot. Invariants: nothing runs
//! and nothing waits when it begins; the writer's connection is the last one closed; no connection is opened meanwhile.
//! Leaves out: which databases are parked, and when (`engine::parking`), and opening again, which the next use does.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Writer;
use super::close_connection::{copy_wal, drop_connection};
use super::slot::Slot;
use crate::file::identity::Stamp;
use crate::queue::ticket::{CallOptions, Ticket};
use crate::workers::interfaces::TakesOver;

/// A call that arrives meanwhile waits no longer than this for the WAL to be copied.
const COPY: Duration = Duration::from_millis(100);

/// A database that was parked.
pub(crate) enum Parked {
    /// Nobody else has its file open: these are its files until somebody opens it.
    Alone(Stamp),
    /// Others may have committed since it was last known which commits there are.
    BesideOthers,
}

impl Writer {
    /// Parks the database, if no request is served or waits. `are_closed` returns true if no other connection is open.
    /// Returns `None` if the database is in use. Blocks.
    ///
    /// ```text
    /// this thread                             another process
    /// publishes the commits in the WAL
    ///                                         commits: its frames stay in the WAL, for it is not the last user
    /// closes: copies these frames, which
    /// changes the database; removes the WAL
    /// compares the database with how it was
    ///                                         (if it stays open, the WAL stays)
    /// ```
    pub(crate) fn park(&self, are_closed: impl FnOnce() -> bool) -> Option<Parked> {
        let mut slot = Slot::acquire_idle(self)?;
        slot.run(|writer, _| {
            let context = &self.0.context;
            let watch = context.watch.as_ref().filter(|watch| watch.refusal().is_none())?;
            if !writer.is_open() {
                return watch.parked.is_set().then_some(Parked::BesideOthers);
            }
            let drain = watch.drains.begin();
            drain.collect();
            if !are_closed() {
                return None;
            }
            let is_copied = copy_wal(writer, COPY).inspect_err(|error| writer.refuse_after_failed_sync(error)).ok()?;
            let left = writer.wal_now();
            self.0.leave(writer, left.as_ref(), Instant::now());
            let before = Stamp::of(&context.options.path);
            // SQLite must be the last user of the files, so that it can remove the WAL.
            drop(watch.unguard());
            drop_connection(writer, is_copied);
            writer.left_wal = !(is_copied || writer.context.is_external());
            watch.parked.begin();
            context.turnstile.iter().for_each(|turnstile| turnstile.let_go(false));
            let after = Stamp::of(&context.options.path);
            let is_alone = left.is_some() && after.wal.is_none() && after.database == before.database;
            Some(if is_alone { Parked::Alone(after) } else { Parked::BesideOthers })
        })
    }

    /// Has the connection opened again. Whatever was committed meanwhile is published then.
    pub(crate) fn look_again(&self) {
        let ticket = Arc::new(Ticket::new(CallOptions::default(), Instant::now()));
        drop(self.unpark(ticket));
    }
}
