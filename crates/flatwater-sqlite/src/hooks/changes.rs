//! The rows that a connection changed, as the update hook and the preupdate hook report them.
//!
//! Owns: recording them, while that is wanted. Used by the thread that is inside a SQLite call on the connection.
//! Invariant: memory is bounded: beyond [`ROWS`] rows, only the table is known. What SQLite does not report is not here
//! (<https://sqlite.org/c3ref/update_hook.html>): the rows of a table that is emptied at once, and, unless
//! [`REPORTS_ALL_ROWS`](crate::REPORTS_ALL_ROWS), rows of tables without rowids, rows that REPLACE deletes, and the old rowid
//! of a row that gets another. A row of a table without rowids has the rowid 0. Rows of a statement or a transaction that was
//! undone are reported all the same. Leaves out: the hooks (`hooks`, `preupdate`), and what the changes mean.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::CStr;

/// The maximum number of rows that are kept for a table.
pub const ROWS: usize = 4096;

/// Rows of one table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum RowSet {
    /// No row.
    #[default]
    None,
    /// The rows with these rowids, ascending.
    Some(Vec<i64>),
    /// More rows than are kept.
    Many,
}

impl RowSet {
    fn add(&mut self, rowid: i64) {
        match self {
            Self::None => *self = Self::Some(vec![rowid]),
            Self::Some(rows) if rows.last() == Some(&rowid) => {}
            Self::Some(rows) if rows.len() >= ROWS => *self = Self::Many,
            Self::Some(rows) => rows.push(rowid),
            Self::Many => {}
        }
    }

    fn sort(&mut self) {
        if let Self::Some(rows) = self {
            rows.sort_unstable();
            rows.dedup();
        }
    }
}

/// What was reported of one table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedRows {
    /// The schema: `main`, `temp` or an attached name.
    pub database: Box<str>,
    /// The table, as its definition spells it.
    pub table: Box<str>,
    /// The rows that were inserted or deleted.
    pub came_or_went: RowSet,
    /// The rows that were updated.
    pub updated: RowSet,
}

/// The rows that a connection changed, while they are recorded.
#[derive(Default)]
pub struct Changes {
    is_recording: Cell<bool>,
    tables: RefCell<Tables>,
}

#[derive(Default)]
struct Tables {
    changed: Vec<ChangedRows>,
    /// The place of the table that changed last.
    last: usize,
    /// The places of the tables with this name, of which each database has one.
    by_name: HashMap<Box<str>, Vec<usize>>,
}

impl Tables {
    fn of(&mut self, database: &str, table: &str) -> &mut ChangedRows {
        let is_it = |changed: &ChangedRows| *changed.table == *table && *changed.database == *database;
        if !self.changed.get(self.last).is_some_and(is_it) {
            let known = self.by_name.get(table).and_then(|places| places.iter().find(|at| is_it(&self.changed[**at])));
            self.last = known.copied().unwrap_or_else(|| self.add(database, table));
        }
        &mut self.changed[self.last]
    }

    fn add(&mut self, database: &str, table: &str) -> usize {
        let place = self.changed.len();
        self.by_name.entry(table.into()).or_default().push(place);
        let (came_or_went, updated) = (RowSet::None, RowSet::None);
        self.changed.push(ChangedRows { database: database.into(), table: table.into(), came_or_went, updated });
        place
    }
}

impl Changes {
    /// Returns true if changed rows are recorded.
    #[must_use]
    pub fn is_recording(&self) -> bool {
        self.is_recording.get()
    }

    /// Starts or stops recording. What was recorded is dropped.
    pub(super) fn record(&self, on: bool) {
        self.is_recording.set(on);
        drop(self.tables.take());
    }

    /// Returns what was recorded since the last call.
    #[must_use]
    pub fn take(&self) -> Vec<ChangedRows> {
        let mut tables = self.tables.take().changed;
        for changed in &mut tables {
            changed.came_or_went.sort();
            changed.updated.sort();
        }
        tables
    }

