//! What the checkpointer does next. Pure: what is seen goes in, a step comes out; time is an input.
//!
//! Owns: the thresholds, how they adapt, and the state that spans steps. Invariants: a copy that reached the end of the
//! WAL is followed by a reset at once, so that not a user's write but the checkpointer pays for starting the WAL over; a
//! reset that was blocked is not tried again at once; whoever starves is told after three of them. Leaves out: doing any
//! of it.
//!
//! ```text
//!            backlog >= copy_frames              frames >= reset_frames, or copied to the end
//!   REST ------------------------> COPY ... ------------------------------------> RESET --> REST
//!     ^                                                                             |
//!     |        the reader is gone: RESET succeeds                                   | blocked: later, longer
//!     +---------------------------------------- STARVED <---------------------------+ three times
//! ```

use std::time::{Duration, Instant};

/// The limits of a managed WAL, in frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    /// The WAL is started over before it is this long.
    pub(crate) soft: u32,
    /// Writers wait beyond this.
    pub(crate) hard: u32,
}

/// What can be seen of the WAL and of its writers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) frames: u32,
    pub(crate) copied: u32,
    /// The length of the file, in frames: it stays when the WAL starts over.
    pub(crate) file_frames: u32,
    /// Since when nothing was written.
    pub(crate) idle: Duration,
}

