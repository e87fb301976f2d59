//! One stay: a short statement that runs on its caller's thread, under limits that no worker's run has.
//!
//! Owns: putting the limits on and taking them off. Invariants: within a stay nothing is prepared, so that what is known
//! of a statement is true of what runs: one that SQLite wants to prepare again, because the schema changed, fails
//! instead; the limit on lengths holds from one stay to the next, until a worker takes it off before its own work.
//! Leaves out: which statements may stay, and what to do with one that did not end.

use std::time::Instant;

use flatwater_sqlite::{Connection as Sqlite, Judge, LateReads, Refusal};

use super::judge;
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

/// What held before a stay.
#[must_use]
pub(crate) struct Before {
    judge: Judge,
    late_reads: Option<LateReads>,
}

/// When the last page may be read from a file, and how one after that is refused: with a failure if the statement writes,
/// for then SQLite may have to read while it rolls back.
#[derive(Clone, Copy)]
pub(crate) struct LastRead(pub(crate) Instant, pub(crate) Refusal);

/// From now on nothing is prepared, and the first page that would be read from a file after `last_read` is refused.
pub(crate) fn begin(sqlite: &mut Sqlite, last_read: Option<LastRead>) -> Before {
    let late_reads = last_read.map(|LastRead(end, refusal)| sqlite.refuse_reads_after(end, refusal));
    Before { judge: sqlite.set_judge(judge::nothing), late_reads }
}

/// What became of the reads of a stay.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Reads {
    /// A page was read from a file.
    pub(crate) some: bool,
    /// One was refused.
    pub(crate) refused: bool,
}

/// The stay is over.
pub(crate) fn end(sqlite: &mut Sqlite, before: Before) -> Reads {
    sqlite.disarm();
    sqlite.set_judge(before.judge);
    before.late_reads.map_or(Reads::default(), |late| Reads { some: late.has_read(), refused: late.has_refused() })
}
