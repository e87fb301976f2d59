//! A turn that is kept from one slot to the next.
//!
//! Owns: whether it is kept, on the thread that releases the slot, and its end if nothing comes, on the writer's thread. Does
//! not block. Invariants: while a turn is kept the writer's thread wakes to end it, or is told that it has to; the queue's
//! lock is not taken under that of the ticket, for the writer's thread takes that one under the queue's. Leaves out: how long a
//! turn lasts and is held (`turn`), and for which callers (`holds`).

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::turn::{HOLD, Rest};
use super::turn_ticket::{Stage, Ticket};
use super::{Turnstile, lock};

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

#[cfg(all(test, target_os = "linux", not(flatwater_loom)))]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::options::Options;

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
}
