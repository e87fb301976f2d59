//! The prepared statements of one connection, by text.
//!
//! Owns: what is known of each, and a bounded cache of them; finding, keeping and evicting take constant time; whether a write that
//! scans a table is as short as it was the last time. Runs on the thread that has the connection. Invariants: a text that is used once
//! does not displace one that is used again; a statement that SQLite prepared again because of another schema is prepared anew at its
//! next use, so that its class is learnt again (`flatwater_sql::stable_form` is about those that are prepared again for their values); one that
//! was lent is lent again only if nothing was finalized meanwhile; if few rows changed since a scan, the table has at most `FEW_ROWS`
//! rows more than at that scan, about `FEW_PAGES` pages more, and they are in the cache. Leaves out: running them; analysing their
//! programs (`analyse`); which of them is evicted (`flatwater_sql::lru`).

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use flatwater_sqlite::{CacheUse, Sqlite, StatementId};

use flatwater_base::encode::json::Keys;
use flatwater_base::error::Result;
use flatwater_base::thread::lock;
use flatwater_base::values::column::Names;
use flatwater_sql::bytecode::analysis::ProgramAnalysis;
use flatwater_sql::class::Class;
use flatwater_sql::lru::SegmentedLru;
use flatwater_sql::statement_info::StatementInfo;

/// The use of a prepared statement at which its program is analysed.
const TELLING_USE: u32 = 2;

/// The uses of a prepared statement, and its analysis once there is one.
#[derive(Debug, Default)]
pub(crate) struct Analysis {
    /// Counted by the thread that has the connection.
    uses: AtomicU32,
    pub(crate) of_program: OnceLock<ProgramAnalysis>,
}

impl Analysis {
    /// Counts a use, and returns true if the program is to be analysed now. `is_used_often`: it was analysed on another
    /// connection.
    pub(crate) fn is_due(&self, is_used_often: bool) -> bool {
        let uses = || self.uses.fetch_add(1, Ordering::Relaxed) + 1;
        self.of_program.get().is_none() && (is_used_often || uses() >= TELLING_USE)
    }
}

/// A statement that is ready to run, and what is known about it.
pub(crate) struct CachedStatement {
    pub(crate) id: StatementId,
    pub(crate) class: Arc<Class>,
    pub(crate) names: Names,
    pub(crate) text: Arc<StatementInfo>,
    pub(crate) analysis: Analysis,
    /// Made when the statement's rows are first wanted as JSON.
    keys: OnceLock<Result<Keys>>,
    /// Of a write that scans a table: what was noted after it, if it was short. Used by the thread that has the connection.
    short_scan: Mutex<Option<RowChanges>>,
}

impl CachedStatement {
    pub(crate) fn new(id: StatementId, class: Arc<Class>, names: Names, text: Arc<StatementInfo>) -> Self {
        Self {
            id,
            class,
            names,
            text,
            analysis: Analysis::default(),
            keys: OnceLock::new(),
            short_scan: Mutex::default(),
        }
    }

    /// Returns the keys of its rows as objects of JSON.
    pub(crate) fn keys(&self) -> Result<&Keys> {
        let keys = self.keys.get_or_init(|| Keys::new(&self.names));
        keys.as_ref().map_err(|error| error.clone().with_sql(&self.text.sql))
    }

    /// Notes what was changed up to a short scan; `None` after one that was not short.
    pub(crate) fn note_scan(&self, changes: Option<RowChanges>) {
        *lock(&self.short_scan) = changes;
    }

    /// Returns what was changed up to the last scan, if that was short.
    pub(crate) fn short_scan(&self) -> Option<RowChanges> {
        *lock(&self.short_scan)
    }
}

/// One in so many places is only for texts that were used once.
const PLACES_PER_NEW: usize = 8;

pub(crate) struct Statements {
    ready: SegmentedLru<Arc<StatementInfo>, Arc<CachedStatement>>,
    /// The one that was lent last. Lending it again takes no lookup and no atomic operation.
    last: Option<Arc<CachedStatement>>,
}

impl Statements {
    pub(crate) fn new(limit: usize) -> Self {
        Self { ready: SegmentedLru::new(limit, limit / PLACES_PER_NEW), last: None }
    }

    /// Returns the statement of `text`, if it is prepared and SQLite has not prepared it again.
    pub(crate) fn find(&mut self, sqlite: &mut Sqlite, text: &StatementInfo) -> Option<Arc<CachedStatement>> {
        self.last = None;
        let ready = self.ready.get(text)?;
        if sqlite.statements().reprepares(ready.id) == 0 {
            return Some(ready.clone());
        }
        text.was_prepared_again();
        self.forget(sqlite, text);
        None
    }

    /// The same, for a caller that gives it back: cheaper if the text is the one that was lent before.
    pub(crate) fn lend(&mut self, sqlite: &mut Sqlite, text: &StatementInfo) -> Option<Arc<CachedStatement>> {
        let is_ready = |last: &Arc<CachedStatement>| {
            std::ptr::eq(&*last.text, text) && sqlite.statements().reprepares(last.id) == 0
        };
        self.last.take().filter(is_ready).or_else(|| self.find(sqlite, text))
    }

    /// Takes back what was lent, if its run succeeded: another run may have finalized it.
    pub(crate) fn give_back(&mut self, lent: Arc<CachedStatement>) {
        self.last = Some(lent);
    }

    pub(crate) fn keep(&mut self, sqlite: &mut Sqlite, ready: Arc<CachedStatement>) {
        let text = ready.text.clone();
        self.forget(sqlite, &text);
        let is_used_again = text.is_used_again();
        if let Some(evicted) = self.ready.insert(text, ready, is_used_again) {
            sqlite.statement(evicted.id).finalize();
        }
    }

    /// Finalizes the statement of `text`, so that its next use prepares it.
    pub(crate) fn forget(&mut self, sqlite: &mut Sqlite, text: &StatementInfo) {
        self.last = None;
        if let Some(before) = self.ready.remove(text) {
            sqlite.statement(before.id).finalize();
        }
    }

    /// Takes the statement of `text` out of the cache, for a caller that keeps it in the middle of its rows.
    pub(crate) fn take(&mut self, text: &StatementInfo) {
        self.last = None;
        self.ready.remove(text);
    }

    /// Finalizes all of them: their classes can no longer be trusted.
    pub(crate) fn clear(&mut self, sqlite: &mut Sqlite) {
        self.last = None;
        for ready in self.ready.drain() {
            sqlite.statement(ready.id).finalize();
        }
    }
}

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
