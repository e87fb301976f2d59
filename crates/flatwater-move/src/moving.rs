//! A move: copy, switch, give up.
//!
//! Owns: the order of the steps. Invariant: until the switch is over the source can go on. Leaves out: each step.

use flatwater::{Error, ErrorKind, Result, Session};

use crate::apply::add;
use crate::bound::{self, State};
use crate::compare::Pages;
use crate::log;
use crate::rows::refused;
use crate::sides::{Sides, overtaken};
use crate::table::{Order, Table, tables};

/// A move from one session to another.
pub struct Move<'a> {
    from: &'a Session,
    to: &'a Session,
}

/// What a copy did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Copied {
    /// Tables, and rows that were read.
    pub tables: usize,
    /// Rows that were copied.
    pub rows: u64,
    /// Entries of the log that were caught up with.
    pub changes: u64,
    /// Rows that differed afterwards, and were put again.
    pub repaired: usize,
    /// Rows that differed after that: programs write meanwhile, or the target refuses them.
    pub differing: usize,
}

/// What a switch did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Switched {
    /// Entries of the log that were caught up with.
    pub changes: u64,
    /// Rows that differed, and were put again.
    pub repaired: usize,
}

impl<'a> Move<'a> {
    /// Returns a move. Nothing begins. Both sessions must read the newest state: those of a server with `Level::Linearizable`.
    #[must_use]
    pub fn new(from: &'a Session, to: &'a Session) -> Self {
        Self { from, to }
    }

    /// Copies all rows while programs write to the source, and catches up with what they changed. May be called again, to catch up, and after it
    /// was stopped.
    ///
    /// # Errors
    /// `Misuse` for a table that cannot be moved, for rows that refer to others that are not there if the target enforces foreign keys, for a target that has a table with the name of one that was not copied, for another target than
    /// that of the last copy, and after a switch; the errors of both sides. The source goes on whatever fails.
    pub async fn copy(&self) -> Result<Copied> {
        let tables = tables(self.from).await?;
        self.check_references().await?;
        let run = bound::new_number(self.from).await?;
        let sides = Sides { from: self.from, to: self.to, run: &run };
        self.begin(&tables, &sides).await?;
        match self.copy_all(&tables, &sides).await {
            // A later run may have taken away what this one reads.
            Err(error) => Err(sides.why_ended(error).await),
            copied => copied,
        }
    }

    async fn copy_all(&self, tables: &[Table], sides: &Sides<'_>) -> Result<Copied> {
        sides.drop_triggers().await?;
        sides.make_tables(tables).await?;
        let mut copied = Copied { tables: tables.len(), ..Copied::default() };
        for table in tables {
            let mut pages = Pages::of_now(self.from, table, Order::Ascending).await?;
            loop {
                let rows = pages.next(None).await?;
                if rows.is_empty() {
                    break;
                }
                copied.rows += rows.len() as u64;
                sides.check().await?;
                // What is refused because of rows that are not there yet is found by the comparison.
                add(self.to, table, rows).await?;
            }
        }
        copied.changes = sides.catch_up(tables).await?;
        let repaired = sides.repair(tables).await?;
        (copied.repaired, copied.differing) = (repaired.first, repaired.last);
        match sides.make_others("index").await {
            // Rows of different times are there. The switch makes it.
            Err(error) if error.kind() == ErrorKind::Constraint => {}
            made => made?,
        }
        copied.changes += sides.catch_up(tables).await?;
        Ok(copied)
    }

    /// Makes the target the database. From the first step on the source refuses writes, with an error that names `target`. Nothing of a move
    /// is left but that.
    ///
    /// # Errors
    /// `Misuse` before a copy, for another target than that of the copy, if the tables of the source are others by now, and if the sides do
    /// not become equal; the errors of both sides. After any of them the source takes writes again, or the error says that it does not.
    pub async fn switch(&self, target: &str) -> Result<Switched> {
        let number = match bound::state(self.from).await? {
            State::Moving(number, true) => number,
            State::Moved => return Err(bound::has_moved()),
            _ => return Err(refused("nothing was copied yet".into(), "copy before")),
        };
        self.check_target(&number).await?;
        let tables = tables(self.from).await?;
        let run = bound::new_number(self.from).await?;
        let sides = Sides { from: self.from, to: self.to, run: &run };
        let done = match log::refuse_writes(self.from, &tables, target, &run).await {
            Ok(()) => self.finish(&tables, target, &sides).await,
            Err(error) => Err(error),
        };
        match done {
            Ok(switched) => Ok(switched),
            Err(error) => Err(self.go_back(&tables, &number, &sides, error).await),
        }
    }

