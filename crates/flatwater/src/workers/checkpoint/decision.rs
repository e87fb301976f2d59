//! The checkpointer's decision what to do next. Pure: observations go in, a step comes out; time is an input.
//!
//! Owns: the thresholds, how they adapt, and the state that spans steps. Runs on the checkpointer's thread. Invariants:
//! a checkpoint that reached the end of the WAL is followed by a restart at once, so that the checkpointer pays for the
//! WAL's new header, and not a user's write; a blocked checkpoint or restart is not retried at once; after three
//! blocked restarts the policy reports starvation; a rest lasts for a time, or until the WAL has grown beyond what was seen;
//! after a failure the connection is replaced, each time after a longer pause. Leaves out: doing any of it.
//!
//! ```text
//!          backlog >= checkpoint_frames            frames >= restart_frames, or copied to the end
//!   REST ------------------------> CHECKPOINT ... -------------------------------> RESTART --> REST
//!     ^                                                                               |
//!     |        the reader is gone: RESTART succeeds                                   | blocked: later, longer
//!     +---------------------------------------- STARVED <-----------------------------+ three times
//! ```

mod beside_litestream;

use std::time::{Duration, Instant};

use super::write_delay::DiskRate;
use crate::file::disk::{Disk, LIMIT_AT_LEAST};

/// What the checkpointer observes of the WAL and of its writers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Observed {
    pub(crate) frames: u32,
    pub(crate) copied: u32,
    pub(crate) disk: Disk,
    /// How long ago the last write was.
    pub(crate) idle: Duration,
    /// Litestream works on the file, or did earlier.
    pub(crate) beside_litestream: bool,
}

impl Observed {
    /// Returns true if the WAL is short again after a burst that made its file longer than the limit.
    fn was_beyond(&self, limit: u32) -> bool {
        self.disk.wal > limit && self.frames < QUIET_FRAMES
    }

    fn backlog(&self) -> u32 {
        self.frames.saturating_sub(self.copied)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing to do; look again after this long, or when the WAL has grown.
    Rest(Duration),
    /// A PASSIVE checkpoint.
    Checkpoint,
    /// Sync without holding any lock, then restart the WAL in the writer slot. Wait this long for readers.
    Restart(Duration),
    /// The same, and truncate the file, which is longer than the disk has room for, or far beyond the limit.
    Shorten(Duration),
    /// Truncate the file, when nothing is written.
    Truncate,
}

/// The intended duration of one checkpoint: long enough to be worth its syncs, short enough not to delay a restart.
const CHECKPOINT_TIME: Duration = Duration::from_millis(4);
const CHECKPOINT_FRAMES: std::ops::RangeInclusive<u32> = 500..=4000;
/// A restart begins at this part of the limit at the latest, and at that part at the earliest: writers continue while
/// the restart is prepared, and the frames that they are expected to write meanwhile must fit.
const RESTART_AT: f64 = 0.7;
const RESTART_AT_LEAST: f64 = 0.25;
const MARGIN: f64 = 1.5;
/// A WAL of so many frames is restarted when the writer pauses for `PAUSE`, but at most once per `PAUSES_APART`.
const PAUSE: Duration = Duration::from_millis(2);
const PAUSE_FRAMES: u32 = 1000;
const PAUSES_APART: Duration = Duration::from_secs(5);
/// A WAL of at least `QUIET_FRAMES` frames is restarted when nothing was written for `QUIET`.
const QUIET: Duration = Duration::from_secs(1);
const QUIET_FRAMES: u32 = 64;
/// A file is truncated when nothing was written for `IDLE`, if it is longer than this part of the limit; and when nothing was
/// written for `QUIET`, if it is longer than the limit.
const IDLE: Duration = Duration::from_secs(30);
const KEPT: u32 = 4;
/// A restart truncates a file that is longer than this many times the limit: no checkpoint was possible for a time, or one
/// transaction was as large.
const LONG: u32 = 8;
/// How long to wait for readers, at first and at most; how long a blocked restart is not retried, at first and at most.
const BUDGET: Duration = Duration::from_millis(5);
const BUDGET_MAX: Duration = Duration::from_millis(20);
const RETRY: Duration = Duration::from_millis(20);
const RETRY_MAX: Duration = Duration::from_millis(500);
const BLOCKED_UNTIL_STARVED: u32 = 3;

pub(crate) struct Policy {
    /// The WAL is restarted before it has so many frames: the soft limit, and what that is on this disk.
    soft: u32,
    limit: u32,
    us_per_frame: f64,
    disk: DiskRate,
    /// How fast the WAL grows, and how long a restart takes, including its preparation.
    frames_per_ms: f64,
    restart_ms: f64,
    last_seen: Option<(Instant, u32)>,
    /// The last checkpoint reached the end of the WAL.
    complete: bool,
    blocked: u32,
    /// Before these times a restart, or a checkpoint, would be of no use.
    restart_after: Option<Instant>,
    checkpoint_after: Option<Instant>,
    last_restart: Option<Instant>,
    truncated: bool,
    /// The connection must be replaced.
    has_failed: bool,
    /// The most recent result concerning restarts is a failure.
    is_failing: bool,
}

impl Policy {
    pub(crate) fn new(soft: u32) -> Self {
        Self {
            soft,
            limit: soft,
            us_per_frame: 4.0,
            disk: DiskRate::default(),
            frames_per_ms: 0.0,
            restart_ms: 20.0,
            last_seen: None,
            complete: false,
            blocked: 0,
            restart_after: None,
            checkpoint_after: None,
            last_restart: None,
            truncated: false,
            has_failed: false,
            is_failing: false,
        }
    }

