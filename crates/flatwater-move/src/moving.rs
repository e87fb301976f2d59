//! A move: copy, switch, give up.
//!
//! Owns: the order of the steps. Invariant: until the switch is over the source can go on. Leaves out: each step.

use std::collections::{HashMap, HashSet};

use flatwater::{Error, Result, Session, Value};

use crate::apply::{add, delete, put};
use crate::compare::{Pages, repair, row};
use crate::log::{self, State};
use crate::rows::{refused, same};
use crate::table::{Table, others, quoted, tables};

/// So many entries of the log are read at once.
const ENTRIES: usize = 1000;
/// What differs is put right so often, because rows may need each other.
const ROUNDS: usize = 8;

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
    /// Returns a move. Nothing begins.
    #[must_use]
    pub fn new(from: &'a Session, to: &'a Session) -> Self {
        Self { from, to }
    }

    /// Copies all rows while programs write to the source, and catches up with what they changed. May be called again, to catch up, and after it
    /// was stopped.
    ///
    /// # Errors
    /// `Misuse` for a table that cannot be moved, for a target that has a table with the name of one that was not copied, for another target than
    /// that of the last copy, and after a switch; the errors of both sides. The source goes on whatever fails.
    pub async fn copy(&self) -> Result<Copied> {
        let tables = tables(self.from).await?;
        self.begin(&tables).await?;
        let mut copied = Copied { tables: tables.len(), ..Copied::default() };
        let mut left = Vec::new();
        for table in &tables {
            let mut pages = Pages::new(self.from, table);
            loop {
                let rows = pages.next(None).await?;
                if rows.is_empty() {
                    break;
                }
                copied.rows += rows.len() as u64;
                left.push((table, add(self.to, table, rows).await?));
            }
        }
        for (table, rows) in left {
            // Those to which they refer are there by now, or the comparison finds them.
            put(self.to, table, rows).await?;
        }
        copied.changes = self.catch_up(&tables).await?;
        self.make_others("index").await?;
        copied.repaired = self.repair(&tables).await?.0;
        copied.changes += self.catch_up(&tables).await?;
        Ok(copied)
    }

    /// Makes the target the database. From the first step on the source refuses writes, with an error that names `target`. Nothing of a move
    /// is left but that.
    ///
    /// # Errors
    /// `Misuse` before a copy, for another target than that of the copy, if the tables of the source are others by now, and if the sides do
    /// not become equal; the errors of both sides. After any of them the source takes writes again, or the error says that it does not.
    pub async fn switch(&self, target: &str) -> Result<Switched> {
        let number = match log::state(self.from).await? {
            State::Moving(number, true) => number,
            State::Moved => return Err(log::has_moved()),
            _ => return Err(refused("nothing was copied yet".into(), "copy before")),
        };
        self.check_target(&number).await?;
        let tables = tables(self.from).await?;
        let done = match log::refuse_writes(self.from, &tables, target).await {
            Ok(()) => self.finish(&tables, target).await,
            Err(error) => Err(error),
        };
        match done {
            Ok(switched) => Ok(switched),
            Err(error) => Err(self.go_back(&tables, &number, error).await),
        }
    }

    /// Has the source take writes again. Returns the error of the switch.
    async fn go_back(&self, tables: &[Table], number: &str, error: Error) -> Error {
        let is_over = log::state(self.from).await.is_ok_and(|state| matches!(state, State::Moved));
        if is_over {
            return error;
        }
        // The target's do no harm before the next copy, which removes them, too.
        let _ = log::without_triggers_of_the_program(self.from, self.to).await;
        match log::begin(self.from, tables, number).await {
            Ok(()) => error,
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

    /// Has the source log, and the target know of the move, and makes the tables that the target has not.
    async fn begin(&self, all: &[Table]) -> Result<()> {
        match log::state(self.from).await? {
            State::Moved => return Err(log::has_moved()),
            State::Moving(number, true) => {
                self.check_target(&number).await?;
                log::begin(self.from, all, &number).await?;
            }
            begun => {
                let there = tables(self.to).await?;
                if let Some(table) = all.iter().find(|table| there.iter().any(|other| other.name == table.name)) {
                    let hint = "move into an empty database";
                    return Err(refused(format!("the target has a table {} already", table.name), hint));
                }
                let number = match begun {
                    State::Moving(number, _) => number,
                    _ => log::new_number(self.from).await?,
                };
                log::begin(self.from, all, &number).await?;
                log::bind(self.from, self.to, &number).await?;
            }
        }
        log::without_triggers_of_the_program(self.from, self.to).await?;
        let there = tables(self.to).await?;
        for table in all {
            match there.iter().find(|other| other.name == table.name) {
                Some(other) if other.is_like(table) => {}
                Some(_) => return Err(changed(&table.name)),
                None => drop(self.to.execute(&*table.sql, ()).await?),
            }
        }
        Ok(())
    }

    /// Refuses a target that is not the one of this move.
    async fn check_target(&self, number: &str) -> Result<()> {
        if log::mark_of(self.to).await?.as_deref() == Some(number) {
            return Ok(());
        }
        let hint = "name that one, or give the move up and begin anew with an empty database";
        Err(refused("the source was copied to another database".into(), hint))
    }

    /// Makes what the target has not of a kind.
    async fn make_others(&self, kind: &str) -> Result<()> {
        for (_, sql) in self.missing(kind).await? {
            self.to.execute(sql, ()).await?;
        }
        Ok(())
    }

    /// What the target has not of a kind.
    async fn missing(&self, kind: &str) -> Result<Vec<(String, String)>> {
        let there: HashSet<String> = others(self.to, kind).await?.into_iter().map(|(name, _)| name).collect();
        let all = others(self.from, kind).await?;
        Ok(all.into_iter().filter(|(name, _)| !there.contains(name)).collect())
    }

    /// Applies the log as it is now, until there is no entry of it that can be applied. Returns how many were.
    async fn catch_up(&self, tables: &[Table]) -> Result<u64> {
        let (mut applied, until) = (0, log::newest(self.from).await?);
        loop {
            let (mut behind, mut in_round) = (0, 0);
            loop {
                let entries = log::read(self.from, behind, until, ENTRIES).await?;
                let Some(last) = entries.last() else { break };
                behind = last.id;
                in_round += self.apply(tables, entries).await?;
            }
            if in_round == 0 {
                return Ok(applied);
            }
            applied += in_round;
        }
    }

    /// Applies entries. Those that cannot be applied stay in the log.
    async fn apply(&self, tables: &[Table], entries: Vec<log::Entry>) -> Result<u64> {
        let mut ids: HashMap<(String, String), Vec<i64>> = HashMap::new();
        let mut keys: HashMap<String, Vec<Vec<Value>>> = HashMap::new();
        for log::Entry { id, of, mut key } in entries {
            let width = tables.iter().find(|table| table.name == of).map_or(0, |table| table.key.len());
            key.truncate(width);
            let of_key = ids.entry((of.clone(), same(&key))).or_default();
            if of_key.is_empty() {
                keys.entry(of).or_default().push(key);
            }
            of_key.push(id);
        }
        let (mut gone, mut refused) = (Vec::new(), Vec::new());
        for table in tables {
            let (mut rows, mut deleted) = (Vec::new(), Vec::new());
            for key in keys.remove(&table.name).unwrap_or_default() {
                match row(self.from, table, &key).await? {
                    Some(row) => rows.push(row),
                    None => deleted.push(key),
                }
            }
            refused.extend(put(self.to, table, rows).await?.into_iter().map(|row| (table, row)));
            gone.push((table, deleted));
        }
        // Those that refer to others first.
        for (table, deleted) in gone.into_iter().rev() {
            refused.extend(delete(self.to, table, deleted).await?.into_iter().map(|key| (table, key)));
        }
        for (table, row) in refused {
            ids.remove(&(table.name.clone(), same(&row[..table.key.len()])));
        }
        let applied: Vec<i64> = ids.into_values().flatten().collect();
        let number = applied.len() as u64;
        log::forget(self.from, applied).await?;
        Ok(number)
    }

    /// Compares all tables, until nothing differs or it was done too often. Returns how many rows differed at first, and at last.
    async fn repair(&self, tables: &[Table]) -> Result<(usize, usize)> {
        let mut first = None;
        for round in 1.. {
            let mut differ = 0;
            for table in tables {
                differ += repair(self.from, self.to, table).await?;
            }
            let first = *first.get_or_insert(differ);
            if differ == 0 || round == ROUNDS {
                return Ok((first, differ));
            }
        }
        unreachable!("the last round returns")
    }

    /// All of a switch after the source refuses writes.
    async fn finish(&self, tables: &[Table], target: &str) -> Result<Switched> {
        self.check_schema(tables).await?;
        log::without_triggers_of_the_program(self.from, self.to).await?;
        let changes = self.catch_up(tables).await?;
        self.make_others("index").await?;
        // The log has not all: SQLite fires no trigger for a row that REPLACE removes.
        let (repaired, differ) = self.repair(tables).await?;
        if differ > 0 {
            let hint = "look at both sides, and move into an empty database";
            return Err(refused(format!("{differ} rows do not become equal"), hint));
        }
        self.take_sequences().await?;
        self.make_others("view").await?;
        self.make_others("trigger").await?;
        log::end(self.from, self.to, tables, target).await?;
        Ok(Switched { changes, repaired })
    }

    /// Refuses a source that has got other tables since the copy.
    async fn check_schema(&self, refusing: &[Table]) -> Result<()> {
        let (now, there) = (tables(self.from).await?, tables(self.to).await?);
        let has = |all: &[Table], table: &Table| all.iter().any(|other| other.is_like(table));
        match now.iter().find(|table| !has(refusing, table) || !has(&there, table)) {
            Some(table) => Err(changed(&table.name)),
            None => Ok(()),
        }
    }

    /// Takes the highest numbers of AUTOINCREMENT over.
    async fn take_sequences(&self) -> Result<()> {
        let has = "SELECT count(*) FROM sqlite_schema WHERE name = 'sqlite_sequence'";
        if self.from.query_value::<i64>(has, ()).await? == 0 || self.to.query_value::<i64>(has, ()).await? == 0 {
            return Ok(());
        }
        let all = "SELECT name, seq FROM sqlite_sequence WHERE substr(name, 1, 11) <> '_flatwater_'";
        for (name, number) in self.from.query_as::<(String, i64)>(all, ()).await? {
            let update = format!("UPDATE {} SET seq = ? WHERE name = ?", quoted("sqlite_sequence"));
            if self.to.execute(update, (number, &*name)).await?.changes == 0 {
                self.to.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", (&*name, number)).await?;
            }
        }
        Ok(())
    }
}

/// The error of a table that has changed since it was copied.
fn changed(table: &str) -> Error {
    let hint =
        "copy again; if the target has it in an older form, give the move up and begin anew with an empty database";
    refused(format!("the table {table} is not as it was copied"), hint)
}