impl Seen {
    fn backlog(&self) -> u32 {
        self.frames.saturating_sub(self.copied)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing to do for this long, or until the WAL has so many frames.
    Rest { time: Duration, frames: u32 },
    /// Nothing to do before something is written.
    End,
    /// A PASSIVE checkpoint.
    Copy,
    /// Sync outside of all locks, then start the WAL over at a boundary between writes. Readers are waited for this long.
    Reset(Duration),
    /// Make the file short.
    Truncate,
}

/// A copy is to take about this long: long enough to be worth its syncs, short enough not to keep a reset waiting.
const COPY_TIME: Duration = Duration::from_millis(4);
const COPY_FRAMES: std::ops::RangeInclusive<u32> = 500..=4000;
/// A reset is begun at this part of the limit at the latest, and at that part at the earliest: writers go on while it is
/// prepared, and what they are expected to write meanwhile must fit.
const RESET_AT: f64 = 0.7;
const RESET_AT_LEAST: f64 = 0.25;
const MARGIN: f64 = 1.5;
/// A WAL of so many frames is started over when the writer pauses, but not more often than that.
const PAUSE: Duration = Duration::from_millis(2);
const PAUSE_FRAMES: u32 = 1000;
const PAUSES_APART: Duration = Duration::from_secs(5);
/// Any WAL worth it is started over when nothing was written for so long.
const QUIET: Duration = Duration::from_secs(1);
const QUIET_FRAMES: u32 = 64;
/// When nothing was written for so long a file is made short, if it is longer than this part of the limit, and then the
/// checkpointer ends.
const IDLE: Duration = Duration::from_secs(30);
const KEPT: u32 = 4;
/// How long readers are waited for, at first and at most; how long a blocked reset is not tried again.
const BUDGET: Duration = Duration::from_millis(5);
const BUDGET_MAX: Duration = Duration::from_millis(20);
const RETRY: Duration = Duration::from_millis(20);
const RETRY_MAX: Duration = Duration::from_millis(500);
const BLOCKED_UNTIL_STARVED: u32 = 3;
/// As a number of frames to wait for.
const NEVER: u32 = u32::MAX;

pub(crate) struct Policy {
    limits: Limits,
    us_per_frame: f64,
    /// How fast the WAL grows, and how long a reset takes from its beginning.
    frames_per_ms: f64,
    reset_ms: f64,
    last_seen: Option<(Instant, u32)>,
    copy_frames: u32,
    /// The last copy reached the end of the WAL.
    complete: bool,
    blocked: u32,
    /// A reset, or a copy, is of no use before.
    reset_after: Option<Instant>,
    copy_after: Option<Instant>,
    last_reset: Option<Instant>,
    truncated: bool,
}

impl Policy {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            us_per_frame: 4.0,
            frames_per_ms: 0.0,
            reset_ms: 20.0,
            last_seen: None,
            copy_frames: copy_frames(4.0, limits),
            complete: false,
            blocked: 0,
            reset_after: None,
            copy_after: None,
            last_reset: None,
            truncated: false,
        }
    }

    pub(crate) fn is_starved(&self) -> bool {
        self.blocked >= BLOCKED_UNTIL_STARVED
    }

    fn reset_frames(&self) -> u32 {
        let soft = f64::from(self.limits.soft);
        let meanwhile = self.frames_per_ms * self.reset_ms * MARGIN;
        (soft - meanwhile).clamp(soft * RESET_AT_LEAST, soft * RESET_AT) as u32
    }

    /// Learns how fast the WAL grows.
    pub(crate) fn saw(&mut self, seen: &Seen, now: Instant) {
        let (since, before) = *self.last_seen.get_or_insert((now, seen.frames));
        let ms = now.saturating_duration_since(since).as_secs_f64() * 1e3;
        // A look right after another says little.
        if ms < 1.0 {
            return;
        }
        if let Some(grown) = seen.frames.checked_sub(before) {
            // The last 100 ms count.
            let weight = (ms / 100.0).min(1.0);
            self.frames_per_ms += (f64::from(grown) / ms - self.frames_per_ms) * weight;
        }
        self.last_seen = Some((now, seen.frames));
    }

    pub(crate) fn next(&self, seen: &Seen, now: Instant) -> Step {
        let is_long = seen.file_frames > self.limits.soft / KEPT && !self.truncated;
        if is_long && seen.idle >= IDLE {
            return Step::Truncate;
        }
        let left = |then: Option<Instant>| then.map_or(Duration::ZERO, |then| then.saturating_duration_since(now));
        if self.wants_reset(seen, now) {
            // While something is in the way it is the clock that wakes, and no growth.
            return match left(self.reset_after) {
                Duration::ZERO => Step::Reset(self.budget()),
                time => Step::Rest { time, frames: NEVER },
            };
        }
        if seen.backlog() >= self.copy_frames {
            return match left(self.copy_after) {
                Duration::ZERO => Step::Copy,
                time => Step::Rest { time, frames: self.reset_frames() },
            };
        }
        if seen.idle >= IDLE {
            return Step::End;
        }
        let frames = seen.copied.saturating_add(self.copy_frames).min(self.reset_frames());
        Step::Rest { time: self.until_quiet(seen, now).max(Duration::from_millis(1)), frames }
    }

    fn wants_reset(&self, seen: &Seen, now: Instant) -> bool {
        let apart = self.last_reset.is_none_or(|last| now.saturating_duration_since(last) >= PAUSES_APART);
        self.complete && seen.backlog() == 0 && seen.frames > 1
            || seen.frames >= self.reset_frames()
            || seen.idle >= PAUSE && seen.frames >= PAUSE_FRAMES && apart
            || seen.idle >= QUIET && seen.frames >= QUIET_FRAMES
    }

    /// Until a pause of the writer could count.
    fn until_quiet(&self, seen: &Seen, now: Instant) -> Duration {
        let apart = self.last_reset.map_or(Duration::ZERO, |last| (last + PAUSES_APART).saturating_duration_since(now));
        if seen.frames >= PAUSE_FRAMES {
            return PAUSE.saturating_sub(seen.idle).max(apart).min(QUIET);
        }
        let quiet = if seen.frames >= QUIET_FRAMES { QUIET } else { IDLE };
        quiet.saturating_sub(seen.idle)
    }

    fn budget(&self) -> Duration {
        (BUDGET * 2u32.saturating_pow(self.blocked)).min(BUDGET_MAX)
    }

    /// A copy moved so many frames in this time, up to what it left in the WAL.
    pub(crate) fn copied(&mut self, frames: u32, left: u32, took: Duration, now: Instant) {
        self.complete = left == 0;
        if frames >= 100 {
            let per_frame = took.as_secs_f64() * 1e6 / f64::from(frames);
            self.us_per_frame += (per_frame - self.us_per_frame) / 4.0;
            self.copy_frames = copy_frames(self.us_per_frame, self.limits);
        }
        // A reader holds the rest: trying again at once would find the same.
        self.copy_after = (frames < self.copy_frames / 4 && left > 0).then(|| now + RETRY);
    }

    /// The WAL was started over, which took so long.
    pub(crate) fn was_reset(&mut self, took: Duration, now: Instant) {
        self.reset_ms += (took.as_secs_f64() * 1e3 - self.reset_ms) / 4.0;
        self.last_seen = None;
        self.complete = false;
        self.blocked = 0;
        self.reset_after = None;
        self.copy_after = None;
        self.last_reset = Some(now);
        self.truncated = false;
    }

    /// A reader, or another process, was in the way; or a copy or a reset failed.
    pub(crate) fn was_blocked(&mut self, now: Instant) {
        let then = now + (RETRY * 2u32.saturating_pow(self.blocked)).min(RETRY_MAX);
        self.complete = false;
        (self.reset_after, self.copy_after) = (Some(then), Some(then));
        self.blocked = self.blocked.saturating_add(1);
    }

    pub(crate) fn was_truncated(&mut self) {
        self.truncated = true;
    }
}

