//! Which live queries a change invalidates: an inverted index by table, then by the reads of a text, then by row. Pure.
//!
//! Owns: the index. Invariant: looking a change up costs one comparison for each text that reads one of its tables, and
//! one for each row, however many live queries there are; and then one step for each query that it invalidates. Adding
//! and removing one takes a step for each table and row that it reads. Leaves out: the rules (`change`), and running
//! queries.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use flatwater_sqlite::RowSet;

use super::change::{Change, Invalidated};
use super::reads::{Reads, TableReads};
use flatwater_base::growth_counter::step;

/// The number of a live query.
pub type Id = u64;

/// The rows that one live query reads of a table, if it reads no others.
pub type Rows = Option<Vec<i64>>;

/// Which queries read what.
#[derive(Debug, Default)]
pub struct Index {
    /// What every commit invalidates.
    every_commit: HashSet<Id>,
    /// By table, and by the address of the reads, which each entry keeps.
    tables: HashMap<Box<str>, HashMap<usize, Dependents>>,
}

/// The live queries with the same reads of one table.
#[derive(Debug)]
struct Dependents {
    reads: Arc<Reads>,
    /// Which of its tables.
    at: usize,
    /// Those that read any row.
    any: HashSet<Id>,
    by_row: HashMap<i64, HashSet<Id>>,
}

/// How a live query was invalidated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    /// By a row that it looks up.
    Row,
    /// By a column that an UPDATE set, while no row came or went.
    Column,
    /// By its table.
    Table,
    /// By anything.
    EveryCommit,
}

impl Dependents {
    fn reads(&self) -> &TableReads {
        match &*self.reads {
            Reads::Tables(tables) => &tables[self.at],
            Reads::EveryCommit => unreachable!("it reads a table"),
        }
    }

    fn is_empty(&self) -> bool {
        self.any.is_empty() && self.by_row.is_empty()
    }

    fn look_up_rows(&self, sets: [&RowSet; 2], invalidate: &mut impl FnMut(Id, Precision)) {
        for rows in sets {
            let RowSet::Some(rows) = rows else { continue };
            let found = rows.iter().filter_map(|row| self.by_row.get(row));
            found.flatten().for_each(|id| invalidate(*id, Precision::Row));
        }
    }
}

fn address(reads: &Arc<Reads>) -> usize {
    Arc::as_ptr(reads).addr()
}

impl Index {
    /// Adds a live query. `rows` tells for a table, and its position in the reads, which rows it reads.
    pub fn add(&mut self, id: Id, reads: &Arc<Reads>, rows: impl Fn(usize, &TableReads) -> Rows) {
        let Reads::Tables(tables) = &**reads else {
            self.every_commit.insert(id);
            return;
        };
        for (at, table) in tables.iter().enumerate() {
            step(1);
            let known = self.tables.entry(table.table.clone()).or_default();
            let readers = known.entry(address(reads)).or_insert_with(|| Dependents {
                reads: reads.clone(),
                at,
                any: HashSet::new(),
                by_row: HashMap::new(),
            });
            match rows(at, table) {
                None => {
                    readers.any.insert(id);
                }
                Some(rows) => rows.into_iter().for_each(|row| {
                    step(1);
                    readers.by_row.entry(row).or_default().insert(id);
                }),
            }
        }
    }

    /// Removes a live query that was added with these reads and rows.
    pub fn remove(&mut self, id: Id, reads: &Arc<Reads>, rows: impl Fn(usize, &TableReads) -> Rows) {
        let Reads::Tables(tables) = &**reads else {
            self.every_commit.remove(&id);
            return;
        };
        for (at, table) in tables.iter().enumerate() {
            let Some(known) = self.tables.get_mut(&table.table) else { continue };
            if let Some(readers) = known.get_mut(&address(reads)) {
                readers.any.remove(&id);
                for row in rows(at, table).into_iter().flatten() {
                    step(1);
                    if let Some(ids) = readers.by_row.get_mut(&row) {
                        ids.remove(&id);
                        if ids.is_empty() {
                            readers.by_row.remove(&row);
                        }
                    }
                }
                if readers.is_empty() {
                    known.remove(&address(reads));
                }
            }
            if known.is_empty() {
                self.tables.remove(&table.table);
            }
        }
    }

