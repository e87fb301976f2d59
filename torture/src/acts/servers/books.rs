//! What the tasks were told of their writes, and the comparison with what is there.
//!
//! Owns: the books. Invariant: of each row is known that it is there once, that it is not, or that nobody can know. Leaves out: the
//! writes.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};

use flatwater::Session;

use crate::finding::Finding;
use crate::round::Counts;

/// What is known of the rows of one write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    There,
    NotThere,
    Unknown,
}

#[derive(Default)]
pub(super) struct Books {
    next: AtomicI64,
    /// The rows of each write, which are all there, or none.
    writes: Mutex<Vec<(Vec<i64>, Fate)>>,
    counts: Mutex<Counts>,
    /// One more than the rows that there are in the end; 0 while that is not known.
    last: AtomicI64,
}

impl Books {
    /// Returns numbers that no other write has.
    pub(super) fn rows(&self, count: i64) -> Vec<i64> {
        let first = self.next.fetch_add(count, Ordering::Relaxed);
        (first..first + count).collect()
    }

    pub(super) fn wrote(&self, rows: Vec<i64>, fate: Fate) {
        if fate == Fate::There {
            self.count("acknowledged writes");
        }
        self.writes.lock().unwrap_or_else(PoisonError::into_inner).push((rows, fate));
    }

    pub(super) fn count(&self, what: &str) {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).add(what, 1);
    }

    pub(super) fn counts(&self) -> Counts {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The number of rows in the end, once it is known.
    pub(super) fn last(&self) -> Option<i64> {
        Some(self.last.load(Ordering::Acquire) - 1).filter(|rows| *rows >= 0)
    }

    /// Compares all rows with what the tasks were told.
    pub(super) async fn compare(&self, on: &Session) -> Result<(), Finding> {
        let rows: HashMap<i64, i64> = on.query_as("SELECT id, n FROM rows_of_act", ()).await?.into_iter().collect();
        let writes = self.writes.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut wrong = BTreeMap::new();
        for (ids, fate) in writes {
            let are: Vec<i64> = ids.iter().map(|id| rows.get(id).copied().unwrap_or_default()).collect();
            let is_right = match fate {
                Fate::There => are.iter().all(|n| *n == 1),
                Fate::NotThere => are.iter().all(|n| *n == 0),
                Fate::Unknown => are.iter().all(|n| *n == 1) || are.iter().all(|n| *n == 0),
            };
            if !is_right {
                wrong.insert(ids[0], format!("{ids:?} are {fate:?}, and there so often: {are:?}"));
            }
        }
        let sum: i64 = on.query_value("SELECT sum(cents) FROM accounts", ()).await?;
        if sum != 0 {
            wrong.insert(-1, format!("the accounts have {sum} together, and none is taken"));
        }
        self.last.store(rows.len() as i64 + 1, Ordering::Release);
        match wrong.len() {
            0 => Ok(()),
            count => Err(Finding::new(format!("{count} writes are not as their callers were told"))
                .with_history(wrong.into_values().collect::<Vec<_>>().join("\n"))),
        }
    }
}
