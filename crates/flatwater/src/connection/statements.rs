//! The prepared statements of one connection, by text.
//!
//! Owns: a bounded LRU of them; finding, keeping and evicting take constant time. Invariant: a statement that SQLite
//! prepared again because of another schema is prepared anew by us at its next use, so that its class is learnt again.
//! Leaves out: running them.

use std::sync::Arc;

use flatwater_sqlite::{Connection as Sqlite, StatementId};
use hashlink::LruCache;

use super::catalogue::{Key, Text};
use super::class::Class;
use super::learnt::Learnt;
use crate::types::row::Names;

/// A statement that is ready to run, and what is known about it.
#[derive(Debug, Clone)]
pub(crate) struct Ready {
    pub(crate) id: StatementId,
    pub(crate) class: Arc<Class>,
    pub(crate) names: Names,
    pub(crate) text: Arc<Text>,
    pub(crate) learnt: Arc<Learnt>,
}

pub(crate) struct Statements {
    ready: LruCache<Key, Ready>,
    limit: usize,
}

impl Statements {
    pub(crate) fn new(limit: usize) -> Self {
        Self { ready: LruCache::new_unbounded(), limit }
    }

    /// The statement of `text`, if it is prepared and was not prepared again behind our back.
    pub(crate) fn find(&mut self, sqlite: &mut Sqlite, text: &Text) -> Option<Ready> {
        let ready = self.ready.get(&*text.sql)?;
        if sqlite.reprepares(ready.id) == 0 {
            return Some(ready.clone());
        }
        let stale = self.ready.remove(&*text.sql)?;
        sqlite.finalize(stale.id);
        None
    }

    pub(crate) fn keep(&mut self, sqlite: &mut Sqlite, ready: Ready) {
        if self.ready.len() >= self.limit
            && let Some((_, evicted)) = self.ready.remove_lru()
        {
            sqlite.finalize(evicted.id);
        }
        if let Some(before) = self.ready.insert(Key(ready.text.clone()), ready) {
            sqlite.finalize(before.id);
        }
    }

    /// Ends all of them: their classes are no longer to be trusted.
    pub(crate) fn clear(&mut self, sqlite: &mut Sqlite) {
        for (_, ready) in self.ready.drain() {
            sqlite.finalize(ready.id);
        }
    }
}
