//! What must be in an image.
//!
//! Owns: what was acknowledged when, and which of it must have outlived the loss; that each file holds the beginning of its
//! commits in their order, each whole; that everything else follows from the ledger.
//!
//! With `full` every step that was acknowledged before is there. With `normal` every step is that was acknowledged before a
//! sync of the WAL began that has ended. In a rollback journal mode SQLite does not sync the directory when it takes the
//! journal away, so a last commit may be undone (<https://sqlite.org/pragma.html#pragma_synchronous>, EXTRA).

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::types::Value;

use super::content::{Content, Tables};
use super::disk::Disk;
use super::log::{Entry, Log};
use super::plan::{ACCOUNTS, Plan, Step};
use crate::round::Finding;

/// A step of a task.
type Id = (u64, u64);

/// What was said until a point of the log.
#[derive(Debug, Clone, Default)]
pub(crate) struct Said {
    pub(crate) made: bool,
    pub(crate) acknowledged: BTreeSet<Id>,
    /// Was answered with an error that says that nothing was done.
    refused: BTreeSet<Id>,
}

/// What must be found at a point of the log.
#[derive(Debug, Clone, Default)]
pub(crate) struct Floor {
    pub(crate) main: Said,
    /// The steps that wrote the attached file among them.
    side: BTreeSet<Id>,
}

impl Said {
    fn hear(&mut self, text: &str) {
        let words: Vec<_> = text.split(' ').collect();
        let number = |at: usize| words.get(at).and_then(|word| word.parse().ok()).unwrap_or(0);
        match words[0] {
            "made" => self.made = true,
            "ack" => drop(self.acknowledged.insert((number(1), number(2)))),
            "not" => drop(self.refused.insert((number(1), number(2)))),
            _ => {}
        }
    }

    pub(crate) fn until(log: &Log, entry: usize) -> Self {
        let mut said = Self::default();
        log.entries[..entry].iter().for_each(|entry| {
            if let Entry::Mark(text) = entry {
                said.hear(text);
            }
        });
        said
    }
}

impl Floor {
    /// At the point to which the disk came.
    pub(crate) fn at(plan: &Plan, disk: &Disk<'_>) -> Self {
        let log = disk.log;
        let now = Said::until(log, disk.taken);
        let is_side = |id: &Id| plan.step(id.0, id.1) == Step::Side;
        if plan.is_full {
            let side = now.acknowledged.iter().copied().filter(is_side).collect();
            return Self { main: Said { made: now.made || plan.is_made_before, ..now }, side };
        }
        let synced = |name: &str| disk.synced_until.get(name).map_or_else(Said::default, |at| Said::until(log, *at));
        let main = synced("main.db-wal");
        let main = Said { made: main.made || plan.is_made_before, refused: now.refused, ..main };
        let side = synced("side.db-wal").acknowledged.into_iter().filter(is_side).collect();
        Self { main, side }
    }
}

pub(crate) struct Judge<'a> {
    pub(crate) plan: &'a Plan,
    /// What was acknowledged in the whole log.
    pub(crate) ever: &'a BTreeSet<Id>,
}

