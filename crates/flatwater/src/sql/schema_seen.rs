//! Determines, without reading the file, whether the schema that a connection has seen is still the newest one.
//!
//! Owns: the state of the WAL that this engine's writer left behind, with the number of possible schema changes up to
//! then; and, for each connection, the schema cookie it has seen and the state in which it saw it. Pure bookkeeping, on
//! any thread. Invariant: if a statement finds another schema than the one its connection has seen, SQLite reads the
//! whole schema again without calling any handler (`OP_Transaction`). So a statement runs on a thread that must not
//! block only if the schema is known to be the seen one, or its cookie was compared in the same snapshot. Leaves out:
//! what is prepared under a schema (`connection::run`).

use std::sync::atomic::{AtomicU64, Ordering};

/// The state that the writer left. The holder of the writer slot writes it, and any thread reads it. The state and
/// the number of changes share one word, so that a reader never combines a state with an older number.
#[derive(Default)]
pub(crate) struct LeftWal(AtomicU64);

impl LeftWal {
    /// Records the stamp of the state at which the holder releases the slot. `may_have_changed`: whether the schema may have changed
    /// since the slot was last released, either by another process or by what the holder ran.
    pub(crate) fn leave(&self, stamp: u32, may_have_changed: bool) {
        let changes = (self.0.load(Ordering::Relaxed) >> 32).wrapping_add(u64::from(may_have_changed));
        self.0.store(changes << 32 | u64::from(stamp), Ordering::Release);
    }

    /// Returns how often the schema may have changed when the writer left this state; `None` if the writer did not
    /// leave it.
    fn changes(&self, stamp: u32) -> Option<u32> {
        let left = self.0.load(Ordering::Acquire);
        let (changes, last) = ((left >> 32) as u32, left as u32);
        (last == stamp).then_some(changes)
    }
}

/// What one connection has seen of the schema. Only the thread that has the connection uses it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SchemaSeen {
    cookie: Option<i64>,
    /// The state at which the cookie was last compared.
    stamp: u32,
    /// The number of possible schema changes up to then.
    changes: Option<u32>,
}

impl SchemaSeen {
    /// Returns whether the schema of the state with this stamp is the one that was seen. This holds if there was no commit since, or only commits of
    /// this engine, which records possible schema changes.
    pub(crate) fn holds(&self, stamp: u32, left: &LeftWal) -> bool {
        self.cookie.is_some() && (self.stamp == stamp || self.changes.is_some() && self.changes == left.changes(stamp))
    }

    /// Records that the connection has this schema, seen in a snapshot of the state with this stamp or of a later one.
    pub(crate) fn saw(&mut self, cookie: i64, stamp: u32, left: &LeftWal) {
        *self = Self { cookie: Some(cookie), stamp, changes: left.changes(stamp) };
    }

    /// Returns whether a cookie equals that of the schema that was seen.
    pub(crate) fn is(&self, cookie: i64) -> bool {
        self.cookie == Some(cookie)
    }

    pub(crate) fn is_known(&self) -> bool {
        self.cookie.is_some()
    }

    /// Forgets the schema, because something may have changed it, or what the connection knows of it.
    pub(crate) fn forget(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_writer_commits_changes_nothing_and_what_others_commit_takes_a_look() {
        let (left, mut seen) = (LeftWal::default(), SchemaSeen::default());
        left.leave(10, false);
        assert!(!seen.holds(10, &left), "nothing was seen yet");
        seen.saw(7, 10, &left);
        assert!(seen.holds(10, &left) && seen.is(7) && !seen.is(8));
        left.leave(11, false);
        assert!(seen.holds(11, &left), "a commit of our own");
        assert!(!seen.holds(12, &left), "a commit of somebody else");
        left.leave(13, true);
        assert!(!seen.holds(13, &left), "ours, on top of it");
        seen.saw(7, 13, &left);
        left.leave(14, false);
        assert!(seen.holds(14, &left));
        seen.forget();
        assert!(!seen.holds(14, &left) && !seen.is(7));
    }

    #[test]
    fn a_look_at_a_state_that_the_writer_did_not_leave_holds_for_that_state_alone() {
        let (left, mut seen) = (LeftWal::default(), SchemaSeen::default());
        left.leave(10, false);
        seen.saw(7, 20, &left);
        assert!(seen.holds(20, &left));
        left.leave(21, true);
        assert!(!seen.holds(21, &left) && !seen.holds(10, &left));
    }
}
