//! Tests of the delays: the rule, and a simulated disk with the checkpointer's policy and a writer that is too fast.

use std::time::Instant;

use super::*;
use crate::file::disk::Disk;
use crate::workers::checkpoint::decision::{Observed, Policy, Step};

const SOFT: u32 = 8192;
const HARD: u32 = 65_536;

#[test]
fn the_longer_the_wal_the_longer_the_delay() {
    let pace = Pace { soft: 8000, hard: 24_000, frame: Duration::from_micros(40) };
    let delays = [0, 8000, 16_000, 20_000, 22_000, 23_800, 23_999].map(|frames| pace.delay(3, frames).as_micros());
    assert_eq!(delays, [0, 0, 0, 240, 480, 1920, 1920]);
    assert_eq!(pace.delay(100, 23_999), LONGEST, "few frames do not wait for long");
    assert_eq!(pace.delay(1000, 23_999), Duration::from_millis(80), "many frames wait for what they cost");
    assert_eq!(pace.delay(10_000, 23_999), ROOM);
    assert_eq!(pace.delay(1, 24_000), ROOM);
    let lifted = Pace { soft: u32::MAX, hard: u32::MAX, ..pace };
    assert!(!lifted.delays(1_000_000_000));
}

#[test]
fn short_delays_add_up_to_one_pause_and_the_time_between_two_writes_pays_for_them() {
    let ms = Duration::from_millis;
    let mut next = Duration::ZERO;
    let mut wait_after = |now| {
        next = after(next, now, ms(1));
        worth_a_pause(next - now)
    };
    assert_eq!([ms(10), ms(10), ms(10)].map(&mut wait_after), [None, None, Some(ms(3))]);
    assert_eq!(
        [ms(13), ms(14), ms(15), ms(20)].map(&mut wait_after),
        [None; 4],
        "a write each millisecond owes nothing"
    );
    assert_eq!([ms(20), ms(20)].map(&mut wait_after), [None, Some(ms(3))]);
}

/// A disk, a writer of three frames at a time, and the checkpointer between them. Times are in milliseconds.
struct Simulation {
    frames_per_ms: f64,
    /// The time between two writes that are not delayed.
    period: f64,
    now: f64,
    next_write: f64,
    /// When the next write may begin, by the delays.
    allowed: Duration,
    frames: u32,
    copied: u32,
    policy: Policy,
    began: Instant,
    last_write: f64,
    outcome: Outcome,
    /// When the pass began that runs, and its frames.
    pass: (f64, u32),
    /// For so long the disk stands still in the next pass.
    stands_still: f64,
}

#[derive(Debug, Default)]
struct Outcome {
    longest_wal: u32,
    longest_delay: f64,
    longest_pause: f64,
    written: u32,
    delayed: u32,
    restarts: u32,
}

const WRITE: u32 = 3;

/// What is owed, and the delay of one write, in milliseconds.
const LONGEST_WAIT: f64 = 13.0;

impl Simulation {
    fn new(frames_per_ms: f64, load: f64) -> Self {
        Self {
            frames_per_ms,
            period: f64::from(WRITE) / (frames_per_ms * load),
            now: 0.0,
            next_write: 0.0,
            allowed: Duration::ZERO,
            frames: 1,
            copied: 0,
            policy: Policy::new(SOFT),
            began: Instant::now(),
            last_write: 0.0,
            pass: (0.0, 0),
            stands_still: 0.0,
            outcome: Outcome::default(),
        }
    }

    fn pace(&self) -> Pace {
        let (began, frames) = self.pass;
        let runs = Duration::from_secs_f64((self.now - began).max(0.0) / 1e3);
        Pace { soft: SOFT, hard: HARD, frame: frame_now(self.policy.frame(), frames, runs) }
    }

    /// A sync takes as long as writing this many frames.
    fn sync(&self) -> f64 {
        100.0 / self.frames_per_ms
    }

    fn at(&self) -> Instant {
        self.began + Duration::from_secs_f64(self.now / 1e3)
    }

    /// Lets the writer write for so long, or until the WAL has `until` frames.
    fn goes_on(&mut self, ms: f64, until: u32) {
        let end = self.now + ms;
        while self.next_write <= end && self.frames < until {
            self.now = self.next_write;
            self.last_write = self.now;
            self.frames += WRITE;
            let pace = self.pace();
            let now = Duration::from_secs_f64(self.now / 1e3);
            self.allowed = after(self.allowed, now, pace.delay(WRITE, self.frames));
            let pause = worth_a_pause(self.allowed - now).map_or(0.0, |pause| pause.as_secs_f64() * 1e3);
            self.next_write = self.now + self.period.max(pause);
            self.outcome.written += WRITE;
            self.outcome.delayed += u32::from(pause > self.period);
            self.outcome.longest_delay = self.outcome.longest_delay.max(pause);
            self.outcome.longest_wal = self.outcome.longest_wal.max(self.frames);
        }
        if self.frames < until {
            self.now = end;
        }
    }

