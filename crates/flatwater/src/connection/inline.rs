//! One stay: a short statement that runs on its caller's thread, under limits that no worker's run has.
//!
//! Owns: putting the limits on and taking them off. Invariants: within a stay no snapshot begins that would have to wait, and
//! no page is read late; the limit on lengths holds from one stay to the next, until a worker takes it off before its own work.
//! Leaves out: the run itself (`execute`), which statements may stay, and what to do with one that did not end.

use std::time::Instant;

use flatwater_sqlite::{Connection as Sqlite, PageRefusal, Unheld};

use super::open::Connection;

/// SQLite writes its messages under the same limit, and one that is cut is lost.
const MESSAGE_BYTES: usize = 1024;

impl Connection {
    /// Until `unlimit` values, rows and parameters are limited to `bytes`, or to less if they were before.
    pub(crate) fn limit(&mut self, bytes: usize) {
        if self.unlimited.is_some() {
            return;
        }
        let bytes = bytes.max(MESSAGE_BYTES);
        let before = self.sqlite.set_length_limit(bytes);
        if before < bytes {
            self.sqlite.set_length_limit(before);
        }
        self.unlimited = Some(before);
    }

    /// The limit of before holds again. To be called by a worker before it uses the connection.
    pub(crate) fn unlimit(&mut self) {
        if let Some(before) = self.unlimited.take() {
            self.sqlite.set_length_limit(before);
        }
    }
}

/// When the last page may be read from a file, and how one after that is refused: with a failure if the statement writes,
/// for then SQLite may have to read while it rolls back.
#[derive(Clone, Copy)]
pub(crate) struct LastRead(pub(crate) Instant, pub(crate) PageRefusal);

/// What keeps the thread from being held up, while a stay lasts.
#[must_use]
pub(crate) struct Begun(Unheld);

/// From now on no snapshot begins that would have to wait or to recover, and the first page that would be read from a file
/// after `last_read` is refused. `None` if this connection cannot have a stay.
pub(crate) fn begin(sqlite: &Sqlite, last_read: Option<LastRead>) -> Option<Begun> {
    sqlite.unheld(last_read.map(|LastRead(end, refusal)| (end, refusal))).map(Begun)
}

/// What became of the reads of a stay.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Reads {
    /// A page was read from a file.
    pub(crate) some: bool,
    /// One was refused.
    pub(crate) refused: bool,
}

impl Begun {
    /// The stay is over.
    pub(crate) fn end(self) -> Reads {
        Reads { some: self.0.has_read(), refused: self.0.has_refused() }
    }
}
