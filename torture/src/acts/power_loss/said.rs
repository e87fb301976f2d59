//! What was said until a point of the log, and what must have outlived a loss at that point.
//!
//! With `full` every step that was acknowledged before is there. With `normal` every step is that was acknowledged before a
//! sync of the WAL began that has ended. What was there before the load began stays.

use std::collections::BTreeSet;

use super::disk::Disk;
use super::judge::Found;
use super::log::{Entry, Log};
use super::plan::{Plan, Step};

/// A step of a task.
pub(crate) type Id = (u64, u64);

/// What must be found.
#[derive(Debug, Clone, Default)]
pub(crate) struct Floor {
    /// The schema.
    pub(crate) is_made: bool,
    pub(crate) main: BTreeSet<Id>,
    /// In the attached file.
    pub(crate) side: BTreeSet<Id>,
    /// Answered with an error that says that nothing was done: it must not be found.
    pub(crate) refused: BTreeSet<Id>,
}

impl Floor {
    /// What was there before the load.
    pub(crate) fn before(found: &Found) -> Self {
        Self { is_made: found.is_made, main: found.main.clone(), side: found.side.clone(), refused: BTreeSet::new() }
    }

    /// With all that was said in the log until that entry.
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

    /// At the point to which the disk came.
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
