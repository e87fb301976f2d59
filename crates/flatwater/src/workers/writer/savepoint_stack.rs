//! The savepoints of an open transaction: those of nested transactions, and those that have a name.
//!
//! Owns: the stack of them, and what each step does to it and to SQLite. Runs on the thread that has the transaction's
//! connection. Invariants: the stack lists the savepoints that are open in SQLite, outermost first; all of them have one
//! name there, which stands for the innermost, so that a caller's name is never part of a SQL text; a name is looked up
//! only inside the innermost nested transaction. Leaves out: the savepoint of each request, which is closed when the
//! request is answered.

use super::writer_connection::WriterConnection;
use crate::connection::run::hints::most_alike;
use crate::error::{Error, Result};
use crate::workers::open_transaction::Savepoints;
use crate::workers::work::NamedStep;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Savepoint {
    /// A nested transaction, with its number.
    Nested(u64),
    Named(Box<str>),
}

/// A nested transaction with more statements is ended by the writer's thread: SQLite frees what it kept of their pages.
const FEW: u32 = 64;
/// A statement that ran there counts as so many: it may have written any number of pages.
pub(super) const LONG: u32 = FEW + 1;

#[derive(Debug, Default)]
pub(super) struct Stack(Vec<OpenSavepoint>);

#[derive(Debug)]
struct OpenSavepoint {
    savepoint: Savepoint,
    /// The statements since it was opened, without those inside a later savepoint that is still open.
    statements: u32,
}

impl Stack {
    /// Notes that a statement ran, which counts as so many.
    pub(super) fn ran(&mut self, statements: u32) {
        if let Some(innermost) = self.0.last_mut() {
            innermost.statements = innermost.statements.saturating_add(statements);
        }
    }

    /// Returns true if keeping the innermost nested transaction takes SQLite no longer than a short statement.
    pub(super) fn is_shortly_released(&self) -> bool {
        let inside = &self.0[self.level().saturating_sub(1)..];
        // Each savepoint inside is a step of its own.
        inside.iter().fold(0, |sum: u32, open| sum.saturating_add(open.statements).saturating_add(1)) <= FEW
    }

    /// Returns true if the open nested transactions are those of `place`, and no others.
    pub(super) fn is_at(&self, place: &Savepoints) -> bool {
        self.nested().eq(place.iter().copied())
    }

    pub(super) fn has(&self, number: u64) -> bool {
        self.nested().any(|open| open == number)
    }

    /// Returns true if the nested transactions of `place` are open.
    pub(super) fn has_place(&self, place: &Savepoints) -> bool {
        let mut nested = self.nested();
        place.iter().all(|number| nested.next() == Some(*number))
    }

    /// Goes to a place. The nested transactions inside it that have numbers below `ended` ended without being kept
    /// (dropped, leaked, or their `commit` was given up), and are undone. Refuses a place that is over, and one inside of
    /// which another nested transaction may be in use.
    pub(super) fn unwind(&mut self, writer: &mut WriterConnection, place: &Savepoints, ended: u64) -> Result<()> {
        if !self.has_place(place) {
            return Err(Error::misuse("the nested transaction is finished").with_hint("begin another one"));
        }
        if self.nested().skip(place.len()).any(|inside| inside >= ended) {
            return Err(in_use());
        }
        let inside = self.0.iter().enumerate().filter(|(_, open)| open.savepoint.is_nested()).nth(place.len());
        match inside.map(|(at, _)| at) {
            Some(at) => self.undo(writer, at),
            None => Ok(()),
        }
    }

    pub(super) fn open(&mut self, writer: &mut WriterConnection, savepoint: Savepoint) -> Result<()> {
        let connection = writer.connection()?;
        connection.control.savepoint(&mut connection.sqlite)?;
        self.0.push(OpenSavepoint { savepoint, statements: 0 });
        Ok(())
    }

    /// Keeps the changes of the innermost nested transaction.
    pub(super) fn release_nested(&mut self, writer: &mut WriterConnection) -> Result<()> {
        self.release(writer, self.level().saturating_sub(1))
    }

    /// Undoes the changes of the innermost nested transaction.
    pub(super) fn undo_nested(&mut self, writer: &mut WriterConnection) -> Result<()> {
        self.undo(writer, self.level().saturating_sub(1))
    }

    /// Does a step with the innermost savepoint of this name.
    pub(super) fn named(&mut self, writer: &mut WriterConnection, step: NamedStep, name: &str) -> Result<()> {
        match step {
            NamedStep::Open => self.open(writer, Savepoint::Named(name.into())),
            NamedStep::Release => self.release(writer, self.find(name)?),
            NamedStep::RollbackTo => {
                let at = self.find(name)?;
                self.undo(writer, at + 1)?;
                let connection = writer.connection()?;
                Ok(connection.control.rollback_to(&mut connection.sqlite)?)
            }
        }
    }

    fn nested(&self) -> impl Iterator<Item = u64> {
        let number =
            |open: &OpenSavepoint| if let Savepoint::Nested(number) = open.savepoint { Some(number) } else { None };
        self.0.iter().filter_map(number)
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
    fn release(&mut self, writer: &mut WriterConnection, at: usize) -> Result<()> {
        while self.0.len() > at {
            let connection = writer.connection()?;
            connection.control.release(&mut connection.sqlite)?;
            let kept = self.0.pop().map_or(0, |open| open.statements);
            self.ran(kept);
        }
        Ok(())
    }

    /// Closes the savepoints from `at` on, and undoes their changes.
    fn undo(&mut self, writer: &mut WriterConnection, at: usize) -> Result<()> {
        while self.0.len() > at {
            let connection = writer.connection()?;
            connection.control.undo(&mut connection.sqlite)?;
            // What SQLite kept of the pages stays with the savepoint around it.
            let undone = self.0.pop().map_or(0, |open| open.statements);
            self.ran(undone);
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
    Error::misuse("a nested transaction is open, and this call does not belong to it")
        .with_hint("use the nested transaction, or wait for its end; begin concurrent ones one after the other")
}

fn unknown(name: &str, outer: &[OpenSavepoint], inner: &[OpenSavepoint]) -> Error {
    let error = Error::misuse(format!("there is no savepoint \"{name}\""));
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
