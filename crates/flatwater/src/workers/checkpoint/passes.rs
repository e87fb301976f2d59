//! Passes: copying the WAL into the database, and syncing what was copied, while writers go on.
//!
//! Owns: one checkpoint, those that prepare a restart, and how the checkpointer waits for locks: the busy handlers of its
//! connections (<https://sqlite.org/c3ref/busy_handler.html>). Runs on `fw-checkpoint`. Invariant: no lock that a writer needs is
//! held. Leaves out: the restart itself, which runs between two rounds of the writer (`thread`), for how long a step may wait
//! (`decision`).

use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use flatwater_sqlite::{Busy, CheckpointInfo, CheckpointMode};
use rusqlite::ffi;

use super::CheckpointerShared;
use super::decision::Policy;
use super::write_delay::is_short;
use crate::connection::EngineConnection;
use flatwater_base::error::kind::is_failed_sync;
use flatwater_base::error::{Error, ErrorKind, Result};

/// The number of passes that prepare a restart, if each leaves something, and the limits below which another pass is not
/// worthwhile. There are more passes as long as they leave more than writers can wait for: the WAL grows meanwhile, until
/// writes are delayed and each pass has less to copy than the one before.
const PASSES: u32 = 8;
const PASSES_AT_MOST: u32 = 64;
const FEW_FRAMES: u32 = 100;
const SHORT: Duration = Duration::from_millis(3);
/// How long to wait for another process' checkpoint before a restart.
const OTHERS: Duration = Duration::from_millis(100);

impl CheckpointerShared {
    /// Runs one PASSIVE checkpoint, and syncs what it copied, so that a restart has little left to sync.
    pub(super) fn checkpoint(&self, connection: &mut EngineConnection, policy: &mut Policy) {
        let passive = |open: &mut EngineConnection| Ok(open.sqlite.checkpoint(CheckpointMode::Passive)?);
        let sync = |open: &EngineConnection, copied: u32| match copied {
            FEW_FRAMES.. => Ok(open.sqlite.files().sync_database()?),
            _ => Ok(()),
        };
        match self.pass(connection, policy, passive, sync) {
            Ok(Progress { frames, left, took }) => policy.checkpointed(frames, left, took, Instant::now()),
            Err(error) => {
                self.failed(policy, &error, Duration::ZERO);
                policy.was_not_checkpointed();
            }
        }
    }

    /// Runs one PASSIVE checkpoint and a sync of what it copied, and measures the disk by both.
    fn pass(
        &self,
        connection: &mut EngineConnection,
        policy: &mut Policy,
        checkpoint: impl FnOnce(&mut EngineConnection) -> Result<CheckpointInfo>,
        sync: impl FnOnce(&EngineConnection, u32) -> Result<()>,
    ) -> Result<Progress> {
        let began = Instant::now();
        self.begin_pass(backlog(connection));
        let passed = self.passive(connection, checkpoint);
        let synced = passed.and_then(|progress| sync(connection, progress.frames).map(|()| progress));
        self.end_pass();
        synced.inspect(|progress| {
            if progress.frames >= FEW_FRAMES {
                policy.disk_took(progress.frames, began.elapsed());
            }
        })
    }

    /// Runs one PASSIVE checkpoint.
    fn passive(
        &self,
        connection: &mut EngineConnection,
        checkpoint: impl FnOnce(&mut EngineConnection) -> Result<CheckpointInfo>,
    ) -> Result<Progress> {
        let before = connection.sqlite.wal().header().map_or(0, |header| header.copied);
        let began = Instant::now();
        self.is_copying.store(true, Ordering::SeqCst);
        let done = checkpoint(connection);
        self.is_copying.store(false, Ordering::SeqCst);
        let done = done?;
        let frames = done.copied.saturating_sub(before);
        let progress = Progress { frames, left: done.frames.saturating_sub(done.copied), took: began.elapsed() };
        self.context.recorder.wal.checkpointed(progress.frames, progress.left, progress.took);
        Ok(progress)
    }

    /// Checkpoints and syncs while writers continue. Each pass copies what was written during the previous one, until so
    /// little is left that writers can wait for it.
    ///
    /// Beside Litestream the WAL is pinned meanwhile, and stays so until it is truncated.
    pub(super) fn prepare(&self, connection: &mut EngineConnection, policy: &mut Policy) -> Result<()> {
        let beside_litestream = self.context.is_beside_litestream();
        for pass in 1..=PASSES_AT_MOST {
            let began = Instant::now();
            if beside_litestream {
                self.pin.renew(&self.context, connection)?;
            }
            let progress = self.pass(connection, policy, checkpoint_after_others, |open, _| {
                self.pin.was_reached(open)?;
                Ok(open.sqlite.files().sync()?)
            })?;
            // With a pin, what was written since it began is left in any case.
            let is_blocked = progress.left >= FEW_FRAMES && !beside_litestream;
            let is_last = pass >= PASSES && is_short(backlog(connection), policy.frame());
            if is_last || progress.frames < FEW_FRAMES || is_blocked || began.elapsed() < SHORT {
                break;
            }
        }
        Ok(())
    }
}

/// Returns how many frames are to be copied.
fn backlog(connection: &EngineConnection) -> u32 {
    connection.sqlite.wal().header().map_or(0, |header| header.max_frame.saturating_sub(header.copied))
}

/// The result of a PASSIVE checkpoint.
struct Progress {
    frames: u32,
    /// Frames that it did not reach, because a reader blocked them.
    left: u32,
    took: Duration,
}

/// Runs a PASSIVE checkpoint, after waiting for another process that may run one at the moment, so that its checkpoint does not fail
/// the restart.
fn checkpoint_after_others(connection: &mut EngineConnection) -> Result<CheckpointInfo> {
    let until = Instant::now() + OTHERS;
    loop {
        let done = connection.sqlite.checkpoint(CheckpointMode::Passive).map_err(Error::from);
        if !done.as_ref().is_err_and(|error| error.kind() == ErrorKind::Busy) || Instant::now() >= until {
            return done;
        }
        thread::sleep(POLL);
    }
}

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