    /// Records that the connection was opened; the soft limit is now known in frames.
    pub(crate) fn opened(&mut self, soft: u32) {
        self.has_failed = false;
        (self.soft, self.limit) = (soft, soft);
    }

    /// The soft limit on this disk.
    pub(crate) fn limit(&self) -> u32 {
        self.limit
    }

    /// The number of frames for a checkpoint of the intended duration; limited so that one is due before a restart.
    fn checkpoint_frames(&self) -> u32 {
        let frames = (CHECKPOINT_TIME.as_secs_f64() * 1e6 / self.us_per_frame.max(0.1)) as u32;
        frames.clamp(*CHECKPOINT_FRAMES.start(), *CHECKPOINT_FRAMES.end()).min((self.limit / 4).max(1))
    }

    /// Records that a step, or opening the connection, failed for a reason other than a lock. A failure whose cause is
    /// the connection, such as a file that could be opened for reading only, repeats on the same connection for ever.
    pub(crate) fn failed(&mut self, now: Instant) {
        self.was_blocked(now);
        self.was_not_checkpointed();
        self.has_failed = true;
        self.is_failing = true;
    }

    /// Returns how long the connection must not be reopened after a failure. `None` if the connection may be used.
    pub(crate) fn reopen_in(&self, now: Instant) -> Option<Duration> {
        self.has_failed.then(|| left(self.restart_after, now))
    }

    /// Returns true while restarts fail, so that no writer may wait for one.
    pub(crate) fn is_failing(&self) -> bool {
        self.is_failing
    }

    /// The number of frames at which the checkpointer has something to do.
    pub(crate) fn wake_at(&self, seen: &Observed, now: Instant) -> u32 {
        if seen.beside_litestream {
            return beside_litestream::wake_at(self, now);
        }
        // While a checkpoint or a restart is blocked, only time wakes the checkpointer.
        let unless_waiting = |then, frames| if left(then, now).is_zero() { frames } else { u32::MAX };
        let checkpoint = unless_waiting(self.checkpoint_after, seen.copied.saturating_add(self.checkpoint_frames()));
        checkpoint.min(unless_waiting(self.restart_after, self.restart_frames()))
    }

    /// Returns true if a reader or another process blocked the last restart.
    pub(crate) fn is_blocked(&self) -> bool {
        self.blocked > 0
    }

    pub(crate) fn is_starved(&self) -> bool {
        self.blocked >= BLOCKED_UNTIL_STARVED
    }

    /// Returns true if it is starved and has become longer than it would be otherwise.
    pub(crate) fn has_grown(&self) -> bool {
        self.is_starved() && self.last_seen.is_some_and(|(_, frames)| frames > self.limit)
    }

    fn restart_frames(&self) -> u32 {
        let soft = f64::from(self.limit);
        let meanwhile = self.frames_per_ms * self.restart_ms * MARGIN;
        (soft - meanwhile).clamp(soft * RESTART_AT_LEAST, soft * RESTART_AT) as u32
    }

    /// Adapts the limit to the disk, and measures how fast the WAL grows.
    pub(crate) fn saw(&mut self, seen: &Observed, now: Instant) {
        // The hard limit, up to which a burst may go, must fit as well.
        self.limit = self.soft.min(seen.disk.limit(self.soft.saturating_mul(2)) / 2).max(LIMIT_AT_LEAST);
        let (since, before) = *self.last_seen.get_or_insert((now, seen.frames));
        let ms = now.saturating_duration_since(since).as_secs_f64() * 1e3;
        // An observation less than a millisecond after another is too inexact.
        if ms < 1.0 {
            return;
        }
        if let Some(grown) = seen.frames.checked_sub(before) {
            // An average over the last 100 ms.
            let weight = (ms / 100.0).min(1.0);
            self.frames_per_ms += (f64::from(grown) / ms - self.frames_per_ms) * weight;
        } else {
            self.nothing_is_in_the_way();
        }
        self.last_seen = Some((now, seen.frames));
    }

