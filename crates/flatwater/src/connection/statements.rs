//! The prepared statements of one connection, by text.
//!
//! Owns: a bounded LRU cache of them; finding, keeping and evicting take constant time. Runs on the thread that has the
//! connection. Invariant: a statement that SQLite prepared again because of another schema is prepared anew at its next
//! use, so that its class is learnt again. Leaves out: running them.

use std::sync::Arc;

use flatwater_sqlite::{Connection as Sqlite, StatementId};
use hashlink::LruCache;
use hashlink::linked_hash_map::RawEntryMut;

use super::analyse::Analysis;
use crate::sql::catalogue::StatementInfo;
use crate::sql::class::Class;
use crate::values::column::Names;

/// A statement that is ready to run, and what is known about it.
#[derive(Debug)]
pub(crate) struct CachedStatement {
    pub(crate) id: StatementId,
    pub(crate) class: Arc<Class>,
    pub(crate) names: Names,
    pub(crate) text: Arc<StatementInfo>,
    pub(crate) analysis: Analysis,
}

pub(crate) struct Statements {
    ready: LruCache<Arc<StatementInfo>, Arc<CachedStatement>>,
    limit: usize,
}

impl Statements {
    pub(crate) fn new(limit: usize) -> Self {
        Self { ready: LruCache::new_unbounded(), limit }
    }

    /// Returns the statement of `text`, if it is prepared and SQLite has not prepared it again.
    pub(crate) fn find(&mut self, sqlite: &mut Sqlite, text: &StatementInfo) -> Option<&Arc<CachedStatement>> {
        let RawEntryMut::Occupied(mut entry) = self.ready.raw_entry_mut().from_key(text) else { return None };
        if sqlite.reprepares(entry.get().id) == 0 {
            entry.to_back();
            return Some(entry.into_mut());
        }
        sqlite.finalize(entry.remove().id);
        None
    }

    pub(crate) fn keep(&mut self, sqlite: &mut Sqlite, ready: Arc<CachedStatement>) {
        if self.ready.len() >= self.limit
            && let Some((_, evicted)) = self.ready.remove_lru()
        {
            sqlite.finalize(evicted.id);
        }
        if let Some(before) = self.ready.insert(ready.text.clone(), ready) {
            sqlite.finalize(before.id);
        }
    }

    /// Finalizes all of them: their classes can no longer be trusted.
    pub(crate) fn clear(&mut self, sqlite: &mut Sqlite) {
        for (_, ready) in self.ready.drain() {
            sqlite.finalize(ready.id);
        }
    }
}
