//! One inline run: a short statement on its caller's thread, under limits that a worker's run does not have.
//!
//! Owns: setting and removing the limits, and telling the permit of the run what pages it read. Runs on the thread that has the connection. Invariants: within an inline run
//! no snapshot begins that would have to wait, and no page is read late; the limit on lengths holds from one inline run
//! to the next, until a worker removes it before its own work. Leaves out: the run itself (`execute`), which statements
//! are eligible, and what to do with one that did not end.

use flatwater_sqlite::{Connection as Sqlite, ReadTime, Unheld};

use super::statement_cache::CachedStatement;
use crate::connection::Connection;
use crate::inline::permit::Permit;

/// SQLite builds its error messages under the same limit, and loses a message that exceeds it.
const MESSAGE_BYTES: usize = 1024;

/// The limit of lengths of a connection.
#[derive(Default)]
pub(crate) struct LengthLimit {
    /// The limit outside of inline runs, in bytes, while the limit of inline runs holds.
    outside: Option<usize>,
}

impl LengthLimit {
    /// Limits values, rows and parameters to `bytes`, or to less if the limit was lower before, until `restore`.
    pub(crate) fn lower(&mut self, sqlite: &mut Sqlite, bytes: usize) {
        if self.outside.is_some() {
            return;
        }
        let bytes = bytes.max(MESSAGE_BYTES);
        let before = sqlite.handle().set_length_limit(bytes);
        if before < bytes {
            sqlite.handle().set_length_limit(before);
        }
        self.outside = Some(before);
    }

    /// Restores the limit from before. To be called by a worker before it uses the connection.
    pub(crate) fn restore(&mut self, sqlite: &mut Sqlite) {
        if let Some(before) = self.outside.take() {
            sqlite.handle().set_length_limit(before);
        }
    }
}

/// Prevents the connection from holding up the thread, during an inline run.
#[must_use]
pub(crate) struct Begun<'a>(Unheld, &'a Permit<'a>);

/// Begins an inline run: no snapshot begins that would have to wait or to recover the wal-index, and the first page that
/// would be read from a file too late is refused: with a failure if the statement writes, because SQLite may then have to
/// read while it rolls back. Returns `None` if this connection is not capable of
/// inline runs.
pub(crate) fn begin<'a>(permit: &'a Permit<'_>, sqlite: &Sqlite, read_time: Option<ReadTime>) -> Option<Begun<'a>> {
    sqlite.unheld(read_time).map(|unheld| Begun(unheld, permit))
}

impl Begun<'_> {
    /// Ends the inline run. Returns true if a page was refused.
    pub(crate) fn end(self) -> bool {
        self.0.has_refused()
    }
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        if self.0.has_read() {
            self.1.note_reading(self.0.reading());
        }
    }
}

impl Connection {
    /// The steps that an inline run of the statement made, as far as they were counted.
    pub(crate) fn steps_of(&self, statement: &CachedStatement) -> u32 {
        if statement.is_bounded() { self.sqlite.hooks().interrupts.steps_seen() } else { 0 }
    }
}
