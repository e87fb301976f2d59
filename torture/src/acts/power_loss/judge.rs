//! What an image must contain.
//!
//! Owns: the check that each file contains a prefix of its commits in order, each complete; that everything else
//! follows from the ledger; that durable steps are present, and refused ones are not. Leaves out: which steps those are
//! (`said`).

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::types::Value;

use super::content::{Content, Tables};
use super::plan::{ACCOUNTS, Plan, Step};
use super::said::{Floor, Found, Id};
use crate::finding::Finding;

pub(crate) struct Judge<'a> {
    pub(crate) plan: &'a Plan,
    /// What must be present at the end of the load. A step that is not part of it may be missing.
    pub(crate) ever: &'a Floor,
}

impl Judge<'_> {
    pub(crate) fn check(&self, content: &Content, floor: &Floor) -> Result<Found, Finding> {
        let mut found = Found::default();
        if let Some(ledger) = table(&content.main, "ledger") {
            let in_order = self.ledger(ledger)?;
            self.rest(&content.main, &in_order)?;
            (found.is_made, found.main) = (true, in_order.into_iter().collect());
        } else if floor.is_made || !content.main.is_empty() {
            return Err(Finding::new("the schema is not there"));
        }
        if self.plan.has_side {
            found.side = self.side(&content.side)?;
        }
        let lost: Vec<_> = floor.main.difference(&found.main).collect();
        if !lost.is_empty() {
            return Err(Finding::new(format!("acknowledged and lost (task, step): {lost:?}")));
        }
        let lost: Vec<_> = floor.side.difference(&found.side).collect();
        if lost.len() > usize::from(self.plan.side_has_journal) {
            return Err(Finding::new(format!("attached file: acknowledged and lost (task, step): {lost:?}")));
        }
        let ghosts: Vec<_> =
            floor.refused.iter().filter(|id| found.main.contains(id) || found.side.contains(id)).collect();
        if !ghosts.is_empty() {
            return Err(Finding::new(format!("answered as not done, and there (task, step): {ghosts:?}")));
        }
        Ok(found)
    }

    /// Returns the steps in the ledger in order. They must be complete and without a gap, as they were written.
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
        in_order(&found, &self.ever.main)?;
        Ok(found)
    }

    /// Checks everything that follows from the ledger.
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

    fn side(&self, side: &Tables) -> Result<BTreeSet<Id>, Finding> {
        let rows = table(side, "side_ledger").ok_or_else(|| Finding::new("the attached file's schema is not there"))?;
        let mut found = Vec::new();
        for (at, row) in rows.iter().enumerate() {
            let id = id(row, 1);
            let is_right = row[0] == Value::Integer(at as i64 + 1)
                && row[3] == Value::Blob(self.plan.filler(id.0, id.1, 0))
                && self.plan.step(id.0, id.1) == Step::Side;
            if !is_right {
                return Err(Finding::new(format!("attached file: row {} of {id:?} is not as written", at + 1)));
            }
            found.push(id);
        }
        in_order(&found, &self.ever.side)?;
        Ok(found.into_iter().collect())
    }
}

/// Checks that each task's steps are present from its first one on. Only steps that were never acknowledged may be
/// missing.
fn in_order(found: &[Id], ever: &BTreeSet<Id>) -> Result<(), Finding> {
    let mut last = BTreeMap::new();
    for (task, step) in found {
        let before = last.insert(*task, *step).unwrap_or(0);
        let is_left_out = (before + 1..*step).any(|step| ever.contains(&(*task, step)));
        if *step <= before || is_left_out {
            return Err(Finding::new(format!("step {step} of task {task} comes right after step {before}")));
        }
    }
    Ok(())
}

fn table<'a>(tables: &'a Tables, name: &str) -> Option<&'a Vec<Vec<Value>>> {
    tables.iter().find(|(known, _)| known == name).map(|(_, rows)| rows)
}

/// Returns the task and the step that a row names.
fn id(row: &[Value], at: usize) -> Id {
    let number = |at: usize| if let Some(Value::Integer(number)) = row.get(at) { number.unsigned_abs() } else { 0 };
    (number(at), number(at + 1))
}
