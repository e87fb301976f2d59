//! The savepoints of an open transaction: those of nested transactions, and those that have a name.
//!
//! Owns: the stack of them, and what each step does to it and to SQLite. Runs on the thread that has the transaction's
//! connection. Invariants: the stack lists the savepoints that are open in SQLite, outermost first; all of them have one
//! name there, which stands for the innermost, so that a caller's name is never part of a SQL text; a name is looked up
//! only inside the innermost nested transaction. Leaves out: how a connection is told (`Control`), and the savepoint of each request,
//! which is closed when the request is answered.

use std::time::Duration;

use crate::connection::run::hints::most_alike;
use crate::workers::Answer;
use crate::workers::open_transaction::Savepoints;
use crate::workers::work::{NamedStep, SavepointWork};
use flatwater_base::error::{Error, ErrorCode, Result};
use flatwater_base::inline::eligibility::InlineLimits;

/// A connection with savepoints: each step is one with the innermost.
pub(crate) trait Control {
    fn open_savepoint(&mut self) -> Result<()>;

    /// Closes it, and keeps its changes.
    fn release_savepoint(&mut self) -> Result<()>;

    /// Closes it, and undoes its changes.
    fn undo_savepoint(&mut self) -> Result<()>;

    /// Undoes its changes. It stays open.
    fn rollback_to_savepoint(&mut self) -> Result<()>;
}

#[derive(Debug, PartialEq, Eq)]
enum Savepoint {
    /// A nested transaction, with its number.
    Nested(u64),
    Named(Box<str>),
}

/// Savepoints with more statements are closed by the writer's thread: SQLite frees what it kept of their pages.
const FEW: u32 = 64;
/// A statement that ran there counts as so many: it may have written any number of pages.
pub(crate) const LONG: u32 = FEW + 1;

#[derive(Debug, Default)]
pub(crate) struct Stack(Vec<OpenSavepoint>);

#[derive(Debug)]
struct OpenSavepoint {
    savepoint: Savepoint,
    /// What was done since it was opened, without what was done inside a later savepoint that is still open.
    done: Done,
}

/// Statements that ran, and how long the short ones took.
#[derive(Debug, Clone, Copy, Default)]
struct Done {
    statements: u32,
    took: Duration,
}

impl Done {
    fn and(self, other: Self) -> Self {
        Self {
            statements: self.statements.saturating_add(other.statements),
            took: self.took.saturating_add(other.took),
        }
    }
}

impl Stack {
    /// Notes that a statement ran for so long, and counts as so many.
    pub(crate) fn ran(&mut self, statements: u32, took: Duration) {
        self.add(Done { statements, took });
    }

    fn add(&mut self, done: Done) {
        if let Some(innermost) = self.0.last_mut() {
            innermost.done = innermost.done.and(done);
        }
    }

    /// Returns true if the step takes SQLite no longer than a short statement.
    pub(crate) fn is_short(&self, step: &SavepointWork, limits: &InlineLimits) -> bool {
        use SavepointWork::{Named, Open, Release, Undo};
        match step {
            Open(_) | Named(NamedStep::Open, _) => true,
            Release | Named(NamedStep::Release, _) => self.inside().statements <= FEW,
            // To undo is to restore each page that was changed.
            Undo | Named(NamedStep::RollbackTo, _) => {
                let inside = self.inside();
                inside.statements <= FEW && inside.took <= limits.together()
            }
        }
    }

    /// Does the step.
    pub(crate) fn step(&mut self, on: &mut impl Control, step: &SavepointWork) -> Result<Answer> {
        let done = match step {
            SavepointWork::Open(number) => {
                return self.open(on, Savepoint::Nested(*number)).map(|()| Answer::Savepoint(*number));
            }
            SavepointWork::Release => self.release(on, self.innermost()),
            SavepointWork::Undo => self.undo(on, self.innermost()),
            SavepointWork::Named(step, name) => self.named(on, *step, name),
        };
        done.map(|()| Answer::Done)
    }

    /// What was done in the innermost nested transaction, or outside of all. Each savepoint inside is a step of its own.
    fn inside(&self) -> Done {
        let step = Done { statements: 1, took: Duration::ZERO };
        self.0[self.innermost()..].iter().fold(Done::default(), |sum, open| sum.and(open.done).and(step))
    }

    /// Returns true if the open nested transactions are those of `place`, and no others.
    pub(crate) fn is_at(&self, place: &Savepoints) -> bool {
        self.nested().eq(place.iter().copied())
    }

    pub(crate) fn has(&self, number: u64) -> bool {
        self.nested().any(|open| open == number)
    }

    /// Returns true if the nested transactions of `place` are open.
    pub(crate) fn has_place(&self, place: &Savepoints) -> bool {
        let mut nested = self.nested();
        place.iter().all(|number| nested.next() == Some(*number))
    }