impl Judge<'_> {
    pub(crate) fn check(&self, content: &Content, floor: &Floor) -> Result<(), Finding> {
        let Some(ledger) = table(&content.main, "ledger") else {
            return match floor.main.made || !floor.main.acknowledged.is_empty() || !content.main.is_empty() {
                true => Err(Finding::new("the schema is not there")),
                false => Ok(()),
            };
        };
        let found = self.ledger(ledger)?;
        let lost: Vec<_> = floor.main.acknowledged.iter().filter(|id| !found.contains(id)).collect();
        if !lost.is_empty() {
            return Err(Finding::new(format!("acknowledged and lost (task, step): {lost:?}")));
        }
        let ghosts: Vec<_> = found.iter().filter(|id| floor.main.refused.contains(id)).collect();
        if !ghosts.is_empty() {
            return Err(Finding::new(format!("answered as not done, and there (task, step): {ghosts:?}")));
        }
        self.rest(&content.main, &found)?;
        if self.plan.has_side { self.side(&content.side, floor) } else { Ok(()) }
    }

    /// The steps in the ledger, in their order: whole, without a gap, as they were written.
    fn ledger(&self, rows: &[Vec<Value>]) -> Result<Vec<Id>, Finding> {
        let (mut found, mut at): (Vec<Id>, usize) = (Vec::new(), 0);
        while at < rows.len() {
            let id = id(&rows[at], 1);
            let parts = self.plan.parts(id.0, id.1);
            for part in 0..parts {
                let filler = Value::Blob(self.plan.filler(id.0, id.1, part));
                let [n, task, step, number, of] =
                    [at as u64 + 1, id.0, id.1, part, parts].map(|number| Value::Integer(number as i64));
                if rows.get(at) != Some(&vec![n, task, step, number, of, filler]) {
                    let row = rows.get(at).map(|row| &row[..5]);
                    return Err(Finding::new(format!(
                        "part {part} of {id:?}, row {}: not as written: {row:?}",
                        at + 1
                    )));
                }
                at += 1;
            }
            found.push(id);
        }
        self.in_order(&found, |_| true)?;
        Ok(found)
    }

    /// Each task's steps of a kind are there from its first one on.
    fn in_order(&self, found: &[Id], is_kind: impl Fn(&Id) -> bool) -> Result<(), Finding> {
        let mut last = BTreeMap::new();
        for (task, step) in found {
            let before = last.insert(*task, *step).unwrap_or(0);
            let left_out =
                (before + 1..*step).map(|step| (*task, step)).find(|id| is_kind(id) && self.ever.contains(id));
            if *step <= before || left_out.is_some() {
                return Err(Finding::new(format!("step {step} of task {task} comes after step {before}")));
            }
        }
        Ok(())
    }

    /// What follows from the ledger.
    fn rest(&self, main: &Tables, found: &[Id]) -> Result<(), Finding> {
        let mut cents: BTreeMap<u64, i64> = (0..ACCOUNTS).map(|id| (id, 0)).collect();
        let mut bodies = BTreeMap::new();
        let mut own = BTreeSet::new();
        for (task, step) in found.iter().copied() {
            match self.plan.step(task, step) {
                Step::Move | Step::Transaction => {
                    let (from, to, moved) = self.plan.moves(task, step);
                    *cents.entry(from).or_default() -= moved;
                    *cents.entry(to).or_default() += moved;
                }
                Step::Body => drop(bodies.insert(task, self.plan.body(task, step))),
                Step::Schema if !own.remove(&task) => drop(own.insert(task)),
                _ => {}
            }
        }
        let number = |number: u64| Value::Integer(number as i64);
        let cents: Vec<_> = cents.into_iter().map(|(id, cents)| vec![number(id), Value::Integer(cents)]).collect();
        let bodies: Vec<_> = bodies.into_iter().map(|(task, body)| vec![number(task), Value::Blob(body)]).collect();
        let own: BTreeSet<_> = own.into_iter().map(|task| format!("own_{task}")).collect();
        let own_found = main.iter().map(|(name, _)| name).filter(|name| name.starts_with("own_")).cloned();
        for (what, is_right) in [
            ("accounts", table(main, "accounts") == Some(&cents)),
            ("bodies", table(main, "bodies") == Some(&bodies)),
            ("tables", own_found.collect::<BTreeSet<_>>() == own),
        ] {
            if !is_right {
                return Err(Finding::new(format!("the {what} are not what the ledger's {} commits made", found.len())));
            }
        }
        Ok(())
    }

    fn side(&self, side: &Tables, floor: &Floor) -> Result<(), Finding> {
        let rows = table(side, "side_ledger").ok_or_else(|| Finding::new("the attached file's schema is not there"))?;
        let mut found = Vec::new();
        for (at, row) in rows.iter().enumerate() {
            let id = id(row, 1);
            if row[0] != Value::Integer(at as i64 + 1) || row[3] != Value::Blob(self.plan.filler(id.0, id.1, 0)) {
                return Err(Finding::new(format!("attached file: row {} of {id:?} is not as written", at + 1)));
            }
            found.push(id);
        }
        let is_side = |id: &Id| self.plan.step(id.0, id.1) == Step::Side;
        if let Some(id) = found.iter().find(|id| !is_side(id)) {
            return Err(Finding::new(format!("attached file: a row of {id:?}, which wrote none")));
        }
        self.in_order(&found, is_side)?;
        let lost: Vec<_> = floor.side.iter().filter(|id| !found.contains(id)).collect();
        if lost.len() > usize::from(self.plan.side_has_journal) {
            return Err(Finding::new(format!("attached file: acknowledged and lost (task, step): {lost:?}")));
        }
        Ok(())
    }
}

fn table<'a>(tables: &'a Tables, name: &str) -> Option<&'a Vec<Vec<Value>>> {
    tables.iter().find(|(known, _)| known == name).map(|(_, rows)| rows)
}

/// The task and the step that a row names.
fn id(row: &[Value], at: usize) -> Id {
    let number = |at: usize| if let Some(Value::Integer(number)) = row.get(at) { number.unsigned_abs() } else { 0 };
    (number(at), number(at + 1))
}
