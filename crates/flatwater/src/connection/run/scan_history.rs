//! Whether a write that scans a table is as short as it was the last time.
//!
//! Owns: what is noted of a connection after a short scan, and comparing it with now. Runs on the thread that has the
//! connection. Invariant: if few rows changed since a scan, the table has at most `FEW_ROWS` rows more than at that scan, about
//! `FEW_PAGES` pages more, and they are in the cache.
//! Leaves out: which writes scan (`bytecode::analysis`), and what they cost before (`sql::catalogue`).

use flatwater_sqlite::{CacheUse, Sqlite};

/// A table that got no more rows than this is scanned in about the same time.
const FEW_ROWS: u64 = 64;
/// The same for pages, which long rows have many of.
const FEW_PAGES: u32 = 256;
const FEW_BYTES: u32 = 1 << 20;
/// If no more pages than this were read into the cache, those of the table are still there.
const FEW_MISSES: u32 = 64;

/// What shows how many rows and pages a table of the main database may have got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RowChanges {
    /// The rows that this connection changed (<https://sqlite.org/c3ref/total_changes.html>).
    own: u64,
    /// The difference between all commits and those of this connection: it changes with each commit of another connection.
    commits_of_others: u32,
    /// How often changes of this connection were undone: rows that it had deleted are there again.
    undone: u32,
    /// What the connection read, wrote and has in memory.
    cache: CacheUse,
}

impl RowChanges {
    /// Returns those up to now. `None` if the wal-index is not consistent.
    pub(crate) fn so_far(sqlite: &Sqlite) -> Option<Self> {
        let (state, _) = sqlite.wal().now()?;
        let commits = &sqlite.hooks().commits;
        let commits_of_others = state.change().wrapping_sub(commits.published());
        Some(Self {
            own: sqlite.handle().total_changes(),
            commits_of_others,
            undone: commits.undone(),
            cache: sqlite.handle().cache_use(),
        })
    }

    /// Returns true if a scan takes about as long as one at `before`.
    pub(crate) fn are_few_since(self, before: Self) -> bool {
        let own = self.own.wrapping_sub(before.own);
        let (now, then) = (self.cache, before.cache);
        own <= FEW_ROWS
            && (self.commits_of_others, self.undone) == (before.commits_of_others, before.undone)
            && now.written.wrapping_sub(then.written) <= FEW_PAGES
            && now.bytes <= then.bytes.saturating_add(FEW_BYTES)
            && now.missed.wrapping_sub(then.missed) <= FEW_MISSES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_rows_and_nobody_else() {
        let cache = CacheUse { missed: u32::MAX, written: 5, bytes: 1 << 20 };
        let before = RowChanges { own: 10, commits_of_others: 3, undone: 1, cache };
        let cached = |cache| RowChanges { cache, ..before };
        assert!(before.are_few_since(before));
        assert!(RowChanges { own: 10 + FEW_ROWS, ..before }.are_few_since(before));
        let more = CacheUse { missed: FEW_MISSES - 1, written: 5 + FEW_PAGES, bytes: 0 };
        assert!(cached(more).are_few_since(before), "counters wrap, and a cache may shrink");
        for other in [
            RowChanges { own: 11 + FEW_ROWS, ..before },
            RowChanges { own: 9, ..before },
            RowChanges { commits_of_others: 4, ..before },
            RowChanges { commits_of_others: 2, ..before },
            RowChanges { undone: 2, ..before },
            cached(CacheUse { missed: FEW_MISSES, ..cache }),
            cached(CacheUse { written: 6 + FEW_PAGES, ..cache }),
            cached(CacheUse { bytes: (2 << 20) + 1, ..cache }),
        ] {
            assert!(!other.are_few_since(before), "{other:?}");
        }
    }
}
