//! The ticket of this process: where it was drawn, and what has become of it.
//!
//! Owns: these values. Leaves out: how long a turn lasts (`turn`), waiting for it, and passing it on (`line`).

use std::sync::Arc;
use std::time::Instant;

use flatwater_sqlite::TurnFile;

use super::line;
use super::turn::Turn;

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
