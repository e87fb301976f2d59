//! Commits that processes tell each other of, through the file of the turnstile.
//!
//! Owns: telling, on the thread that holds the writer slot, and what the thread that waits for commits needs. Does not
//! block. Leaves out: that thread (`workers::live`), and whether anybody waits, which each look at the line finds out.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use flatwater_sqlite::{TurnFile, Word};

use super::Turnstile;

impl Turnstile {
    /// Tells processes that wait for commits of one that left the WAL with this change counter. Does not block.
    pub(crate) fn committed(&self, change: u32) {
        if !self.is_followed.load(Ordering::Relaxed) {
            return;
        }
        if let Some(file) = self.file.opened().filter(|file| file.set(Word::Commit, change).is_ok()) {
            file.wake(Word::Commit, u32::MAX);
            self.recorder.commits_told.count();
        }
    }

    /// Returns the file, for a thread that waits for commits. If there is none, a process that may write makes it. `None`
    /// while the database is parked.
    pub(crate) fn follow(&self) -> Option<Arc<TurnFile>> {
        let file = self.file.get_unless_parked(Instant::now(), self.may_make)?;
        self.file.unless_failed(file.follow()).map(|()| file)
    }

    /// Called by that thread when it waits no more.
    pub(crate) fn follow_no_more(&self) {
        self.file.opened().inspect(|file| file.follow_no_more());
    }

    /// Counts a commit of another process that was heard of here.
    pub(crate) fn heard(&self) {
        self.recorder.commits_heard.count();
    }
}
