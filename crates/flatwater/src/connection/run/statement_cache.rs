//! The prepared statements of one connection, by text.
//!
//! Owns: what is known of each, and a bounded cache of them; finding, keeping and evicting take constant time. Runs on the
//! thread that has the connection. Invariants: a text that is used once does not displace one that is used again; a
//! statement that SQLite prepared again because of another schema is prepared anew at its next use, so that its class is
//! learnt again (`sql::stable_form` is about those that are prepared again for their values); one that was lent is lent
//! again only if nothing was finalized meanwhile. Leaves out: running them; analysing their programs (`analyse`); which of
//! them is evicted (`sql::lru`).

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use flatwater_sqlite::{Sqlite, StatementId};

use super::scan_history::RowChanges;
use crate::bytecode::analysis::ProgramAnalysis;
use crate::encode::json::Keys;
use crate::error::Result;
use crate::sql::class::Class;
use crate::sql::lru::SegmentedLru;
use crate::sql::statement_info::StatementInfo;
use crate::thread::lock;
use crate::values::column::Names;

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
#[derive(Debug)]
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
