//! A turn that is kept from one slot to the next, and whether one is held when no request waits: the caller that was
//! answered last may write again at once, or not for long.
//!
//! Owns: whether it is kept, on the thread that releases the slot, and its end if nothing comes, on the writer's
//! thread; and the decision to hold, by what came of earlier holds (pure). Does not block. Invariants: while a turn is
//! kept the writer's thread wakes to end it, or is told that it has to; the queue's lock is not taken under that of the
//! ticket, for the writer's thread takes that one under the queue's. Leaves out: how long a turn lasts and is held
//! (`turn`).

use super::Turnstile;
use super::turn::{HOLD, Rest};
use super::turn::{Stage, Ticket};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::thread::lock;

/// What became of the turn when a slot was released.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeftTurn {
    /// There was none, or it goes on.
    Same,
    Over,
    /// It is kept for the next slot from now on. The writer's thread is to be told, which ends it.
    Kept,
}

impl Turnstile {
    /// Called when the slot is released: ends the turn, or keeps it for the next slot. The place in line of a request that
    /// waits no more is that of the next one, if there are more.
    pub(crate) fn left_slot(&self, is_writers_thread: bool, are_more: impl FnOnce() -> bool) -> LeftTurn {
        if !self.has_ticket.load(Ordering::Relaxed) {
            return LeftTurn::Same;
        }
        // It takes the queue's lock.
        let are_more = are_more();
        let now = Instant::now();
        let was_kept = self.is_kept();
        let mut mine = self.mine();
        let stays = match mine.as_mut() {
            Some(Ticket { stage: Stage::InLine, .. }) => are_more,
            Some(ticket) if ticket.may_go_on(now) => self.keeps(ticket, are_more, now),
            _ => false,
        };
        drop(mine);
        if !stays {
            self.pass();
            return LeftTurn::Over;
        }
        if is_writers_thread || was_kept || !self.is_kept() { LeftTurn::Same } else { LeftTurn::Kept }
    }

    /// Decides whether a turn is kept for the next slot.
    fn keeps(&self, ticket: &mut Ticket, are_more: bool, now: Instant) -> bool {
        let Stage::Turn(turn) = &mut ticket.stage else { return false };
        turn.has_served(now);
        if self.is_kept() {
            lock(&self.holds).was(true);
            return true;
        }
        let is_kept = are_more || lock(&self.holds).is_worth_it();
        self.is_kept.store(is_kept, Ordering::Relaxed);
        is_kept
    }

    /// Returns true while a turn is kept: then the writer's thread may not sleep for longer than `rests_in` says.
    pub(crate) fn is_kept(&self) -> bool {
        self.is_kept.load(Ordering::Relaxed)
    }

    /// While a turn is kept, returns after how long the writer's thread is to call `rests`.
    pub(crate) fn rests_in(&self) -> Option<Duration> {
        if !self.is_kept() {
            return None;
        }
        match &*self.mine() {
            Some(Ticket { stage: Stage::Turn(turn), .. }) => Some(turn.rests_in(Instant::now())),
            _ => Some(HOLD),
        }
    }

    /// Called by the writer's thread when nothing came in that time: passes the turn on, unless it was used meanwhile. Returns
    /// false if there is none.
    pub(crate) fn rests(&self) -> bool {
        if !self.is_kept() {
            return false;
        }
        let Some(Ticket { stage: Stage::Turn(turn), .. }) = self.mine().clone() else { return true };
        match turn.rests(Instant::now()) {
            Rest::Held => {}
            Rest::Outlasted => self.is_kept.store(false, Ordering::Relaxed),
            Rest::Over { in_vain } => {
                if in_vain {
                    lock(&self.holds).was(false);
                }
                self.pass();
            }
        }
        true
    }
}

/// After two holds in a row in which nothing came, the next turn is not held, after three of them the next three, and so on up
/// to `2^(MOST_IN_VAIN - 1) - 1`. A single one says little: a caller that writes in a loop may be late once.
const MOST_IN_VAIN: u32 = 7;

/// Whether it is worth holding a turn when no request waits.
#[derive(Debug, Default)]
pub(super) struct Holds {
    /// How many in a row were in vain.
    in_vain: u32,
    /// The turns that are not held yet.
    skips: u32,
}

impl Holds {
    pub(super) fn is_worth_it(&mut self) -> bool {
        let skipped = self.skips;
        self.skips = skipped.saturating_sub(1);
        skipped == 0
    }

    pub(super) fn was(&mut self, used: bool) {
        self.in_vain = if used { 0 } else { (self.in_vain + 1).min(MOST_IN_VAIN) };
        self.skips = (1 << self.in_vain.saturating_sub(1)) - 1;
    }
}

#[cfg(all(test, target_os = "linux", not(flatwater_loom)))]
mod tests {
    use super::*;
    use crate::options::Options;
    use std::sync::Arc;

    #[test]
    fn who_asks_the_queue_holds_no_lock_of_the_turnstile() {
        let folder = tempfile::tempdir().unwrap();
        let turnstile = Turnstile::of(&Options::new(folder.path().join("x.db")), &Arc::default()).unwrap();
        turnstile.has_ticket.store(true, Ordering::Relaxed);
        let mut is_free = None;
        let are_more = || *is_free.insert(turnstile.mine.try_lock().is_ok());
        assert_eq!(turnstile.left_slot(false, are_more), LeftTurn::Over);
        assert_eq!(is_free, Some(true));
    }

    #[test]
    fn holds_in_vain_become_rare_and_one_that_is_used_makes_them_the_rule() {
        let mut holds = Holds::default();
        let mut until_the_next = || (0..).take_while(|_| !holds.is_worth_it()).count();
        assert_eq!(until_the_next(), 0);
        let after = |holds: &mut Holds, used| {
            holds.was(used);
            (0..).take_while(|_| !holds.is_worth_it()).count()
        };
        let skipped: Vec<_> = (0..8).map(|_| after(&mut holds, false)).collect();
        assert_eq!(skipped, [0, 1, 3, 7, 15, 31, 63, 63]);
        assert_eq!(after(&mut holds, true), 0);
    }
}
