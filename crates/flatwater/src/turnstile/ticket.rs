//! The ticket of this process: where it was drawn, and what has become of it.
//!
//! Owns: how long a turn lasts. Plain values. Leaves out: waiting for the turn, and passing it on (`line`).

use std::sync::Arc;
use std::time::{Duration, Instant};

use flatwater_sqlite::TurnFile;

/// A turn serves one slot after the other for so long, while others wait.
const QUANTUM: Duration = Duration::from_millis(1);

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
    Turn {
        since: Instant,
        used: Instant,
        /// The slots that it has served.
        slots: u32,
        /// A round runs in it.
        is_running: bool,
    },
}

impl Ticket {
    /// Returns true if it is its turn, and not for too long.
    pub(super) fn may_go_on(&self, now: Instant) -> bool {
        matches!(self.stage, Stage::Turn { since, .. } if now.saturating_duration_since(since) < QUANTUM)
    }
}
