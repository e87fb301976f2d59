//! What the statements of a connection change, while that is recorded.
//!
//! Owns: the writes of the statements that ran. Runs on the thread that has the connection. Invariant: every statement that
//! runs through `execute` is recorded; what runs in another way must be told. Leaves out: when it is recorded, and what
//! becomes of it (`workers::writer`).

use flatwater_sqlite::Sqlite;

use super::statement_cache::CachedStatement;
use crate::dependencies::change::{Change, Written};
use crate::dependencies::writes::Writes;
use crate::sql::class::Route;

#[derive(Default)]
pub(crate) struct Recording {
    /// What the statements change, while that is recorded.
    written: Option<Written>,
    /// The file's data version when it was last compared, if it has no WAL.
    data_version: Option<i64>,
}

impl Recording {
    /// Starts or stops recording. What was recorded is dropped.
    pub(crate) fn set(&mut self, sqlite: &Sqlite, on: bool) {
        self.data_version = None;
        self.written = on.then(Written::default);
        sqlite.hooks().record_changes(on);
    }

    /// Records a statement that ran, or failed.
    #[inline]
    pub(super) fn note(&mut self, sqlite: &Sqlite, statement: &CachedStatement) {
        if let Some(written) = self.written.as_mut().filter(|_| statement.class.route == Route::Write) {
            // If SQLite prepared it again, because of another schema, it may have written more than is known.
            if sqlite.statements().reprepares(statement.id) == 0 {
                written.add(&statement.class.writes);
            } else {
                written.add_everything();
            }
        }
    }

    /// Records what code wrote that is no statement.
    pub(crate) fn wrote(&mut self, writes: &Writes) {
        if let Some(written) = &mut self.written {
            written.add(writes);
        }
    }

    /// Records that code ran of which nothing is known.
    pub(crate) fn wrote_everything(&mut self) {
        if let Some(written) = &mut self.written {
            written.add_everything();
        }
    }

    /// Returns what was recorded since the last call; `None` if nothing is recorded.
    pub(crate) fn take(&mut self, sqlite: &Sqlite) -> Option<Change> {
        let written = self.written.as_mut()?;
        Some(Change::of(std::mem::take(written), sqlite.hooks().changes.take()))
    }

    /// Returns true if it is recorded that nothing was written.
    pub(crate) fn wrote_nothing(&self) -> bool {
        self.written.as_ref().is_some_and(Written::is_empty)
    }

    /// Returns true if another connection may have committed since the last call. For a file without a WAL: reads its
    /// change counter (<https://sqlite.org/pragma.html#pragma_data_version>).
    pub(crate) fn sees_others(&mut self, sqlite: &Sqlite) -> bool {
        let version = "PRAGMA main.data_version";
        let now = sqlite.rusqlite().query_row(version, [], |row| row.get::<_, i64>(0)).ok();
        let before = std::mem::replace(&mut self.data_version, now);
        now.is_none() || before != now
    }

    pub(crate) fn is_on(&self) -> bool {
        self.written.is_some()
    }
}
