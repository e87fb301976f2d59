//! A case: which starts of threads fail, and the load under which they do. A finding names it.

use rand::RngExt;
use rand::rngs::StdRng;
use serde::{Deserialize, Serialize};

use crate::faults::{Order, When};

/// The bits of the library for the start of a thread, and for the process, which counts as its file.
const START: u64 = 1 << 10;
const PROCESS: u64 = 1 << 9;
const EAGAIN: u64 = 11;
const MOST: u64 = 1_000_000;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Case {
    /// Which starts fail.
    pub(super) when: When,
    /// The seed of the load's random numbers.
    pub(super) seed: u64,
    pub(super) steps: u32,
    pub(super) readers: usize,
    pub(super) in_memory: bool,
    /// Whether all places are taken where a thread may wait for more work, so that each request starts one.
    pub(super) takes_places: bool,
    /// Whether the timer's thread is started before starts fail. If not, there is no check for leftovers, since that
    /// thread ends only seconds after its last alarm.
    pub(super) has_timer: bool,
    /// Whether starts already fail during the open, not only after it.
    pub(super) while_opening: bool,
    /// Whether no call may run on its caller's thread.
    pub(super) never_inline: bool,
}

impl Case {
    pub(super) fn random(rng: &mut StdRng) -> Self {
        let when = match rng.random_range(0..8) {
            0..3 => When::Once(rng.random_range(1..=12)),
            3 | 4 => When::Every(rng.random_range(1..=4)),
            5 => When::OneIn(rng.random_range(2..=4), rng.random_range(0..1_000_000)),
            _ => When::From(rng.random_range(1..=10), rng.random_range(2..=30)),
        };
        Self {
            when,
            seed: rng.random_range(0..1_000_000_000),
            steps: rng.random_range(5..60),
            readers: rng.random_range(1..=3),
            in_memory: rng.random_bool(0.15),
            takes_places: rng.random_bool(0.6),
            has_timer: rng.random_bool(0.6),
            while_opening: rng.random_bool(0.4),
            never_inline: rng.random_bool(0.5),
        }
    }

    /// Returns a case in which no thread can be started at all after the open.
    pub(super) fn every(rng: &mut StdRng) -> Self {
        let case = Self::random(rng);
        Self {
            when: When::Every(1),
            in_memory: false,
            takes_places: true,
            while_opening: false,
            never_inline: true,
            ..case
        }
    }

    /// Returns what the library is to do.
    pub(super) fn order(&self) -> Order {
        Order { calls: START, files: PROCESS, effect: EAGAIN, when: self.when, most: MOST }
    }
}
