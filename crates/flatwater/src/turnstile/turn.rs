//! How long a turn lasts and is held, when the next one in line is called ahead, and the ticket of this process.
//!
//! Owns: these decisions, by what the turn has served so far (pure), and what has become of the ticket. Leaves out:
//! waiting for it and passing it on (`line`), and whether a turn is held at all when no request waits (`kept`).

use std::sync::Arc;
use std::time::{Duration, Instant};

use flatwater_sqlite::TurnFile;

use super::line;

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