    /// A PASSIVE checkpoint and a sync. Returns the frames that it copied, and its time.
    fn passive(&mut self) -> (u32, f64) {
        let (from, to) = (self.copied, self.frames);
        let took = f64::from(to - from) / self.frames_per_ms + 2.0 * self.sync() + self.stands_still;
        self.stands_still = 0.0;
        self.pass = (self.now, to - from);
        self.goes_on(took, u32::MAX);
        self.pass.1 = 0;
        self.copied = to;
        self.policy.disk_took(to - from, Duration::from_secs_f64(took / 1e3));
        (to - from, took)
    }

    fn restart(&mut self) {
        let began = self.now;
        for pass in 1..=64 {
            let (copied, took) = self.passive();
            let is_last = pass >= 8 && is_short(self.frames - self.copied, self.policy.frame());
            if is_last || copied < 100 || took < 3.0 {
                break;
            }
        }
        let pause = f64::from(self.frames - self.copied) / self.frames_per_ms + self.sync();
        self.outcome.longest_pause = self.outcome.longest_pause.max(pause);
        self.now += pause;
        self.next_write = self.next_write.max(self.now);
        (self.frames, self.copied) = (1, 0);
        self.outcome.restarts += 1;
        let took = Duration::from_secs_f64((self.now - began) / 1e3);
        self.policy.was_restarted(took, self.at());
    }

    fn run(&mut self, ms: f64) -> &Outcome {
        let end = self.now + ms;
        self.outcome = Outcome::default();
        while self.now < end {
            let idle = Duration::from_secs_f64((self.now - self.last_write) / 1e3);
            let disk = Disk { wal: self.frames, database: 0, free: u32::MAX };
            let seen = Observed { frames: self.frames, copied: self.copied, idle, disk, beside_litestream: false };
            self.policy.saw(&seen, self.at());
            match self.policy.next(&seen, self.at()) {
                Step::Rest(time) => {
                    let until = self.policy.wake_at(&seen, self.at());
                    self.goes_on(time.as_secs_f64() * 1e3, until);
                }
                Step::Checkpoint => {
                    let (frames, took) = self.passive();
                    let time = Duration::from_secs_f64(took / 1e3);
                    self.policy.checkpointed(frames, self.frames - self.copied, time, self.at());
                }
                _ => self.restart(),
            }
        }
        &self.outcome
    }
}

#[test]
fn the_wal_of_a_writer_that_is_faster_than_the_disk_stays_below_its_hard_limit() {
    for frames_per_ms in [3.0, 25.0, 200.0] {
        for (load, bound) in [(0.5, 2.0), (1.0, 8.0), (1.5, 8.0), (2.0, 8.0), (20.0, 8.0)] {
            let mut simulation = Simulation::new(frames_per_ms, load);
            let outcome = simulation.run(60_000.0);
            assert!(f64::from(outcome.longest_wal) <= bound * f64::from(SOFT), "{frames_per_ms} {load}: {outcome:?}");
            assert!(
                outcome.longest_delay <= LONGEST_WAIT && outcome.restarts > 2,
                "{frames_per_ms} {load}: {outcome:?}"
            );
            // What is copied, and a sync, which takes as long as 100 frames.
            let bound =
                (f64::from(SHORT_FRAMES) / frames_per_ms).max(SHORT.as_secs_f64() * 1e3) + 200.0 / frames_per_ms;
            assert!(outcome.longest_pause < bound, "{frames_per_ms} {load}: {bound}: {outcome:?}");
            let rate = f64::from(outcome.written) / 60_000.0 / frames_per_ms;
            assert!(rate > 0.8 * load.min(0.9), "{frames_per_ms} {load}: {rate}: {outcome:?}");
            let share = f64::from(outcome.delayed * WRITE) / f64::from(outcome.written);
            assert!(load > 0.5 || share < 0.1, "{frames_per_ms} {load}: {share}: {outcome:?}");
        }
    }
}

#[test]
fn the_delays_follow_a_disk_whose_rate_changes() {
    let mut simulation = Simulation::new(50.0, 1.0);
    simulation.run(10_000.0);
    for frames_per_ms in [10.0, 100.0, 5.0, 50.0] {
        simulation.frames_per_ms = frames_per_ms;
        simulation.run(5000.0);
        let outcome = simulation.run(20_000.0);
        assert!(outcome.longest_wal < HARD, "{frames_per_ms}: {outcome:?}");
        assert!(outcome.longest_delay <= LONGEST_WAIT, "{frames_per_ms}: {outcome:?}");
        let share = f64::from(outcome.delayed * WRITE) / f64::from(outcome.written);
        assert!(frames_per_ms < 100.0 || share < 0.1, "{frames_per_ms}: {outcome:?}");
    }
}

/// The pass that runs is the only one who knows.
#[test]
fn the_wal_stays_below_its_hard_limit_while_the_disk_stands_still_for_three_seconds() {
    for frames_per_ms in [5.0, 50.0, 250.0] {
        for load in [0.5, 1.0, 2.0] {
            let mut simulation = Simulation::new(frames_per_ms, load);
            simulation.run(5000.0);
            for _ in 0..5 {
                simulation.stands_still = 3000.0;
                let outcome = simulation.run(10_000.0);
                assert!(outcome.longest_wal < HARD, "{frames_per_ms} {load}: {outcome:?}");
            }
        }
    }
}
