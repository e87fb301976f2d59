//! A plan: which system calls fail, on which files, how, and when.
//!
//! The numbers are those of the preloaded library (`torture/faults`), which receives a plan in a path that is opened.

use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use serde::{Deserialize, Serialize};

use crate::faults::{Order, When};

/// The kind of a call.
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

/// The effect on a selected call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Effect {
    Eintr,
    Eio,
    Enomem,
    Emfile,
    Enospc,
    /// Only half of the bytes are processed.
    Short,
    /// The call is delayed by 20 ms.
    Late,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Plan {
    pub(super) calls: Vec<Call>,
    pub(super) files: Vec<File>,
    pub(super) effect: Effect,
    pub(super) when: When,
}

/// The maximum number of calls that are delayed or interrupted. If every call were delayed, a load would take minutes;
/// and a call that is always interrupted would be repeated forever.
const MOST_TRIED_AGAIN: u64 = 60;
const MOST: u64 = 1_000_000;

/// A call, the files on which it is made, how it may fail, and whether a load makes hundreds of them.
struct Known {
    call: Call,
    files: &'static [File],
    effects: &'static [Effect],
    is_frequent: bool,
}

use Effect::{Eintr, Eio, Emfile, Enomem, Enospc, Late, Short};
use File::{Directory, Main, MainShm, MainWal, Other, OtherShm, OtherWal};

const ALL: &[File] = &[Main, MainWal, MainShm, Other, OtherWal, OtherShm, Directory];
const DATA: &[File] = &[Main, MainWal, MainWal, MainShm, Other, OtherWal];
const SYNCED: &[File] = &[Main, MainWal, Other, OtherWal, Directory];
const MAPPED: &[File] = &[Main, MainShm, OtherShm];
const LOCKED: &[File] = &[Main, MainShm, MainShm, Other, OtherShm];
const REMOVED: &[File] = &[MainWal, MainShm, OtherWal, OtherShm];

const CALLS: &[Known] = &[
    Known { call: Call::Open, files: ALL, effects: &[Emfile, Eio, Enospc, Eintr, Late], is_frequent: false },
    Known { call: Call::Read, files: DATA, effects: &[Eio, Eio, Short, Eintr, Late], is_frequent: true },
    Known { call: Call::Write, files: DATA, effects: &[Eio, Enospc, Enospc, Short, Eintr, Late], is_frequent: true },
    Known { call: Call::Sync, files: SYNCED, effects: &[Eio, Eio, Enospc, Late], is_frequent: false },
    Known { call: Call::Truncate, files: DATA, effects: &[Eio, Enospc, Eintr, Late], is_frequent: false },
    Known { call: Call::Map, files: MAPPED, effects: &[Enomem, Emfile, Eio, Late], is_frequent: false },
    Known { call: Call::Lock, files: LOCKED, effects: &[Eio, Eintr, Enomem, Late], is_frequent: true },
    Known { call: Call::Unlock, files: LOCKED, effects: &[Late], is_frequent: true },
    Known { call: Call::Close, files: ALL, effects: &[Eio, Enospc, Eintr, Late], is_frequent: false },
    Known { call: Call::Unlink, files: REMOVED, effects: &[Eio, Enospc, Late], is_frequent: false },
];

impl Plan {
    /// Returns a random plan.
    pub(super) fn random(rng: &mut StdRng) -> Self {
        let known = CALLS.choose(rng).expect("there are calls");
        let effect = *known.effects.choose(rng).expect("each fails somehow");
        let files = if rng.random_ratio(1, 4) { ALL.to_vec() } else { vec![*known.files.choose(rng).expect("files")] };
        let step = known.step(rng);
        let when = match rng.random_range(0..6) {
            0 | 1 => When::Once(step),
            2 | 3 => When::Every(step.min(100)),
            4 => When::OneIn(step.min(100), rng.random_range(0..1_000_000)),
            _ => When::From(step, rng.random_range(2..40)),
        };
        let calls = if rng.random_ratio(1, 8) {
            vec![Call::Open, Call::Read, Call::Write, known.call]
        } else {
            vec![known.call]
        };
        Self { calls, files, effect, when }
    }

    /// Returns a plan in which one call of one kind on one file fails. `next` selects the call after it.
    pub(super) fn once(rng: &mut StdRng) -> Self {
        let failing: Vec<_> = CALLS.iter().filter(|known| known.effects.iter().any(|effect| *effect != Late)).collect();
        let known = failing.choose(rng).expect("calls fail");
        let effects: Vec<_> = known.effects.iter().filter(|effect| **effect != Late).collect();
        Self {
            calls: vec![known.call],
            files: vec![*known.files.choose(rng).expect("files")],
            effect: **effects.choose(rng).expect("effects"),
            when: When::Once(known.step(rng)),
        }
    }

    /// Returns the same plan for the next call.
    pub(super) fn next(&self) -> Self {
        let When::Once(number) = self.when else { return self.clone() };
        Self { when: When::Once(number + 1), ..self.clone() }
    }

    /// Returns whether at most one call fails.
    pub(super) fn is_once(&self) -> bool {
        matches!(self.when, When::Once(_))
    }

    /// Returns whether no caller may notice the plan: calls are only delayed, or interrupted or cut short where SQLite
    /// has to repeat them.
    pub(super) fn is_unnoticed(&self) -> bool {
        let tries_again = |call: &Call| matches!(call, Call::Open | Call::Read | Call::Write | Call::Truncate);
        match self.effect {
            Effect::Late => true,
            Effect::Short => self.calls.iter().all(|call| matches!(call, Call::Read | Call::Write)),
            Effect::Eintr => self.calls.iter().all(tries_again),
            _ => false,
        }
    }

    /// Returns whether reads of the attached file fail.
    pub(super) fn fails_reads_of_other(&self) -> bool {
        self.calls.contains(&Call::Read) && self.files.iter().any(|file| matches!(file, Other | OtherWal))
    }

    /// Returns what the library is to do.
    pub(super) fn order(&self) -> Order {
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
        let most = if matches!(self.effect, Effect::Late | Effect::Eintr) { MOST_TRIED_AGAIN } else { MOST };
        Order { calls, files, effect, when: self.when, most }
    }
}

impl Known {
    /// Returns the number of a call, most often a small one.
    fn step(&self, rng: &mut StdRng) -> u64 {
        let doubled = rng.random_range(0..if self.is_frequent { 9 } else { 5 });
        rng.random_range(1 << doubled..=2 << doubled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_becomes_the_numbers_that_the_library_reads() {
        let plan =
            Plan { calls: vec![Call::Read, Call::Sync], files: vec![MainWal], effect: Enospc, when: When::Every(7) };
        assert_eq!(plan.order().path(), "/flatwater-torture/arm/10/2/28/1/7/1000000/0");
        let late = Plan { effect: Late, when: When::From(3, 9), files: vec![Directory], ..plan };
        assert_eq!(late.order().path(), "/flatwater-torture/arm/10/256/1002/3/3/9/0");
    }

    #[test]
    fn what_is_tried_again_is_not_to_be_noticed_and_a_failed_sync_is() {
        let plan = |call, effect| Plan { calls: vec![call], files: vec![Main], effect, when: When::Once(1) };
        for (call, effect) in [(Call::Read, Short), (Call::Write, Eintr), (Call::Sync, Late)] {
            assert!(plan(call, effect).is_unnoticed(), "{call:?} {effect:?}");
        }
        for (call, effect) in [(Call::Read, Eio), (Call::Sync, Eintr), (Call::Write, Enospc)] {
            assert!(!plan(call, effect).is_unnoticed(), "{call:?} {effect:?}");
        }
    }
}
