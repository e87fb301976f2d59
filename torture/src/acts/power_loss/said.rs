//! Which results were reported before a point of the log, and what must survive a power loss at that point.
//!
//! With `full`, every step that was acknowledged before is present. With `normal`, every step is present that was
//! acknowledged before the begin of a completed sync of the WAL. What existed before the load began remains.

use std::collections::BTreeSet;

use super::disk::Disk;
use super::log::{Entry, Log};
use super::plan::{Plan, Step};

/// A step of a task: the task's number and the step's number.
pub(crate) type Id = (u64, u64);

/// The content of the two files.
#[derive(Debug, Clone, Default)]
pub(crate) struct Found {
    /// Whether the schema is present.
    pub(crate) is_made: bool,
    /// The steps in the main file.
    pub(crate) main: BTreeSet<Id>,
    pub(crate) side: BTreeSet<Id>,
}

/// What must be present.
#[derive(Debug, Clone, Default)]
pub(crate) struct Floor {
    /// Whether the schema must be present.
    pub(crate) is_made: bool,
    pub(crate) main: BTreeSet<Id>,
    /// The steps in the attached file.
    pub(crate) side: BTreeSet<Id>,
    /// Steps whose error says that nothing was done: they must not be present.
    pub(crate) refused: BTreeSet<Id>,
}

impl Floor {
    /// What existed before the load.
    pub(crate) fn before(found: &Found) -> Self {
        Self { is_made: found.is_made, main: found.main.clone(), side: found.side.clone(), refused: BTreeSet::new() }
    }

    /// Adds what the log says up to `entry`.
    pub(crate) fn and_until(mut self, plan: &Plan, log: &Log, entry: usize) -> Self {
        for entry in &log.entries[..entry] {
            let Entry::Mark(text) = entry else { continue };
            let words: Vec<_> = text.split(' ').collect();
            let number = |at: usize| words.get(at).and_then(|word| word.parse().ok()).unwrap_or(0);
            let id = (number(1), number(2));
            match words[0] {
                "made" => self.is_made = true,
                "ack" => {
                    self.main.insert(id);
                    if plan.step(id.0, id.1) == Step::Side {
                        self.side.insert(id);
                    }
                }
                "not" => drop(self.refused.insert(id)),
                _ => {}
            }
        }
        self
    }

    /// Returns what must be present at the disk's current point.
    pub(crate) fn at(&self, plan: &Plan, disk: &Disk<'_>) -> Self {
        let now = self.clone().and_until(plan, disk.log, disk.taken);
        if plan.is_full {
            return now;
        }
        let synced = |name: &str| {
            let until = disk.synced_until.get(name).copied().unwrap_or(0);
            self.clone().and_until(plan, disk.log, until)
        };
        let (main, side) = (synced("main.db-wal"), synced("side.db-wal").side);
        Self { side, refused: now.refused, ..main }
    }
}
