//! How long a write waits when the WAL grows faster than the disk takes it. Pure.
//!
//! Owns: the delayed write rate, and the measure of the disk that it is a part of. Runs where the WAL's length is
//! reported: on the thread that holds the slot, after a write, and on the checkpointer's thread. Invariants: no write is
//! delayed in the first half of the way from the soft limit to the hard one, so that a burst that fits there is written at
//! full speed; from there on the rate falls as the WAL grows, from the rate of the disk to a small part of it at the hard
//! limit, so that a checkpoint always gets nearer to the end of the WAL; no delay is longer than twice the time that the
//! disk needs for the write, or `LONGEST`, and no wait is longer than a delay and `PAUSE`. Leaves out: waiting.

use std::time::Duration;

/// The smallest part of the disk's rate at which writes go on.
const SLOWEST: f64 = 1.0 / 16.0;
/// The longest delay of a write of few frames.
pub(super) const LONGEST: Duration = Duration::from_millis(10);
/// The delay of each write beyond the hard limit.
pub(super) const ROOM: Duration = Duration::from_millis(100);

/// Delays add up to one of this length before a write waits: a shorter one takes much longer than it should, since a
/// thread has to go to sleep for it, and all writes would pay for that.
const PAUSE: Duration = Duration::from_millis(3);

/// Returns when the next write may begin, after one at `now` that has this delay; `before` is when it might have begun.
pub(super) fn after(before: Duration, now: Duration, delay: Duration) -> Duration {
    before.max(now) + delay
}

/// Returns the time that is left until the next write may begin, if it is long enough for a pause.
pub(super) fn worth_a_pause(left: Duration) -> Option<Duration> {
    (left >= PAUSE).then_some(left)
}

/// A pass counts as one of so many frames at least: a sync takes some time, however little there is to sync.
pub(super) const PASS: u32 = 500;

/// Returns the time that the disk takes for a frame now: as it was measured, or as the pass of so many frames shows that has
/// run for so long and not ended. A disk that stands still in the middle of a sync has no rate that was measured lately.
pub(super) fn frame_now(measured: Duration, frames: u32, runs: Duration) -> Duration {
    if frames == 0 { measured } else { measured.max(runs / frames.max(PASS)) }
}

/// Writers can wait for the copying of so many frames, or of as many as the disk takes in so long.
const SHORT_FRAMES: u32 = 256;
const SHORT: Duration = Duration::from_millis(5);

/// Returns true if so little is to be copied that a restart may do it while writers wait.
pub(super) fn is_short(backlog: u32, frame: Duration) -> bool {
    backlog <= SHORT_FRAMES || frame.saturating_mul(backlog) <= SHORT
}

/// The limits of the WAL in frames, and the time that the disk takes for a frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    pub(super) soft: u32,
    pub(super) hard: u32,
    pub(super) frame: Duration,
}

impl Pace {
    /// Returns how many frames a WAL has at most in which no write is delayed.
    fn free(&self) -> u32 {
        self.soft.saturating_add(self.hard.saturating_sub(self.soft) / 2)
    }

    /// Returns true if writes are delayed in a WAL of so many frames.
    pub(super) fn delays(&self, frames: u32) -> bool {
        frames >= self.hard || frames > self.free()
    }

    /// Returns how long the next write waits after one that wrote `written` frames and left the WAL with `frames`.
    pub(super) fn delay(&self, written: u32, frames: u32) -> Duration {
        if !self.delays(frames) {
            return Duration::ZERO;
        }
        if frames >= self.hard {
            return ROOM;
        }
        let left = f64::from(self.hard - frames) / f64::from(self.hard - self.free());
        let of_the_disk = self.frame * written;
        of_the_disk.div_f64(left.clamp(SLOWEST, 1.0)).min(LONGEST.max(of_the_disk * 2)).min(ROOM)
    }
}

/// The rate of the disk: what the checkpointer copied, and the time that this took with all syncs.
#[derive(Debug, Clone, Copy)]
pub(super) struct DiskRate {
    frames: f64,
    us: f64,
}

/// Older measurements count half after so many frames.
const RECENT: f64 = 4096.0;
/// What is assumed at first: 100 MB in a second.
const ASSUMED: DiskRate = DiskRate { frames: 100.0, us: 4000.0 };

impl Default for DiskRate {
    fn default() -> Self {
        ASSUMED
    }
}

impl DiskRate {
    pub(super) fn copied(&mut self, frames: u32, took: Duration) {
        self.frames += f64::from(frames);
        self.us += took.as_secs_f64() * 1e6;
        while self.frames > RECENT {
            (self.frames, self.us) = (self.frames / 2.0, self.us / 2.0);
        }
    }

    pub(super) fn frame(&self) -> Duration {
        Duration::from_secs_f64(self.us / self.frames / 1e6)
    }
}

#[cfg(test)]
mod tests;