    /// Records that a row was updated, or inserted or deleted.
    pub(crate) fn note(&self, database: &CStr, table: &CStr, rowid: i64, is_update: bool) {
        let mut tables = self.tables.borrow_mut();
        let changed = tables.of(&database.to_string_lossy(), &table.to_string_lossy());
        if is_update { changed.updated.add(rowid) } else { changed.came_or_went.add(rowid) }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;

    use rusqlite::OpenFlags;

    use super::*;
    use crate::connection::Sqlite;

    fn connection() -> Sqlite {
        let connection = Sqlite::open(std::path::Path::new(":memory:"), OpenFlags::default(), None).unwrap();
        connection
            .execute_batch(
                "CREATE TABLE t (id INTEGER PRIMARY KEY, a); CREATE TABLE log (t_id);
                 CREATE TRIGGER logs AFTER UPDATE ON t BEGIN INSERT INTO log VALUES (new.id); END",
            )
            .unwrap();
        connection
    }

    fn changed(table: &str, came_or_went: RowSet, updated: RowSet) -> ChangedRows {
        ChangedRows { database: "main".into(), table: table.into(), came_or_went, updated }
    }

    #[test]
    fn rows_are_recorded_by_table_and_kind_while_that_is_wanted() {
        let connection = connection();
        connection.execute_batch("INSERT INTO t VALUES (1, 1)").unwrap();
        assert_eq!(connection.hooks().changes.take(), []);
        connection.hooks().record_changes(true);
        connection
            .execute_batch("INSERT INTO t VALUES (9, 1), (3, 1); DELETE FROM t WHERE id = 3; UPDATE t SET a = 2")
            .unwrap();
        let rows = |rows: &[i64]| RowSet::Some(rows.to_vec());
        let expected = [changed("t", rows(&[3, 9]), rows(&[1, 9])), changed("log", rows(&[1, 2]), RowSet::None)];
        assert_eq!(connection.hooks().changes.take(), expected);
        assert_eq!(connection.hooks().changes.take(), []);
        connection.execute_batch("DELETE FROM log WHERE t_id > 0").unwrap();
        connection.hooks().record_changes(false);
        assert_eq!(connection.hooks().changes.take(), []);
    }

    #[test]
    fn a_table_is_found_again_among_many_whatever_its_name() {
        let changes = Changes::default();
        let names: Vec<CString> = (0..9).map(|name| CString::new(vec![b't', 0xf0 + name]).unwrap()).collect();
        for round in 0..3 {
            for (database, table) in names.iter().flat_map(|name| [(c"main", name), (c"aux", name)]) {
                changes.note(database, table, round, false);
            }
        }
        // Their names differ in what is not UTF-8, and so are the same here.
        let rows = RowSet::Some(vec![0, 1, 2]);
        let expected = ["main", "aux"].map(|database| ChangedRows {
            database: database.into(),
            table: "t\u{fffd}".into(),
            came_or_went: rows.clone(),
            updated: RowSet::None,
        });
        assert_eq!(changes.take(), expected);
    }

    #[test]
    fn rows_without_a_report_of_the_update_hook_are_recorded_in_a_build_with_the_other_one() {
        let connection = connection();
        connection
            .execute_batch(
                "CREATE TABLE w (k PRIMARY KEY, v UNIQUE) WITHOUT ROWID; CREATE UNIQUE INDEX t_a ON t (a);
                 INSERT INTO t VALUES (1, 1), (2, 2), (3, 3); INSERT INTO w VALUES ('a', 1), ('b', 2); INSERT INTO log VALUES (1), (2)",
            )
            .unwrap();
        connection.hooks().record_changes(true);
        let all = |sql: &str| {
            connection.execute_batch(sql).unwrap();
            let changes = connection.hooks().changes.take();
            let shown = |ChangedRows { table, came_or_went, updated, .. }: &ChangedRows| {
                let rows = |word, rows: &RowSet| match rows {
                    RowSet::Some(rows) => format!("{word}{rows:?}"),
                    RowSet::None => String::new(),
                    RowSet::Many => panic!("{changes:?}"),
                };
                format!("{table} {}{}", rows("", came_or_went), rows("~", updated))
            };
            changes.iter().map(shown).collect::<Vec<_>>().join(" ")
        };
        let known = |all: &'static str, few: &'static str| if crate::REPORTS_ALL_ROWS { all } else { few };
        assert_eq!(all("REPLACE INTO t VALUES (9, 1)"), known("t [1, 9]", "t [9]"));
        assert_eq!(all("REPLACE INTO t VALUES (9, 2)"), known("t [2, 9]", "t [9]"));
        assert_eq!(all("UPDATE OR IGNORE t SET id = 7 WHERE id = 9"), known("t [7, 9]~[7] log [3]", "t ~[7] log [3]"));
        assert_eq!(all("UPDATE w SET v = 7 WHERE k = 'a'"), known("w ~[0]", ""));
        assert_eq!(all("REPLACE INTO w VALUES ('c', 7)"), known("w [0]", ""));
        assert_eq!(all("UPDATE w SET v = 9 WHERE k = 'x'; DELETE FROM w WHERE k = 'x'"), "");
        assert_eq!(all("DELETE FROM w WHERE k = 'b'"), known("w [0]", ""));
    }

    #[test]
    fn a_table_is_emptied_at_once_while_changes_are_recorded() {
        let mut connection = connection();
        connection.execute_batch("INSERT INTO log VALUES (1), (2)").unwrap();
        connection.hooks().record_changes(true);
        let programs = connection.explain("DELETE FROM log").unwrap();
        assert!(programs[0].iter().any(|op| &*op.opcode == "Clear"), "{programs:?}");
        assert!(connection.hooks().changes.is_recording());
        connection.execute_batch("INSERT INTO log VALUES (3)").unwrap();
        assert_eq!(connection.hooks().changes.take().len(), 1);
    }

    #[test]
    fn beyond_so_many_rows_only_the_table_is_known() {
        let connection = connection();
        connection.hooks().record_changes(true);
        let fill = |rows: usize| {
            format!("INSERT INTO log WITH n(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM n LIMIT {rows}) SELECT x FROM n")
        };
        connection.execute_batch(&fill(ROWS)).unwrap();
        let expected = RowSet::Some((1..=ROWS as i64).collect());
        assert_eq!(connection.hooks().changes.take(), [changed("log", expected, RowSet::None)]);
        connection.execute_batch(&fill(ROWS + 1)).unwrap();
        assert_eq!(connection.hooks().changes.take(), [changed("log", RowSet::Many, RowSet::None)]);
    }
}
