//! Whether a write that scans a table is as short as it was the last time.
//!
//! Owns: what is noted of a connection after a short scan, and comparing it with now. Runs on the thread that has the
//! connection. Invariant: if few rows changed since a scan, the table has at most `FEW_ROWS` rows more than at that scan.
//! Leaves out: which writes scan (`bytecode::analysis`), and what they cost before (`sql::catalogue`).

use flatwater_sqlite::Connection as Sqlite;

/// A table that got no more rows than this is scanned in about the same time.
const FEW_ROWS: u64 = 64;

/// What shows how many rows may have been added to a table of the main database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RowChanges {
    /// The rows that this connection changed (<https://sqlite.org/c3ref/total_changes.html>).
    own: u64,
    /// The difference between all commits and those of this connection: it changes with each commit of another connection.
    commits_of_others: u32,
    /// How often changes of this connection were undone: rows that it had deleted are there again.
    undone: u32,
}

impl RowChanges {
    /// Returns those up to now. `None` if the wal-index is not consistent.
    pub(crate) fn so_far(sqlite: &Sqlite) -> Option<Self> {
        let (state, _) = sqlite.wal().now()?;
        let commits = &sqlite.hooks().commits;
        let commits_of_others = state.change().wrapping_sub(commits.published());
        Some(Self { own: sqlite.handle().total_changes(), commits_of_others, undone: commits.undone() })
    }

    /// Returns true if no table can have got more than a few rows since `before`.
    pub(crate) fn are_few_since(self, before: Self) -> bool {
        let own = self.own.wrapping_sub(before.own);
        own <= FEW_ROWS && (self.commits_of_others, self.undone) == (before.commits_of_others, before.undone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_rows_and_nobody_else() {
        let before = RowChanges { own: 10, commits_of_others: 3, undone: 1 };
        assert!(before.are_few_since(before));
        assert!(RowChanges { own: 10 + FEW_ROWS, ..before }.are_few_since(before));
        for other in [
            RowChanges { own: 11 + FEW_ROWS, ..before },
            RowChanges { own: 9, ..before },
            RowChanges { commits_of_others: 4, ..before },
            RowChanges { commits_of_others: 2, ..before },
            RowChanges { undone: 2, ..before },
        ] {
            assert!(!other.are_few_since(before), "{other:?}");
        }
    }
}
