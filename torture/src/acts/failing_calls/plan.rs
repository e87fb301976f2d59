//! A plan: which calls of the system fail, on which files, how, and when.
//!
//! The numbers are those of the preloaded library (`torture/faults`), which reads a plan from a path that is opened.

use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use serde::{Deserialize, Serialize};

/// What sort of call it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Call {
    Open,
    Read,
    Write,
    Sync,
    Truncate,
    Map,
    Lock,
    Unlock,
    Close,
    Unlink,
}

/// A file of the round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum File {
    Main,
    MainWal,
    MainShm,
    MainJournal,
    Other,
    OtherWal,
    OtherShm,
    OtherJournal,
    Directory,
}

/// What becomes of a call that is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Effect {
    Eintr,
    Eio,
    Enomem,
    Emfile,
    Enospc,
    /// Half of the bytes.
    Short,
    /// 20 ms later.
    Late,
}

/// Which of the calls that the plan counts are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum When {
    /// This one, counted from 1 on.
    Once(u64),
    /// Each whose number is a multiple of it.
    Every(u64),
    /// One in so many, at random.
    OneIn(u64, u64),
    /// So many, from this one on.
    From(u64, u64),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Plan {
    pub(super) calls: Vec<Call>,
    pub(super) files: Vec<File>,
    pub(super) effect: Effect,
    pub(super) when: When,
}

/// With every call late, a load would take minutes.
const MOST_LATE: u64 = 60;
const MOST: u64 = 1_000_000;

const MAIN: &[File] = &[File::Main, File::MainWal, File::MainShm];
const OTHER: &[File] = &[File::Other, File::OtherWal, File::OtherShm];
const EVERYTHING: &[File] = &[
    File::Main,
    File::MainWal,
    File::MainShm,
    File::MainJournal,
    File::Other,
    File::OtherWal,
    File::OtherShm,
    File::OtherJournal,
    File::Directory,
];

/// The calls, and how each may fail.
const CALLS: &[(Call, &[Effect])] = &[
    (Call::Open, &[Effect::Emfile, Effect::Eio, Effect::Enospc, Effect::Eintr, Effect::Late]),
    (Call::Read, &[Effect::Eio, Effect::Eio, Effect::Short, Effect::Eintr, Effect::Late]),
    (Call::Write, &[Effect::Eio, Effect::Enospc, Effect::Enospc, Effect::Short, Effect::Eintr, Effect::Late]),
    (Call::Sync, &[Effect::Eio, Effect::Eio, Effect::Enospc, Effect::Late]),
    (Call::Truncate, &[Effect::Eio, Effect::Enospc, Effect::Eintr, Effect::Late]),
    (Call::Map, &[Effect::Enomem, Effect::Emfile, Effect::Eio, Effect::Late]),
    (Call::Lock, &[Effect::Eio, Effect::Eintr, Effect::Enomem, Effect::Late]),
    (Call::Unlock, &[Effect::Late]),
    (Call::Close, &[Effect::Eio, Effect::Enospc, Effect::Eintr, Effect::Late]),
    (Call::Unlink, &[Effect::Eio, Effect::Enospc, Effect::Late]),
];

impl Plan {
    /// Any of them.
    pub(super) fn random(rng: &mut StdRng) -> Self {
        let (call, effects) = *CALLS.choose(rng).expect("there are calls");
        let effect = *effects.choose(rng).expect("each fails somehow");
        let files = match rng.random_range(0..6) {
            0 => EVERYTHING.to_vec(),
            1 => MAIN.to_vec(),
            2 => OTHER.to_vec(),
            _ => vec![*EVERYTHING.choose(rng).expect("there are files")],
        };
        let step = 1 << rng.random_range(0..9);
        let step = rng.random_range(step..=2 * step);
        let when = match rng.random_range(0..6) {
            0 | 1 => When::Once(step),
            2 | 3 => When::Every(step.min(100)),
            4 => When::OneIn(step.min(100), rng.random_range(0..1_000_000)),
            _ => When::From(step, rng.random_range(2..40)),
        };
        let calls = if rng.random_ratio(1, 8) { vec![Call::Open, Call::Read, Call::Write, call] } else { vec![call] };
        Self { calls, files, effect, when }
    }

    /// One call of one kind on one file fails: the next of these fails the next call.
    pub(super) fn once(rng: &mut StdRng) -> Self {
        let files =
            [File::Main, File::MainWal, File::MainWal, File::MainShm, File::Other, File::OtherWal, File::OtherShm];
        let (call, effects) = CALLS
            .iter()
            .filter(|(call, _)| *call != Call::Unlock)
            .collect::<Vec<_>>()
            .choose(rng)
            .expect("there are calls");
        let failing: Vec<_> = effects.iter().filter(|effect| **effect != Effect::Late).collect();
        Self {
            calls: vec![*call],
            files: vec![*files.choose(rng).expect("there are files")],
            effect: **failing.choose(rng).expect("each fails somehow"),
            when: When::Once(1 << rng.random_range(0..6)),
        }
    }

    /// The same for the next call.
    pub(super) fn next(&self) -> Self {
        let When::Once(number) = self.when else { return self.clone() };
        Self { when: When::Once(number + 1), ..self.clone() }
    }

    /// Whether at most one call fails.
    pub(super) fn is_once(&self) -> bool {
        matches!(self.when, When::Once(_))
    }

    /// Whether nobody may notice: a call that is late, or is interrupted or cut short where the rest is to be tried.
    pub(super) fn is_unnoticed(&self) -> bool {
        let tries_again = |call: &Call| matches!(call, Call::Open | Call::Read | Call::Write | Call::Truncate);
        match self.effect {
            Effect::Late => true,
            Effect::Short => self.calls.iter().all(|call| matches!(call, Call::Read | Call::Write)),
            Effect::Eintr => self.calls.iter().all(tries_again),
            _ => false,
        }
    }

    /// The path that arms the library with this plan.
    pub(super) fn path(&self) -> String {
        let calls = self.calls.iter().fold(0, |bits, call| bits | 1_u64 << *call as u64);
        let files = self.files.iter().fold(0, |bits, file| bits | 1_u64 << *file as u64);
        let effect = match self.effect {
            Effect::Eintr => 4,
            Effect::Eio => 5,
            Effect::Enomem => 12,
            Effect::Emfile => 24,
            Effect::Enospc => 28,
            Effect::Short => 1001,
            Effect::Late => 1002,
        };
        let most = if self.effect == Effect::Late { MOST_LATE } else { MOST };
        let (when, step, most, seed) = match self.when {
            When::Once(number) => (0, number, 1, 0),
            When::Every(step) => (1, step, most, 0),
            When::OneIn(step, seed) => (2, step, most, seed),
            When::From(number, count) => (3, number, count.min(most), 0),
        };
        format!("/flatwater-torture/arm/{calls}/{files}/{effect}/{when}/{step}/{most}/{seed}")
    }
}
