//! What a write answers.

use super::row::Rows;

/// What one statement changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Executed {
    /// Rows inserted, updated or deleted by the statement itself, not by its triggers; 0 for one that is no INSERT,
    /// UPDATE or DELETE (<https://sqlite.org/c3ref/changes.html>).
    pub changes: u64,
    /// The rowid of the last row this statement inserted; `None` if it inserted none, or into a table without rowids.
    pub last_insert_rowid: Option<i64>,
}

/// What one statement of a batch answered.
#[derive(Debug, Clone, PartialEq)]
pub struct BatchResult {
    /// What it changed.
    pub executed: Executed,
    /// The rows of a statement with RETURNING.
    pub rows: Option<Rows>,
}
