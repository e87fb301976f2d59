//! Which live queries a change meets: an inverted index by table, then by the reads of a text, then by row. Pure.
//!
//! Owns: the index. Invariant: looking a change up costs one comparison for each text that reads one of its tables, and
//! one for each row, however many live queries there are; and then one step for each query that it meets. Leaves out:
//! the rules (`change`), and running queries.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use flatwater_sqlite::RowSet;

use super::change::{Change, Met};
use super::reads::{Reads, TableReads};

/// The number of a live query.
pub(crate) type Id = u64;

/// The rows that one live query reads of a table, if it reads no others.
pub(crate) type Rows = Option<Vec<i64>>;

#[derive(Debug, Default)]
pub(crate) struct Index {
    /// What every commit meets.
    every_commit: HashSet<Id>,
    tables: HashMap<Box<str>, Vec<Readers>>,
}

/// The live queries with the same reads of one table.
#[derive(Debug)]
struct Readers {
    reads: Arc<Reads>,
    /// Which of its tables.
    at: usize,
    /// Those that read any row.
    any: HashSet<Id>,
    by_row: HashMap<i64, Vec<Id>>,
}

/// How a live query was met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Precision {
    /// By a row that it looks up.
    Row,
    /// By a column that an UPDATE set, while no row came or went.
    Column,
    Table,
    EveryCommit,
}

impl Readers {
    fn reads(&self) -> &TableReads {
        match &*self.reads {
            Reads::Tables(tables) => &tables[self.at],
            Reads::EveryCommit => unreachable!("it reads a table"),
        }
    }

    fn is_empty(&self) -> bool {
        self.any.is_empty() && self.by_row.is_empty()
    }
}

impl Index {
    /// Adds a live query. `rows` tells for a table, and its position in the reads, which rows it reads.
    pub(crate) fn add(&mut self, id: Id, reads: &Arc<Reads>, rows: impl Fn(usize, &TableReads) -> Rows) {
        let Reads::Tables(tables) = &**reads else {
            self.every_commit.insert(id);
            return;
        };
        for (at, table) in tables.iter().enumerate() {
            let known = self.tables.entry(table.table.clone()).or_default();
            let place = known.iter().position(|readers| Arc::ptr_eq(&readers.reads, reads));
            let place = place.unwrap_or_else(|| {
                known.push(Readers { reads: reads.clone(), at, any: HashSet::new(), by_row: HashMap::new() });
                known.len() - 1
            });
            match rows(at, table) {
                None => {
                    known[place].any.insert(id);
                }
                Some(rows) => rows.into_iter().for_each(|row| {
                    let ids = known[place].by_row.entry(row).or_default();
                    if !ids.contains(&id) {
                        ids.push(id);
                    }
                }),
            }
        }
    }

    /// Removes a live query that was added with these reads and rows.
    pub(crate) fn remove(&mut self, id: Id, reads: &Arc<Reads>, rows: impl Fn(usize, &TableReads) -> Rows) {
        let Reads::Tables(tables) = &**reads else {
            self.every_commit.remove(&id);
            return;
        };
        for (at, table) in tables.iter().enumerate() {
            let Some(known) = self.tables.get_mut(&table.table) else { continue };
            for readers in known.iter_mut().filter(|readers| Arc::ptr_eq(&readers.reads, reads)) {
                readers.any.remove(&id);
                for row in rows(at, table).into_iter().flatten() {
                    if let Some(ids) = readers.by_row.get_mut(&row) {
                        ids.retain(|known| *known != id);
                        if ids.is_empty() {
                            readers.by_row.remove(&row);
                        }
                    }
                }
            }
            known.retain(|readers| !readers.is_empty());
            if known.is_empty() {
                self.tables.remove(&table.table);
            }
        }
    }

    /// Calls `meet` for each live query that the change meets, maybe more than once. The caller handles
    /// [`Change::Everything`].
    pub(crate) fn look_up(&self, change: &Change, mut meet: impl FnMut(Id, Precision)) {
        self.every_commit.iter().for_each(|id| meet(*id, Precision::EveryCommit));
        let Change::Tables(tables) = change else { return };
        for table in tables.iter().filter(|table| &*table.writes.database == "main") {
            for readers in self.tables.get(&table.writes.table).into_iter().flatten() {
                let met = table.meets(readers.reads());
                if met == Met::Nothing {
                    continue;
                }
                let precision = if table.writes.has_other_rows { Precision::Table } else { Precision::Column };
                readers.any.iter().for_each(|id| meet(*id, precision));
                match met {
                    Met::Rows(sets) => readers.look_up_rows(sets, &mut meet),
                    _ => readers.by_row.values().flatten().for_each(|id| meet(*id, precision)),
                }
            }
        }
    }
}

impl Readers {
    fn look_up_rows(&self, sets: [&RowSet; 2], meet: &mut impl FnMut(Id, Precision)) {
        for rows in sets {
            let RowSet::Some(rows) = rows else { continue };
            let found = rows.iter().filter_map(|row| self.by_row.get(row));
            found.flatten().for_each(|id| meet(*id, Precision::Row));
        }
    }
}