    /// Has the source take writes again. Returns the error of the switch.
    async fn go_back(&self, tables: &[Table], number: &str, sides: &Sides<'_>, error: Error) -> Error {
        match bound::state(self.from).await {
            Ok(State::Moved) => {
                let message = format!("the switch is over and the source refuses writes, but: {error}");
                return refused(message, "have the programs use the target");
            }
            Ok(_) => {}
            Err(other) => {
                let message = format!("{error}; and it is not known whether the source refuses writes: {other}");
                return refused(message, "repeat the switch: it goes on, or says that it is over");
            }
        }
        match log::begin(self.from, tables, number, sides.run, Some(sides.run)).await {
            Ok(()) => {
                // They do no harm before the next copy, which removes them, too.
                let _ = sides.drop_triggers().await;
                error
            }
            Err(other) if other.kind() == ErrorKind::Constraint => overtaken(),
            Err(other) => refused(
                format!("{error}; and the source still refuses writes: {other}"),
                "`give-up` has it take writes again",
            ),
        }
    }

    /// Takes all of ours from the source, which goes on as if nothing had been. The target stays as it is.
    ///
    /// # Errors
    /// Those of the source.
    pub async fn give_up(&self) -> Result<()> {
        log::remove(self.from).await
    }

    /// Has the source log, and the target know of the move.
    async fn begin(&self, all: &[Table], sides: &Sides<'_>) -> Result<()> {
        match bound::state(self.from).await? {
            State::Moved => return Err(bound::has_moved()),
            State::Moving(number, true) => {
                self.check_target(&number).await?;
                log::begin(self.from, all, &number, sides.run, None).await?;
            }
            begun => {
                let there = tables(self.to).await?;
                if let Some(table) = all.iter().find(|table| there.iter().any(|other| other.name == table.name)) {
                    let hint = "move into an empty database";
                    return Err(refused(format!("the target has a table {} already", table.name), hint));
                }
                let number = match begun {
                    State::Moving(number, _) => number,
                    _ => bound::new_number(self.from).await?,
                };
                log::begin(self.from, all, &number, sides.run, None).await?;
                bound::bind(self.from, self.to, &number).await?;
            }
        }
        Ok(())
    }

    /// Refuses rows that refer to others that are not there, if the target enforces foreign keys.
    async fn check_references(&self) -> Result<()> {
        if self.to.query_optional_value::<i64>("PRAGMA foreign_keys", ()).await? != Some(1) {
            return Ok(());
        }
        let lost = "SELECT \"table\", parent, count(*) FROM pragma_foreign_key_check GROUP BY 1, 2";
        match self.from.query_as::<(String, String, i64)>(lost, ()).await?.first() {
            None => Ok(()),
            Some((table, parent, rows)) => {
                let message = format!("rows of {table} refer to rows of {parent} that are not there: {rows}");
                let hint = "PRAGMA foreign_key_check lists them; the target enforces foreign keys, so mend or delete them before";
                Err(refused(message, hint))
            }
        }
    }

    /// Refuses a target that is not the one of this move.
    async fn check_target(&self, number: &str) -> Result<()> {
        if bound::mark_of(self.to).await?.as_deref() == Some(number) {
            return Ok(());
        }
        let hint = "name that one, or give the move up and begin anew with an empty database";
        Err(refused("the source was copied to another database".into(), hint))
    }

    /// All of a switch after the source refuses writes.
    async fn finish(&self, tables: &[Table], target: &str, sides: &Sides<'_>) -> Result<Switched> {
        sides.check_schema(tables).await?;
        sides.drop_triggers().await?;
        let changes = sides.catch_up(tables).await?;
        // The log has not all: SQLite fires no trigger for a row that REPLACE removes.
        let repaired = sides.repair(tables).await?;
        if repaired.last > 0 {
            self.check_references().await?;
            let hint = "look at both sides, and move into an empty database";
            return Err(refused(format!("rows of {} do not become equal", repaired.table), hint));
        }
        sides.make_others("index").await?;
        sides.check().await?;
        sides.take_sequences().await?;
        sides.make_others("view").await?;
        sides.make_others("trigger").await?;
        log::end(self.from, tables, target, sides.run).await?;
        // It means nothing any more.
        let _ = bound::forget(self.to).await;
        Ok(Switched { changes, repaired: repaired.first })
    }
}