/// How many frames make a copy of the right length; never so many that a copy would come after the reset.
fn copy_frames(us_per_frame: f64, limits: Limits) -> u32 {
    let frames = (COPY_TIME.as_secs_f64() * 1e6 / us_per_frame.max(0.1)) as u32;
    frames.clamp(*COPY_FRAMES.start(), *COPY_FRAMES.end()).min((limits.soft / 4).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { soft: 8192, hard: 65_536 };

    fn seen(frames: u32, copied: u32, idle_ms: u64) -> Seen {
        Seen { frames, copied, file_frames: frames.max(3000), idle: Duration::from_millis(idle_ms) }
    }

    fn rest(time: Duration, frames: u32) -> Step {
        Step::Rest { time, frames }
    }

    #[test]
    fn each_state_of_the_wal_has_its_step() {
        let table = [
            ("a short WAL rests", seen(10, 0, 0), rest(IDLE, 1000)),
            ("a backlog is copied", seen(1500, 0, 0), Step::Copy),
            ("what is copied is left alone", seen(1500, 1400, 0), rest(PAUSE, 2400)),
            ("at the latest to be started over", seen(5000, 4900, 0), rest(PAUSE, 5734)),
            ("a long WAL is started over", seen(5800, 5000, 0), Step::Reset(BUDGET)),
            ("so is one whose writer pauses", seen(1500, 1400, 2), Step::Reset(BUDGET)),
            ("a small one waits for quiet", seen(100, 0, 400), rest(Duration::from_millis(600), 1000)),
            ("and is started over then", seen(100, 0, 1000), Step::Reset(BUDGET)),
            ("one frame is nothing", seen(1, 0, 5000), rest(Duration::from_secs(25), 1000)),
            ("a long file is made short when idle", seen(1, 0, 30_000), Step::Truncate),
            ("a short one is the end", Seen { file_frames: 2000, ..seen(1, 0, 30_000) }, Step::End),
        ];
        let policy = Policy::new(LIMITS);
        for (what, seen, step) in table {
            assert_eq!(policy.next(&seen, Instant::now()), step, "{what}");
        }
    }

    #[test]
    fn a_copy_to_the_end_is_followed_by_a_reset() {
        let mut policy = Policy::new(LIMITS);
        let now = Instant::now();
        policy.copied(1500, 0, Duration::from_millis(4), now);
        assert_eq!(policy.next(&seen(1500, 1500, 0), now), Step::Reset(BUDGET));
        policy.was_reset(Duration::from_millis(20), now);
        assert!(matches!(policy.next(&seen(1, 0, 0), now), Step::Rest { time: IDLE, .. }));
    }

    #[test]
    fn a_reset_begins_early_enough_for_what_is_written_meanwhile() {
        let mut policy = Policy::new(LIMITS);
        let mut now = Instant::now();
        let mut frames = 0;
        for _ in 0..50 {
            policy.saw(&seen(frames, 0, 0), now);
            now += Duration::from_millis(10);
            frames += 40 * 10;
        }
        policy.was_reset(Duration::from_millis(200), now);
        // 40 frames each millisecond, about 65 ms, half as much again: 3,900 of 8,192.
        assert!((4000..4600).contains(&policy.reset_frames()), "{}", policy.reset_frames());
        (0..20).for_each(|_| policy.was_reset(Duration::from_secs(2), now));
        assert_eq!(policy.reset_frames(), 2048, "but never too early");
    }

    #[test]
    fn pauses_of_the_writer_do_not_reset_more_often_than_every_five_seconds() {
        let mut policy = Policy::new(LIMITS);
        let now = Instant::now();
        policy.was_reset(Duration::from_millis(20), now);
        assert!(matches!(policy.next(&seen(1500, 1400, 3), now), Step::Rest { .. }));
        assert_eq!(policy.next(&seen(1500, 1400, 3), now + PAUSES_APART), Step::Reset(BUDGET));
        assert_eq!(policy.next(&seen(1500, 1400, 1000), now), Step::Reset(BUDGET), "quiet is quiet");
    }

    #[test]
    fn a_blocked_reset_waits_longer_each_time_and_the_third_starves() {
        let mut policy = Policy::new(LIMITS);
        let mut now = Instant::now();
        let long = seen(6000, 5900, 0);
        let mut waits = Vec::new();
        for budget_ms in [5, 10, 20, 20, 20, 20, 20] {
            assert_eq!(policy.next(&long, now), Step::Reset(Duration::from_millis(budget_ms)));
            policy.was_blocked(now);
            let Step::Rest { time, frames: NEVER } = policy.next(&long, now) else { panic!("it does not rest") };
            waits.push(time.as_millis());
            now += time;
        }
        assert_eq!(waits, [20, 40, 80, 160, 320, 500, 500]);
        assert!(policy.is_starved());
        policy.was_reset(Duration::from_millis(20), now);
        assert!(!policy.is_starved());
    }

    #[test]
    fn a_copy_that_a_reader_holds_up_is_not_tried_again_at_once() {
        let mut policy = Policy::new(LIMITS);
        let now = Instant::now();
        policy.copied(0, 1500, Duration::from_millis(1), now);
        assert_eq!(policy.next(&seen(1500, 0, 0), now), rest(RETRY, policy.reset_frames()));
        assert_eq!(policy.next(&seen(1500, 0, 0), now + RETRY), Step::Copy);
        assert_eq!(policy.next(&seen(1500, 800, 0), now), rest(PAUSE, 1800), "the rest may grow meanwhile");
        policy.was_blocked(now);
        assert_eq!(policy.next(&seen(1500, 0, 0), now), rest(RETRY, policy.reset_frames()), "nor one that failed");
    }

    #[test]
    fn a_rest_waits_for_more_frames_than_there_are() {
        let now = Instant::now();
        let blocked = |times| {
            let mut policy = Policy::new(LIMITS);
            policy.copied(0, 3000, Duration::from_millis(1), now);
            (0..times).for_each(|_| policy.was_blocked(now));
            policy
        };
        for policy in [0, 1, 3].map(blocked) {
            for (frames, copied) in
                (0..9000).step_by(100).flat_map(|frames| [0, 100, 1000].map(|copied| (frames, copied)))
            {
                let seen = seen(frames, copied.min(frames), 0);
                if let Step::Rest { frames: until, .. } = policy.next(&seen, now) {
                    assert!(until > frames, "it would not rest: {seen:?}");
                }
            }
        }
    }

    #[test]
    fn copies_get_as_large_as_their_time_allows() {
        let mut policy = Policy::new(LIMITS);
        let rest = |policy: &Policy| match policy.next(&seen(0, 0, 0), Instant::now()) {
            Step::Rest { frames, .. } => frames,
            step => panic!("{step:?}"),
        };
        let at_first = rest(&policy);
        (0..20).for_each(|_| policy.copied(1000, 500, Duration::from_millis(1), Instant::now()));
        assert!(rest(&policy) > at_first);
        (0..20).for_each(|_| policy.copied(1000, 500, Duration::from_millis(100), Instant::now()));
        assert_eq!(rest(&policy), *COPY_FRAMES.start());
        let small = Policy::new(Limits { soft: 100, hard: 1000 });
        assert!(rest(&small) < 70, "a copy comes before the reset, however small the limit");
    }
}
