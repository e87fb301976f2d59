//! How the checkpointer waits for locks, and which failures are those of a lock.
//!
//! Owns: the busy handlers of its connections (<https://sqlite.org/c3ref/busy_handler.html>). Runs wherever they are used. Plain functions.
//! Leaves out: for how long a step may wait (`decision`).

use std::thread;
use std::time::{Duration, Instant};

use flatwater_sqlite::Busy;
use rusqlite::ffi;

use crate::error::kind::is_failed_sync;
use crate::error::{Error, ErrorKind, Result};

/// The pause between two attempts to take a lock.
pub(super) const POLL: Duration = Duration::from_micros(20);

/// Returns true if the error means that another connection holds a lock, so that a retry may succeed.
pub(super) fn is_lock(error: &Error) -> bool {
    let code = error.sqlite_code().unwrap_or(0) & 0xff;
    error.kind() == ErrorKind::Busy || code == ffi::SQLITE_LOCKED
}

/// Ignores a failure of the first commit, because the next write of a user then syncs the header. A failed sync is an
/// error in any case.
pub(super) fn unless_a_sync_failed(error: Error) -> Result<()> {
    if error.sqlite_code().is_some_and(is_failed_sync) { Err(error) } else { Ok(()) }
}

/// Gives up at once.
pub(super) fn no_wait() -> Busy {
    Box::new(|_| false)
}

pub(super) fn polls(until: Instant) -> Busy {
    Box::new(move |_| {
        thread::sleep(POLL);
        Instant::now() < until
    })
}
