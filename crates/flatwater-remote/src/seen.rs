//! What was seen of the commits of a server.
//!
//! Owns: the counter of the last look. Used on the thread of the connection to the server. Invariant: one look is under way at a time. Leaves out:
//! looking (`look`).

use std::cell::Cell;

/// What a look came to.
pub(crate) enum Counter {
    At(u64),
    /// The server tells no counter: there may be a commit.
    Untold,
    /// There is no answer.
    Unknown,
}

#[derive(Default)]
pub(crate) struct Seen {
    counter: Cell<Option<u64>>,
    is_looking: Cell<bool>,
}

impl Seen {
    /// Begins a look. Returns false if one is under way.
    pub(crate) fn begin(&self) -> bool {
        !self.is_looking.replace(true)
    }

    /// Ends the look. Returns true if there may be a commit since the one before.
    pub(crate) fn end(&self, counter: Counter) -> bool {
        self.is_looking.set(false);
        match counter {
            Counter::At(counter) => self.counter.replace(Some(counter)) != Some(counter),
            Counter::Untold => true,
            // Whether there was a commit is known only from the next answer on: it may be of another server, which counts for itself.
            Counter::Unknown => {
                self.counter.set(None);
                false
            }
        }
    }
}
