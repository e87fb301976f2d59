//! The checkpointer's thread: it observes the WAL, asks the policy, and runs the step.
//!
//! Owns: the connection while the thread lives, reopened after a failure. Runs on `fw-checkpoint`; between two rounds of
//! the writer the connection is on the writer's thread. Invariant: the WAL is restarted and truncated only between two
//! rounds. Leaves out: when the thread starts and ends (`life`).

use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use flatwater_sqlite::CheckpointMode;

use super::decision::{Observed, Policy, Step};
use super::passes::{POLL, is_lock, no_wait, polls, unless_a_sync_failed};
use super::{CheckpointerShared, frames};
use crate::connection::EngineConnection;
use crate::connection::open::Role;
use crate::file::disk::Disk;
use crate::stats::file_counters::WalBlocker;
use flatwater_base::error::{Error, ErrorCode, Result};
use flatwater_base::thread::background::Linger;

/// The thread ends when it has had nothing to do for this long.
const IDLE: Duration = Duration::from_secs(10);
/// The pause after a look for Litestream's tables that failed.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// What a thread does that had nothing to do.
enum Rested {
    GoesOn,
    /// It must end. Another thread must look at the WAL after this time, if any.
    Ends(Option<Duration>),
}

impl CheckpointerShared {
    /// Opens the connection, after a drain in progress is over. Returns `None` if the database is parked.
    fn open(&self) -> Result<Option<OpenConnection>> {
        let Some(drain) = self.watch().drains.enter(|| false).filter(|_| !self.watch().parked.is_set()) else {
            return Ok(None);
        };
        self.watch().check_file()?;
        let connection =
            EngineConnection::open(&self.context.options, &std::sync::Arc::default(), Role::Checkpointer, no_wait())?;
        let header = connection.sqlite.wal().header();
        let frames = |bytes| header.as_ref().map_or(u32::MAX, |header| frames(bytes, header.page_bytes));
        let (soft, hard) = (frames(self.managed.limit_bytes), frames(self.managed.hard_limit_bytes));
        if header.is_none() && connection.journal == "wal" {
            return Err(Error::new(ErrorCode::System, "the wal-index is open for reading only"));
        }
        Ok(Some(OpenConnection { connection, drain, soft, hard }))
    }

    /// Serves the WAL until the thread must end. Returns the time after which another thread must look at the WAL, if it
    /// must.
    pub(super) fn serve(&self, policy: &mut Policy) -> Option<Duration> {
        let mut opened = None;
        while !self.lock().must_end() && self.watch().refusal().is_none() {
            let now = Instant::now();
            let is_good =
                |open: &OpenConnection| policy.reopen_in(now).is_none() && open.drain == self.watch().drains.number();
            let Some(OpenConnection { mut connection, drain, soft, hard }) = opened.take().filter(is_good) else {
                match policy.reopen_in(now).filter(|pause| !pause.is_zero()) {
                    Some(pause) => thread::park_timeout(pause),
                    None => match self.open() {
                        Ok(Some(open)) => {
                            policy.opened(open.soft);
                            opened = Some(open);
                        }
                        Ok(None) => return None,
                        Err(error) => self.failed(policy, &error, Duration::ZERO),
                    },
                }
                continue;
            };
            let mut seen = self.see(&connection)?;
            policy.saw(&seen, Instant::now());
            self.soft.store(if policy.is_blocked() { u32::MAX } else { policy.limit() }, Ordering::Relaxed);
            self.frame_ns.store(policy.frame().as_nanos().try_into().unwrap_or(u64::MAX), Ordering::Relaxed);
            let hard_here = seen.disk.limit(hard).max(policy.limit());
            // While Litestream runs, only Litestream makes room.
            let makes_no_room = policy.is_failing() || seen.beside_litestream && policy.is_blocked();
            self.hard.store(if makes_no_room { u32::MAX } else { hard_here }, Ordering::Relaxed);
            let left = match self.step(&connection, policy, &mut seen) {
                Step::Rest(time) => match self.rest(&connection, policy, &seen, time) {
                    Rested::GoesOn => Some(connection),
                    Rested::Ends(later) => return later,
                },
                Step::Checkpoint => {
                    self.checkpoint(&mut connection, policy);
                    Some(connection)
                }
                Step::Restart(budget) => self.restart(connection, policy, CheckpointMode::Restart, budget),
                Step::Shorten(budget) => self.restart(connection, policy, CheckpointMode::Truncate, budget),
                Step::Truncate => self.truncate(connection, policy),
            };
            opened = Some(OpenConnection { connection: left?, drain, soft, hard });
        }
        None
    }

    /// Decides what to do, after a look for Litestream's tables before anything is copied.
    fn step(&self, connection: &EngineConnection, policy: &mut Policy, seen: &mut Observed) -> Step {
        let step = policy.next(seen, Instant::now());
        if matches!(step, Step::Rest(_)) || seen.beside_litestream {
            return step;
        }
        match self.context.look_for_litestream(&connection.sqlite) {
            Ok(false) => return step,
            Ok(true) => seen.beside_litestream = true,
            // What is not known is not copied.
            Err(error) => {
                self.failed(policy, &error, Duration::ZERO);
                return Step::Rest(LOOK_AGAIN);
            }
        }
        policy.next(seen, Instant::now())
    }