    pub(crate) fn next(&self, seen: &Observed, now: Instant) -> Step {
        if seen.beside_litestream {
            return beside_litestream::next(self, seen, now);
        }
        let is_long = seen.disk.wal > self.limit / KEPT;
        let is_due = is_long && seen.idle >= IDLE || seen.was_beyond(self.limit) && seen.idle >= QUIET;
        if is_due && !self.truncated {
            return Step::Truncate;
        }
        let (restart_in, checkpoint_in) = (left(self.restart_after, now), left(self.checkpoint_after, now));
        let (wants_restart, wants_checkpoint) =
            (self.wants_restart(seen, now), seen.backlog() >= self.checkpoint_frames());
        if wants_restart && restart_in.is_zero() {
            let budget = self.budget();
            let is_too_long = seen.disk.is_wal_too_long() || seen.disk.wal / LONG > self.limit;
            return if is_too_long { Step::Shorten(budget) } else { Step::Restart(budget) };
        }
        // Checkpoints continue while a restart must wait, so that the backlog does not grow.
        if wants_checkpoint && checkpoint_in.is_zero() {
            return Step::Checkpoint;
        }
        let quiet = if wants_restart { restart_in } else { self.until_quiet(seen, now) };
        let times = [quiet.max(Duration::from_millis(1)), restart_in, checkpoint_in];
        Step::Rest(times.into_iter().filter(|time| !time.is_zero()).min().unwrap_or(quiet))
    }

    fn wants_restart(&self, seen: &Observed, now: Instant) -> bool {
        let apart = self.last_restart.is_none_or(|last| now.saturating_duration_since(last) >= PAUSES_APART);
        self.complete && seen.backlog() == 0 && seen.frames > 1
            || seen.frames >= self.restart_frames()
            || seen.idle >= PAUSE && seen.frames >= PAUSE_FRAMES && apart
            || seen.idle >= QUIET && seen.frames >= QUIET_FRAMES
    }

    /// The time until a pause of the writer could make a step due.
    fn until_quiet(&self, seen: &Observed, now: Instant) -> Duration {
        let apart =
            self.last_restart.map_or(Duration::ZERO, |last| (last + PAUSES_APART).saturating_duration_since(now));
        if seen.frames >= PAUSE_FRAMES {
            return PAUSE.saturating_sub(seen.idle).max(apart).min(QUIET);
        }
        match (seen.frames >= QUIET_FRAMES, IDLE.saturating_sub(seen.idle)) {
            (true, _) => QUIET.saturating_sub(seen.idle),
            (false, _) if seen.was_beyond(self.limit) && !self.truncated => QUIET.saturating_sub(seen.idle),
            // Every step that becomes due with time is done.
            (false, Duration::ZERO) => IDLE,
            (false, left) => left,
        }
    }

    fn budget(&self) -> Duration {
        (BUDGET * 2u32.saturating_pow(self.blocked)).min(BUDGET_MAX)
    }

    /// Records a checkpoint of so many frames in this time, and the frames it `left` in the WAL.
    pub(crate) fn checkpointed(&mut self, frames: u32, left: u32, took: Duration, now: Instant) {
        self.complete = left == 0;
        if frames >= 100 {
            let per_frame = took.as_secs_f64() * 1e6 / f64::from(frames);
            self.us_per_frame += (per_frame - self.us_per_frame) / 4.0;
        }
        // A reader holds the rest: an immediate retry would copy nothing more.
        self.checkpoint_after = (frames < self.checkpoint_frames() / 4 && left > 0).then(|| now + RETRY);
    }

    /// Records that the disk took so long for a checkpoint and its syncs.
    pub(crate) fn disk_took(&mut self, frames: u32, took: Duration) {
        self.disk.copied(frames, took);
    }

    /// The time that the disk takes for a frame.
    pub(crate) fn frame(&self) -> Duration {
        self.disk.frame()
    }

    /// Records that this checkpointer restarted the WAL, and how long that took.
    pub(crate) fn was_restarted(&mut self, took: Duration, now: Instant) {
        self.restart_ms += (took.as_secs_f64() * 1e3 - self.restart_ms) / 4.0;
        self.last_seen = None;
        self.nothing_is_in_the_way();
        self.last_restart = Some(now);
        self.truncated = false;
    }

    /// Clears the blocked and failed state: the WAL was restarted, by this checkpointer or by another process.
    fn nothing_is_in_the_way(&mut self) {
        self.complete = false;
        self.is_failing = false;
        self.blocked = 0;
        self.restart_after = None;
        self.checkpoint_after = None;
    }

    /// Records that a reader, or another process, blocked a restart.
    pub(crate) fn was_blocked(&mut self, now: Instant) {
        self.complete = false;
        self.is_failing = false;
        self.restart_after = Some(now + (RETRY * 2u32.saturating_pow(self.blocked)).min(RETRY_MAX));
        self.blocked = self.blocked.saturating_add(1);
    }

    /// Delays checkpoints as well: what blocked the restart also blocked one.
    pub(crate) fn was_not_checkpointed(&mut self) {
        self.checkpoint_after = self.restart_after;
    }

    pub(crate) fn was_truncated(&mut self) {
        self.truncated = true;
    }
}

fn left(then: Option<Instant>, now: Instant) -> Duration {
    then.map_or(Duration::ZERO, |then| then.saturating_duration_since(now))
}

#[cfg(test)]
mod tests;
