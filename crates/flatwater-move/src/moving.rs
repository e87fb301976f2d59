//! A move: copy, switch, give up.
//!
//! Owns: the order of the steps. Invariant: until the switch is over the source can go on. Leaves out: each step.

use std::collections::{HashMap, HashSet};

use flatwater::{Result, Session, Value};

use crate::apply::{add, delete, put};
use crate::compare::{count, page, repair, row};
use crate::log;
use crate::rows::{Values, refused, same};
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
    /// `Misuse` for a table that cannot be moved, and for a target that has a table with the name of one that was not copied; the errors of
    /// both sides. The source goes on whatever fails.
    pub async fn copy(&self) -> Result<Copied> {
        let tables = tables(self.from).await?;
        let has_begun = self.has_log().await?;
        self.make(&tables, has_begun).await?;
        log::begin(self.from, &tables).await?;
        let mut copied = Copied { tables: tables.len(), ..Copied::default() };
        let mut refused = Vec::new();
        for table in &tables {
            let mut behind = None::<Values>;
            loop {
                let rows = page(self.from, table, behind.as_deref()).await?;
                let Some(last) = rows.last() else { break };
                behind = Some(last[..table.key.len()].to_vec());
                copied.rows += rows.len() as u64;
                refused.push((table, add(self.to, table, rows).await?));
            }
        }
        for (table, rows) in refused {
            // Those to which they refer are there by now, or the comparison finds them.
            put(self.to, table, rows).await?;
        }
        copied.changes = self.catch_up(&tables).await?;
        for (_, sql) in self.missing("index").await? {
            self.to.execute(sql, ()).await?;
        }
        copied.repaired = self.repair(&tables).await?;
        copied.changes += self.catch_up(&tables).await?;
        Ok(copied)
    }

    /// Makes the target the database. From the first step on the source refuses writes, with an error that names `target`.
    ///
    /// # Errors
    /// `Misuse` before a copy, and if the sides do not become equal; the errors of both sides. After any of them the source takes writes again.
    pub async fn switch(&self, target: &str) -> Result<Switched> {
        let tables = tables(self.from).await?;
        if !self.has_log().await? {
            return Err(refused("nothing was copied yet".into(), "copy before"));
        }
        log::refuse_writes(self.from, &tables, target).await?;
        match self.finish(&tables).await {
            Ok(switched) => Ok(switched),
            Err(error) => {
                // If that fails too, `give_up` does it.
                let _ = log::take_writes(self.from, &tables).await;
                Err(error)
            }
        }
    }

    /// Takes all of ours from the source, which goes on as if nothing had been. The target stays as it is.
    ///
    /// # Errors
    /// Those of the source.
    pub async fn give_up(&self) -> Result<()> {
        log::remove(self.from).await
    }

    async fn has_log(&self) -> Result<bool> {
        let log = "SELECT count(*) FROM sqlite_schema WHERE name = '_flatwater_moving'";
        Ok(self.from.query_value::<i64>(log, ()).await? > 0)
    }

    /// Makes the tables that the target has not.
    async fn make(&self, all: &[Table], has_begun: bool) -> Result<()> {
        let there: HashSet<String> = tables(self.to).await?.into_iter().map(|table| table.name).collect();
        if let Some(table) = all.iter().find(|table| !has_begun && there.contains(&table.name)) {
            let hint = "move into an empty database";
            return Err(refused(format!("the target has a table {} already", table.name), hint));
        }
        for table in all.iter().filter(|table| !there.contains(&table.name)) {
            self.to.execute(&*table.sql, ()).await?;
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

    /// Compares all tables, until nothing differs, or not fewer rows do. Returns how many did at first.
    async fn repair(&self, tables: &[Table]) -> Result<usize> {
        let mut first = None;
        for _ in 0..ROUNDS {
            let mut differ = 0;
            for table in tables {
                differ += repair(self.from, self.to, table).await?;
            }
            first = first.or(Some(differ));
            if differ == 0 {
                break;
            }
        }
        Ok(first.unwrap_or_default())
    }

    /// All of a switch after the source refuses writes.
    async fn finish(&self, tables: &[Table]) -> Result<Switched> {
        let mut switched = Switched { changes: self.catch_up(tables).await?, repaired: 0 };
        // What could not be applied, and what the log does not have.
        let is_whole = log::newest(self.from).await? == 0 && self.have_equal_counts(tables).await?;
        if !is_whole {
            switched.repaired = self.repair(tables).await?;
            for table in tables {
                if repair(self.from, self.to, table).await? > 0 {
                    let hint = "look at the table on both sides, and move it into an empty database";
                    return Err(refused(format!("the rows of {} do not become equal", table.name), hint));
                }
            }
        }
        self.take_sequences().await?;
        for kind in ["view", "trigger"] {
            for (_, sql) in self.missing(kind).await? {
                self.to.execute(sql, ()).await?;
            }
        }
        Ok(switched)
    }

    async fn have_equal_counts(&self, tables: &[Table]) -> Result<bool> {
        for table in tables {
            if count(self.from, table).await? != count(self.to, table).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Takes the highest numbers of AUTOINCREMENT over.
    async fn take_sequences(&self) -> Result<()> {
        let has = "SELECT count(*) FROM sqlite_schema WHERE name = 'sqlite_sequence'";
        if self.from.query_value::<i64>(has, ()).await? == 0 || self.to.query_value::<i64>(has, ()).await? == 0 {
            return Ok(());
        }
        let all = "SELECT name, seq FROM sqlite_sequence WHERE name <> '_flatwater_moving'";
        for (name, number) in self.from.query_as::<(String, i64)>(all, ()).await? {
            let update = format!("UPDATE {} SET seq = ? WHERE name = ?", quoted("sqlite_sequence"));
            if self.to.execute(update, (number, &*name)).await?.changes == 0 {
                self.to.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", (&*name, number)).await?;
            }
        }
        Ok(())
    }
}
