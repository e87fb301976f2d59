//! The turn of this process: how long it lasts, when the next one in line is called ahead, and whether it is kept from one slot to
//! the next although no request waits. The caller that was answered last may write again at once, or not for long.
//!
//! Owns: these decisions, by what the turn has served and what came of earlier holds (pure); what has become of the ticket; keeping
//! the turn, on the thread that releases the slot, and its end if nothing comes, on the writer's thread. Does not block.
//! Invariants: while a turn is kept the writer's thread wakes to end it, or is told that it has to; the queue's lock is not taken
//! under that of the ticket, for the writer's thread takes that one under the queue's. Leaves out: waiting for the turn and passing
//! it on (`line`).

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use flatwater_sqlite::TurnFile;

use super::{Turnstile, line};
use flatwater_base::thread::lock;

/// A turn serves one slot after the other for so long, while others wait.
const QUANTUM: Duration = Duration::from_millis(1);
/// A turn is kept for so long after its first slot: the caller that was just answered may write again.
pub(super) const HOLD: Duration = Duration::from_micros(150);
/// The next one in line is called so long before the turn is over, at least: in which its thread wakes.
const AHEAD: Duration = Duration::from_micros(100);

/// The turn of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Turn {
    since: Instant,
    /// When its last slot was released.
    used: Instant,
    /// The slots that it has served.
    slots: u32,
    /// A round runs in it.
    pub(super) is_running: bool,
    /// The next one in line was called.
    has_called: bool,
}

/// What becomes of a turn that is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rest {
    /// It is held on.
    Held,
    /// What runs in it has outlasted it. It is kept for no other slot.
    Outlasted,
    /// It is over.
    Over {
        /// Nothing came at all.
        in_vain: bool,
    },
}

impl Turn {
    pub(super) fn begin(now: Instant) -> Self {
        Self { since: now, used: now, slots: 0, is_running: false, has_called: false }
    }

    /// Returns true if it has not lasted for too long.
    pub(super) fn may_go_on(&self, now: Instant) -> bool {
        self.age(now) < QUANTUM
    }

    /// Asked when a slot begins. Returns true, once, if it is probably the last one: if the next one began as long after it as
    /// each one before it did, the turn would be over.
    pub(super) fn calls_next(&mut self, now: Instant) -> bool {
        let each = self.age(now) / self.slots.max(1);
        let is_last = !self.may_go_on(now + each.max(AHEAD));
        is_last && !std::mem::replace(&mut self.has_called, true)
    }

    fn age(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.since)
    }

    /// Asked when nothing came for a while.
    pub(super) fn rests(&self, now: Instant) -> Rest {
        let may_go_on = self.may_go_on(now);
        match self.is_running {
            true if may_go_on => Rest::Held,
            // It may be a transaction, and last.
            true => Rest::Outlasted,
            false if may_go_on && now.saturating_duration_since(self.used) < HOLD => Rest::Held,
            false => Rest::Over { in_vain: self.slots == 1 },
        }
    }

    /// Returns after how long to ask that. From its second slot on, a turn is its caller's until it is over: each look before
    /// that would take the processor from somebody, in vain where a caller writes in a loop.
    pub(super) fn rests_in(&self, now: Instant) -> Duration {
        let is_used = self.is_running || self.slots > 1;
        if is_used { QUANTUM.saturating_sub(self.age(now)).max(HOLD) } else { HOLD }
    }

    /// Notes that a slot was released.
    pub(super) fn has_served(&mut self, now: Instant) {
        (self.used, self.slots, self.is_running) = (now, self.slots.saturating_add(1), false);
    }
}

/// The ticket of this process.
#[derive(Debug, Clone)]
pub(super) struct Ticket {
    /// In which it was drawn. There may be another one at its path by now.
    pub(super) file: Arc<TurnFile>,
    pub(super) number: u32,
    pub(super) stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// It waits for its turn, and has not got the lock.
    InLine,
    /// It waits, and tries the lock once.
    Tries,
    Turn(Turn),
}

impl Ticket {
    pub(super) fn has_turn(&self) -> bool {
        matches!(self.stage, Stage::Turn(_))
    }

    /// Returns true if it is its turn, and not for too long.
    pub(super) fn may_go_on(&self, now: Instant) -> bool {
        matches!(self.stage, Stage::Turn(turn) if turn.may_go_on(now))
    }

    /// Called when a slot begins. If it is the turn's last one, as far as can be told, the next one in line is called.
    pub(super) fn begins_slot(&mut self, now: Instant) {
        if let Stage::Turn(turn) = &mut self.stage
            && turn.calls_next(now)
        {
            line::call(&*self.file, self.number);
        }
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    /// Serves slots of this length, with this pause after each. Returns when the next one was called, and when the turn was
    /// over, in microseconds.
    fn serves(slot: u64, pause: u64) -> (Option<u64>, u64) {
        let began = Instant::now();
        let at = |micros| began + Duration::from_micros(micros);
        let (mut turn, mut called, mut now) = (Turn::begin(began), None, 0);
        while turn.may_go_on(at(now)) {
            if turn.calls_next(at(now)) {
                assert_eq!(called.replace(now), None, "it is called once");
            }
            now += slot;
            turn.has_served(at(now));
            if turn.may_go_on(at(now)) {
                now += pause;
            }
        }
        (called, now)
    }

    #[test]
    fn the_next_one_is_called_when_the_last_slot_begins() {
        assert_eq!(serves(230, 0), (Some(920), 1150));
        assert_eq!(serves(260, 80), (Some(680), 1020));
        assert_eq!(serves(600, 10), (Some(610), 1210));
    }

    #[test]
    fn of_many_short_slots_it_is_called_in_time_to_wake() {
        assert_eq!(serves(15, 0), (Some(900), 1005));
        assert_eq!(serves(6, 4), (Some(900), 1000));
    }

    #[test]
    fn nobody_is_called_in_the_first_slot_of_a_turn() {
        assert_eq!(serves(5000, 0), (None, 5000));
    }

    #[test]
    fn a_turn_is_held_for_a_while_after_a_slot_and_while_one_runs_until_the_quantum_is_over() {
        let began = Instant::now();
        let at = |micros| began + Duration::from_micros(micros);
        let mut turn = Turn::begin(began);
        turn.has_served(at(200));
        assert_eq!((turn.rests(at(349)), turn.rests(at(350))), (Rest::Held, Rest::Over { in_vain: true }));
        assert_eq!(turn.rests_in(at(200)), HOLD);
        turn.is_running = true;
        assert_eq!(turn.rests_in(at(350)), Duration::from_micros(650));
        assert_eq!((turn.rests(at(999)), turn.rests(at(1000))), (Rest::Held, Rest::Outlasted));
        turn.has_served(at(900));
        assert_eq!((turn.rests_in(at(700)), turn.rests_in(at(900))), (Duration::from_micros(300), HOLD));
        assert_eq!((turn.rests(at(999)), turn.rests(at(1000))), (Rest::Held, Rest::Over { in_vain: false }));
    }
}

#[cfg(all(test, target_os = "linux", not(flatwater_loom)))]
mod kept_tests {
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
