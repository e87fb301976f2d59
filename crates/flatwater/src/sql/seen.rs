//! Whether the schema that a connection has seen can still be the newest one, as far as that is known without a look.
//!
//! Owns: which state of the WAL this engine's writer left behind, with how often the schema may have changed by then;
//! and of one connection, the schema cookie it has seen and where it was seen. Invariant: SQLite reads the whole schema
//! anew, before it asks anybody, when a statement meets another schema than its connection has seen (`OP_Transaction`);
//! so on a thread that must not be held up nothing runs before the schema is known to be that one, or its cookie was
//! compared in the same snapshot. Leaves out: what is prepared under a schema (`statements`).

use std::sync::atomic::{AtomicU64, Ordering};

use flatwater_sqlite::WalState;

/// What the writer left. Written by the holder of the token, read by any thread: in one word, so that a state is never taken
/// for one before another change.
#[derive(Default)]
pub(crate) struct Left(AtomicU64);

impl Left {
    /// The holder of the token gives it back at this state. Since it was last given back the schema `may_have_changed`: by
    /// somebody else, or by what was run.
    pub(crate) fn leave(&self, state: &WalState, may_have_changed: bool) {
        self.leave_at(state.stamp(), may_have_changed);
    }

    fn leave_at(&self, stamp: u32, may_have_changed: bool) {
        let changes = (self.0.load(Ordering::Relaxed) >> 32).wrapping_add(u64::from(may_have_changed));
        self.0.store(changes << 32 | u64::from(stamp), Ordering::Release);
    }

    /// How often the schema may have changed when the writer left this state, if it was the writer who left it.
    fn changes(&self, stamp: u32) -> Option<u32> {
        let left = self.0.load(Ordering::Acquire);
        let (changes, last) = ((left >> 32) as u32, left as u32);
        (last == stamp).then_some(changes)
    }
}

/// What one connection has seen of the schema. Belongs to whoever has the connection.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Seen {
    cookie: Option<i64>,
    /// The state at which it was compared last.
    stamp: u32,
    /// How often it may have changed up to then.
    changes: Option<u32>,
}

impl Seen {
    /// Whether the schema is the one that was seen: nobody committed since, or only this engine, which would have told.
    pub(crate) fn holds(&self, state: &WalState, left: &Left) -> bool {
        self.holds_at(state.stamp(), left)
    }

    fn holds_at(&self, stamp: u32, left: &Left) -> bool {
        self.cookie.is_some() && (self.stamp == stamp || self.changes.is_some() && self.changes == left.changes(stamp))
    }

    /// The connection has this schema. It was seen in a snapshot of this state, or of a later one.
    pub(crate) fn saw(&mut self, cookie: i64, state: &WalState, left: &Left) {
        self.saw_at(cookie, state.stamp(), left);
    }

    fn saw_at(&mut self, cookie: i64, stamp: u32, left: &Left) {
        *self = Self { cookie: Some(cookie), stamp, changes: left.changes(stamp) };
    }

    /// Whether a cookie is that of the schema that was seen.
    pub(crate) fn is(&self, cookie: i64) -> bool {
        self.cookie == Some(cookie)
    }

    pub(crate) fn is_known(&self) -> bool {
        self.cookie.is_some()
    }

    /// Something may have changed the schema, or what the connection knows of it.
    pub(crate) fn forget(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_writer_commits_changes_nothing_and_what_others_commit_takes_a_look() {
        let (left, mut seen) = (Left::default(), Seen::default());
        left.leave_at(10, false);
        assert!(!seen.holds_at(10, &left), "nothing was seen yet");
        seen.saw_at(7, 10, &left);
        assert!(seen.holds_at(10, &left) && seen.is(7) && !seen.is(8));
        left.leave_at(11, false);
        assert!(seen.holds_at(11, &left), "a commit of our own");
        assert!(!seen.holds_at(12, &left), "a commit of somebody else");
        left.leave_at(13, true);
        assert!(!seen.holds_at(13, &left), "ours, on top of it");
        seen.saw_at(7, 13, &left);
        left.leave_at(14, false);
        assert!(seen.holds_at(14, &left));
        seen.forget();
        assert!(!seen.holds_at(14, &left) && !seen.is(7));
    }

    #[test]
    fn a_look_at_a_state_that_the_writer_did_not_leave_holds_for_that_state_alone() {
        let (left, mut seen) = (Left::default(), Seen::default());
        left.leave_at(10, false);
        seen.saw_at(7, 20, &left);
        assert!(seen.holds_at(20, &left));
        left.leave_at(21, true);
        assert!(!seen.holds_at(21, &left) && !seen.holds_at(10, &left));
    }
}