    fn see(&self, connection: &EngineConnection) -> Option<Observed> {
        let header = connection.sqlite.wal().header()?;
        let written = Duration::from_micros(self.last_write_us.load(Ordering::Relaxed));
        let disk = Disk::of(&connection.sqlite, &header);
        let file_bytes = connection.sqlite.files().wal_bytes().unwrap_or(0);
        self.context.recorder.wal.sees(header.max_frame, header.copied, file_bytes);
        self.frames.store(header.max_frame, Ordering::Relaxed);
        self.looked_at(&disk, &header);
        let idle = self.began.elapsed().saturating_sub(written);
        let beside_litestream = self.context.is_beside_litestream();
        Some(Observed { frames: header.max_frame, copied: header.copied, idle, disk, beside_litestream })
    }

    /// Sleeps until the WAL has grown or the time is over, if the thread may linger.
    fn rest(&self, connection: &EngineConnection, policy: &Policy, seen: &Observed, time: Duration) -> Rested {
        let is_idle = seen.idle >= IDLE && time >= IDLE;
        if is_idle {
            return Rested::Ends(None);
        }
        let linger = Linger::begin();
        let wake_at = policy.wake_at(seen, Instant::now()).clamp(1, u32::MAX - 1);
        self.wake_at.store(wake_at, Ordering::SeqCst);
        // Read after `wake_at` was stored: a later commit finds `wake_at` and wakes this thread.
        let frames = connection.sqlite.wal().header().map_or(0, |header| header.max_frame);
        if frames < wake_at && !self.lock().must_end() {
            if !linger.has_place() {
                return Rested::Ends(Some(time));
            }
            thread::park_timeout(time);
        }
        self.wake_at.store(u32::MAX, Ordering::SeqCst);
        Rested::GoesOn
    }

    /// Restarts the WAL: first the slow part, then the rest between two rounds of the writer.
    fn restart(
        &self,
        mut connection: EngineConnection,
        policy: &mut Policy,
        mode: CheckpointMode,
        budget: Duration,
    ) -> Option<EngineConnection> {
        let began = Instant::now();
        let _without_leases = (self.powers.end_leases)();
        if let Err(error) = self.prepare(&mut connection, policy) {
            self.pin.end_if_not_needed(&connection);
            self.failed(policy, &error, Duration::ZERO);
            return Some(connection);
        }
        let (connection, result) = self.in_slot(connection, mode, budget, true)?;
        match result {
            Ok(()) => {
                policy.was_restarted(began.elapsed(), Instant::now());
                self.context.recorder.wal.was_restarted(began.elapsed());
                self.see(&connection);
            }
            Err(error) => self.failed(policy, &error, budget),
        }
        Some(connection)
    }

    fn truncate(&self, connection: EngineConnection, policy: &mut Policy) -> Option<EngineConnection> {
        let _without_leases = (self.powers.end_leases)();
        let (connection, result) = self.in_slot(connection, CheckpointMode::Truncate, POLL, false)?;
        policy.was_truncated();
        match result {
            Ok(()) => self.context.recorder.wal.truncated(),
            Err(error) => self.failed(policy, &error, POLL),
        }
        Some(connection)
    }

    /// Runs a checkpoint between two rounds of the writer, and, if it `commits`, the first commit after it, which syncs
    /// the WAL's new header. Returns `None` if there is no writer any more: the connection was dropped with the closure.
    fn in_slot(
        &self,
        mut connection: EngineConnection,
        mode: CheckpointMode,
        budget: Duration,
        commits: bool,
    ) -> Option<(EngineConnection, Result<()>)> {
        let (send, receive) = mpsc::sync_channel(1);
        let (context, pin) = (self.context.clone(), self.pin.clone());
        let asked = (self.powers.in_slot)(Box::new(move |commit| {
            let began = Instant::now();
            let unpinned = pin.end(commit);
            connection.sqlite.hooks().set_busy(Some(polls(Instant::now() + budget)));
            let done = unpinned.and_then(|()| Ok(connection.sqlite.checkpoint(mode)?));
            connection.sqlite.hooks().set_busy(Some(no_wait()));
            let done = match done {
                Ok(_) if commits => commit().or_else(unless_a_sync_failed),
                done => done.map(drop),
            };
            if let (Err(error), Some(watch)) = (&done, &context.watch) {
                // Before the next round of the writer.
                watch.refuse_after_failed_sync(error);
            }
            context.recorder.wal.paused(began.elapsed());
            let _ = send.send((connection, done));
        }));
        if asked { receive.recv().ok() } else { None }
    }

    /// Handles a failed step, which waited this long for readers. Unless the cause was a lock, writers stop waiting for
    /// room.
    pub(super) fn failed(&self, policy: &mut Policy, error: &Error, waited: Duration) {
        self.watch().refuse_after_failed_sync(error);
        if is_lock(error) {
            policy.was_blocked(Instant::now());
            return self.blocked(waited, policy);
        }
        policy.failed(Instant::now());
        self.context.recorder.wal.failed(error);
        self.make_no_room();
    }

    /// Determines what blocked the checkpoint. A read younger than the wait did not.
    fn blocked(&self, waited: Duration, policy: &Policy) {
        let oldest = (self.powers.oldest_read)().filter(|read| read.age >= waited);
        let cause = match &oldest {
            Some(read) => WalBlocker::Read { age: read.age, sql: read.sql.clone() },
            None => WalBlocker::Foreign,
        };
        let is_starved = policy.is_starved();
        self.context.recorder.wal.blocked(cause, is_starved, policy.has_grown());
        if let (Some(read), Some(limit)) = (oldest, self.context.options.read_limit)
            && is_starved
            && read.age >= limit
            && (read.cut_off)()
        {
            self.context.recorder.wal.cut_off(read.age, &read.sql);
        }
    }
}

/// The connection, the number of the drain it was opened under, and the limits of the WAL in frames.
struct OpenConnection {
    connection: EngineConnection,
    drain: u64,
    soft: u32,
    hard: u32,
}
