//! The results of a write: of one statement, and of one statement of a batch.
//!
//! Owns: their fields. Plain data without invariants, usable on any thread. Leaves out: filling them (`execute`).

use super::row::Rows;

/// The changes that one statement made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
#[non_exhaustive]
pub struct ExecuteResult {
    /// Rows inserted, updated or deleted by the statement itself, not by its triggers; 0 for a statement that is not an
    /// INSERT, UPDATE or DELETE (<https://sqlite.org/c3ref/changes.html>).
    pub changes: u64,
    /// The rowid of the last row this statement inserted; `None` if it inserted none, or into a table without rowids.
    pub last_insert_rowid: Option<i64>,
}

/// The result of one statement of a batch.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct BatchResult {
    /// The changes that the statement made.
    pub executed: ExecuteResult,
    /// The rows of a statement with RETURNING.
    pub rows: Option<Rows>,
}