    /// Goes to a place. The nested transactions inside it that have numbers below `ended` ended without being kept
    /// (dropped, leaked, or their `commit` was given up), and are undone. Refuses a place that is over, and one inside of
    /// which another nested transaction may be in use.
    pub(crate) fn unwind(&mut self, on: &mut impl Control, place: &Savepoints, ended: u64) -> Result<()> {
        if !self.has_place(place) {
            return Err(
                Error::new(ErrorCode::Finished, "the nested transaction is finished").with_hint("begin another one")
            );
        }
        if self.nested().skip(place.len()).any(|inside| inside >= ended) {
            return Err(in_use());
        }
        let inside = self.0.iter().enumerate().filter(|(_, open)| open.savepoint.is_nested()).nth(place.len());
        match inside.map(|(at, _)| at) {
            Some(at) => self.undo(on, at),
            None => Ok(()),
        }
    }

    fn open(&mut self, on: &mut impl Control, savepoint: Savepoint) -> Result<()> {
        on.open_savepoint()?;
        self.0.push(OpenSavepoint { savepoint, done: Done::default() });
        Ok(())
    }

    /// Does a step with the innermost savepoint of this name.
    fn named(&mut self, on: &mut impl Control, step: NamedStep, name: &str) -> Result<()> {
        match step {
            NamedStep::Open => self.open(on, Savepoint::Named(name.into())),
            NamedStep::Release => self.release(on, self.find(name)?),
            NamedStep::RollbackTo => {
                let at = self.find(name)?;
                self.undo(on, at + 1)?;
                on.rollback_to_savepoint()
            }
        }
    }

    fn nested(&self) -> impl Iterator<Item = u64> {
        let number =
            |open: &OpenSavepoint| if let Savepoint::Nested(number) = open.savepoint { Some(number) } else { None };
        self.0.iter().filter_map(number)
    }

    /// Returns where the innermost nested transaction is.
    fn innermost(&self) -> usize {
        self.level().saturating_sub(1)
    }

    /// Returns where the savepoints inside the innermost nested transaction begin.
    fn level(&self) -> usize {
        self.0.iter().rposition(|open| open.savepoint.is_nested()).map_or(0, |at| at + 1)
    }

    /// Returns where the savepoint of this name is.
    fn find(&self, name: &str) -> Result<usize> {
        let level = self.level();
        let (outer, inner) = self.0.split_at(level);
        inner
            .iter()
            .rposition(|open| open.savepoint.is_named(name))
            .map(|at| level + at)
            .ok_or_else(|| unknown(name, outer, inner))
    }

    /// Closes the savepoints from `at` on, and keeps their changes.
    fn release(&mut self, on: &mut impl Control, at: usize) -> Result<()> {
        while self.0.len() > at {
            on.release_savepoint()?;
            let kept = self.0.pop().map(|open| open.done).unwrap_or_default();
            self.add(kept);
        }
        Ok(())
    }

    /// Closes the savepoints from `at` on, and undoes their changes.
    fn undo(&mut self, on: &mut impl Control, at: usize) -> Result<()> {
        while self.0.len() > at {
            on.undo_savepoint()?;
            // What SQLite kept of the pages stays with the savepoint around it.
            let undone = self.0.pop().map(|open| open.done).unwrap_or_default();
            self.add(undone);
        }
        Ok(())
    }
}

impl Savepoint {
    fn is_nested(&self) -> bool {
        matches!(self, Self::Nested(_))
    }

    /// Names are compared as SQLite compares them.
    fn is_named(&self, wanted: &str) -> bool {
        matches!(self, Self::Named(name) if name.eq_ignore_ascii_case(wanted))
    }

    fn name(&self) -> Option<&str> {
        if let Self::Named(name) = self { Some(name) } else { None }
    }
}

/// Returns the error for a call that would undo a nested transaction, or would be undone with it.
#[cold]
fn in_use() -> Error {
    Error::new(ErrorCode::NestedOpen, "a nested transaction is open, and this call does not belong to it")
        .with_hint("use the nested transaction, or wait for its end; begin concurrent ones one after the other")
}

fn unknown(name: &str, outer: &[OpenSavepoint], inner: &[OpenSavepoint]) -> Error {
    let error = Error::new(ErrorCode::NoSuchSavepoint, format!("there is no savepoint \"{name}\""));
    if outer.iter().any(|open| open.savepoint.is_named(name)) {
        return error.with_hint("it belongs to the outer transaction: use it there, after this nested one has ended");
    }
    let names = inner.iter().filter_map(|open| open.savepoint.name()).map(|name| (name.to_owned(), name));
    match most_alike(name, names) {
        Some(near) => error.with_hint(format!("there is a savepoint \"{near}\"")),
        None => {
            error.with_hint("`savepoint` opens one; `release` closes it, and so does `rollback_to` of an earlier one")
        }
    }
}