    /// Calls `invalidate` for each live query that the change invalidates, maybe more than once. The caller handles
    /// [`Change::Everything`].
    pub fn look_up(&self, change: &Change, mut invalidate: impl FnMut(Id, Precision)) {
        self.every_commit.iter().for_each(|id| invalidate(*id, Precision::EveryCommit));
        let Change::Tables(tables) = change else { return };
        for table in tables.iter().filter(|table| &*table.writes.database == "main") {
            for readers in self.tables.get(&table.writes.table).into_iter().flat_map(HashMap::values) {
                step(1);
                let invalidated = table.invalidates(readers.reads());
                if invalidated == Invalidated::Nothing {
                    continue;
                }
                let precision = if table.writes.has_other_rows { Precision::Table } else { Precision::Column };
                readers.any.iter().for_each(|id| invalidate(*id, precision));
                match invalidated {
                    Invalidated::Rows(sets) => readers.look_up_rows(sets, &mut invalidate),
                    _ => readers.by_row.values().flatten().for_each(|id| invalidate(*id, precision)),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use flatwater_sqlite::ChangedRows;

    use super::*;
    use crate::dependencies::Columns;
    use crate::dependencies::change::{TableWrites, Writes, Written};
    use crate::dependencies::reads::RowReads;

    fn reads(table: &str, column: &str) -> Arc<Reads> {
        Arc::new(Reads::Tables(vec![TableReads {
            table: table.into(),
            columns: Columns::Some(vec![column.into()]),
            rows: RowReads::Any,
            are_rows_reported: true,
            may_be_replaced: false,
            has_generated: false,
            rowid_aliases: vec!["ROWID".into()],
        }]))
    }

    /// An UPDATE of one column in one row.
    fn update(table: &str, column: &str, row: i64) -> Change {
        let columns = Columns::Some(vec![column.into()]);
        let (database, table): (Box<str>, Box<str>) = ("main".into(), table.into());
        let writes = TableWrites {
            database: database.clone(),
            table: table.clone(),
            has_other_rows: false,
            columns,
            is_unreported: false,
        };
        let mut written = Written::default();
        written.add(&Writes::Tables(vec![writes]));
        let updated = RowSet::Some(vec![row]);
        Change::of(written, vec![ChangedRows { database, table, came_or_went: RowSet::None, updated }])
    }

    fn invalidated(index: &Index, change: &Change) -> Vec<(Id, Precision)> {
        let mut invalidated = Vec::new();
        index.look_up(change, |id, precision| invalidated.push((id, precision)));
        invalidated.sort_by_key(|(id, _)| *id);
        invalidated
    }

    #[test]
    fn a_change_invalidates_by_table_column_and_row() {
        let (mut index, of_t, of_b, of_u) = (Index::default(), reads("t", "a"), reads("t", "b"), reads("u", "a"));
        index.add(1, &of_t, |_, _| None);
        index.add(2, &of_t, |_, _| Some(vec![7]));
        index.add(3, &of_t, |_, _| Some(vec![8, 7]));
        index.add(4, &of_b, |_, _| None);
        index.add(5, &of_u, |_, _| None);
        index.add(6, &Arc::new(Reads::EveryCommit), |_, _| None);
        let every = (6, Precision::EveryCommit);
        let by_row = [(1, Precision::Column), (2, Precision::Row), (3, Precision::Row), every];
        assert_eq!(invalidated(&index, &update("t", "a", 7)), by_row);
        assert_eq!(invalidated(&index, &update("t", "a", 8)), [(1, Precision::Column), (3, Precision::Row), every]);
        assert_eq!(invalidated(&index, &update("t", "b", 8)), [(4, Precision::Column), every]);
        assert_eq!(invalidated(&index, &update("x", "b", 8)), [every]);
        index.remove(3, &of_t, |_, _| Some(vec![8, 7]));
        index.remove(1, &of_t, |_, _| None);
        assert_eq!(invalidated(&index, &update("t", "a", 7)), [(2, Precision::Row), every]);
        index.remove(2, &of_t, |_, _| Some(vec![7]));
        index.remove(4, &of_b, |_, _| None);
        index.remove(5, &of_u, |_, _| None);
        index.remove(6, &Arc::new(Reads::EveryCommit), |_, _| None);
        assert!(index.tables.is_empty() && index.every_commit.is_empty(), "{index:?}");
    }
}
