//! What one statement may change, what one use of the writer slot changed, and whether that invalidates a query. Pure.
//!
//! Owns: reading the authorizer's events of one prepare as writes, joining the writes of statements with the rows that SQLite
//! reported, and the rules of precision. Invariants: a statement changes nothing that its writes do not cover; a change invalidates
//! every query whose result it can have changed. Leaves out: which queries there are (`index`).

use flatwater_sqlite::{AuthEvent, ChangedRows, RowSet};
use rusqlite::ffi;

use super::Columns;
use super::reads::TableReads;

/// What a statement may change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Writes {
    /// Anything, the schema included.
    Everything,
    /// These tables.
    Tables(Vec<TableWrites>),
}

/// What a statement may change of one table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableWrites {
    /// The schema: `main`, `temp` or an attached name.
    pub database: Box<str>,
    /// The table.
    pub table: Box<str>,
    /// Rows may come or go.
    pub has_other_rows: bool,
    /// The columns that an UPDATE sets.
    pub columns: Columns,
    /// Rows may go of which SQLite reports nothing.
    pub is_unreported: bool,
}

/// What the text of a statement shows, where the events do not.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unreported {
    /// It may replace rows.
    pub replaces: bool,
    /// It is a DELETE without WHERE.
    pub empties: bool,
}

impl Writes {
    /// Returns the writes of a statement that only writes rows.
    pub fn of_rows(events: &[AuthEvent], unreported: Unreported) -> Self {
        let mut tables: Vec<TableWrites> = Vec::new();
        for event in events {
            let has_other_rows = match event.action {
                ffi::SQLITE_INSERT | ffi::SQLITE_DELETE => true,
                ffi::SQLITE_UPDATE => false,
                _ => continue,
            };
            let (Some(table), Some(database)) = (&event.first, &event.database) else { return Self::Everything };
            let at = tables.iter().position(|known| known.table == *table && known.database == *database);
            let at = at.unwrap_or_else(|| {
                tables.push(TableWrites {
                    database: database.clone(),
                    table: table.clone(),
                    has_other_rows: unreported.replaces,
                    columns: Columns::NONE,
                    is_unreported: unreported.replaces,
                });
                tables.len() - 1
            });
            let writes = &mut tables[at];
            writes.has_other_rows |= has_other_rows;
            // A trigger's DELETE may have no WHERE, too.
            let may_empty = unreported.empties || event.accessor.is_some();
            writes.is_unreported |= event.action == ffi::SQLITE_DELETE && may_empty;
            if !has_other_rows {
                match &event.second {
                    Some(column) => writes.columns.add(column),
                    None => writes.columns = Columns::All,
                }
            }
        }
        Self::Tables(tables)
    }
}

/// What may have changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Anything, the schema included.
    Everything,
    /// These tables.
    Tables(Vec<TableChange>),
}

/// What may have changed of one table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableChange {
    /// What was written.
    pub writes: TableWrites,
    /// The rows that came or went, as far as they were reported.
    came_or_went: RowSet,
    /// The rows that were updated, as far as they were reported.
    updated: RowSet,
}

/// The rows of a query's table that a change invalidates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Invalidated<'a> {
    /// No row of the query.
    Nothing,
    /// Rows of these sets.
    Rows([&'a RowSet; 2]),
    /// All rows of the query.
    All,
}

/// The writes of the statements that ran since the last commit was published.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Written {
    everything: bool,
    tables: Vec<TableWrites>,
}

impl Written {
    /// Adds what a statement writes.
    pub fn add(&mut self, writes: &Writes) {
        let Writes::Tables(tables) = writes else { return self.add_everything() };
        if self.everything {
            return;
        }
        for writes in tables {
            let is_it = |known: &&mut TableWrites| known.table == writes.table && known.database == writes.database;
            match self.tables.iter_mut().find(is_it) {
                Some(known) => {
                    known.has_other_rows |= writes.has_other_rows;
                    known.is_unreported |= writes.is_unreported;
                    known.columns.add_all(&writes.columns);
                }
                None => self.tables.push(writes.clone()),
            }
        }
    }

    /// Returns true if nothing was written.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Anything may have been written.
    pub fn add_everything(&mut self) {
        *self = Self { everything: true, tables: Vec::new() };
    }
}

impl Change {
    /// Joins what the statements may have written with the rows that were reported meanwhile.
    pub fn of(written: Written, rows: Vec<ChangedRows>) -> Self {
        if written.everything {
            return Self::Everything;
        }
        let unreported = |writes| TableChange { writes, came_or_went: RowSet::None, updated: RowSet::None };
        let mut tables: Vec<_> = written.tables.into_iter().map(unreported).collect();
        for ChangedRows { database, table, came_or_went, updated } in rows {
            let is_it = |change: &&mut TableChange| change.writes.table == table && change.writes.database == database;
            if let Some(change) = tables.iter_mut().find(is_it) {
                (change.came_or_went, change.updated) = (came_or_went, updated);
                continue;
            }
            // A virtual table wrote it.
            let columns = if updated == RowSet::None { Columns::NONE } else { Columns::All };
            let has_other_rows = came_or_went != RowSet::None;
            let writes = TableWrites { database, table, has_other_rows, columns, is_unreported: false };
            tables.push(TableChange { writes, came_or_went, updated });
        }
        Self::Tables(tables)
    }
}

impl TableChange {
    /// Returns which rows this change invalidates of a table that a query reads.
    pub fn invalidates(&self, reads: &TableReads) -> Invalidated<'_> {
        let writes = &self.writes;
        // Rows that are replaced go without a report, and each statement may replace.
        let has_other_rows = writes.has_other_rows || reads.may_be_replaced;
        let sets_columns = match (writes.columns.is_empty(), reads.has_generated) {
            (true, _) => false,
            (false, true) => true,
            (false, false) => writes.columns.overlap(&reads.columns),
        };
        let moves_rows = reads.rowid_aliases.iter().any(|alias| writes.columns.has(alias));
        let are_reported = reads.are_rows_reported && !reads.may_be_replaced && !writes.is_unreported && !moves_rows;
        if !are_reported {
            let is_invalidated = has_other_rows || sets_columns || moves_rows;
            return if is_invalidated { Invalidated::All } else { Invalidated::Nothing };
        }
        let updated = if sets_columns { &self.updated } else { &RowSet::None };
        match (&self.came_or_went, updated) {
            (RowSet::None, RowSet::None) => Invalidated::Nothing,
            (RowSet::Many, _) | (_, RowSet::Many) => Invalidated::All,
            (came_or_went, updated) => Invalidated::Rows([came_or_went, updated]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dependencies::reads::RowReads;

    fn event(action: i32, table: &str, column: Option<&str>, accessor: Option<&str>) -> AuthEvent {
        AuthEvent {
            action,
            first: Some(table.into()),
            second: column.map(Into::into),
            database: Some("main".into()),
            accessor: accessor.map(Into::into),
        }
    }

    fn writes(table: &str, has_other_rows: bool, columns: &[&str], is_unreported: bool) -> TableWrites {
        let columns = Columns::Some(columns.iter().map(|column| (*column).into()).collect());
        TableWrites { database: "main".into(), table: table.into(), has_other_rows, columns, is_unreported }
    }

    #[test]
    fn the_events_of_a_table_are_its_writes() {
        let upsert = [
            event(ffi::SQLITE_READ, "other", Some("a"), None),
            event(ffi::SQLITE_INSERT, "t", None, None),
            event(ffi::SQLITE_UPDATE, "t", Some("b"), None),
            event(ffi::SQLITE_UPDATE, "t", Some("a"), None),
            event(ffi::SQLITE_UPDATE, "log", Some("n"), Some("trigger")),
        ];
        let expected = vec![writes("t", true, &["a", "b"], false), writes("log", false, &["n"], false)];
        assert_eq!(Writes::of_rows(&upsert, Unreported::default()), Writes::Tables(expected));
    }

    #[test]
    fn rows_may_go_without_a_report_by_replace_by_a_delete_without_where_and_by_a_trigger() {
        let update = [event(ffi::SQLITE_UPDATE, "t", Some("b"), None)];
        let replaces = Unreported { replaces: true, empties: false };
        assert_eq!(Writes::of_rows(&update, replaces), Writes::Tables(vec![writes("t", true, &["b"], true)]));
        let delete = [event(ffi::SQLITE_DELETE, "t", None, None)];
        let empties = Unreported { replaces: false, empties: true };
        assert_eq!(Writes::of_rows(&delete, empties), Writes::Tables(vec![writes("t", true, &[], true)]));
        assert_eq!(
            Writes::of_rows(&delete, Unreported::default()),
            Writes::Tables(vec![writes("t", true, &[], false)])
        );
        let by_trigger = [event(ffi::SQLITE_DELETE, "t", None, Some("trigger"))];
        assert_eq!(
            Writes::of_rows(&by_trigger, Unreported::default()),
            Writes::Tables(vec![writes("t", true, &[], true)])
        );
    }

    fn columns(names: &[&str]) -> Columns {
        Columns::Some(names.iter().map(|name| (*name).into()).collect())
    }

    fn reads(names: &[&str]) -> TableReads {
        TableReads {
            table: "t".into(),
            columns: columns(names),
            rows: RowReads::Any,
            are_rows_reported: true,
            may_be_replaced: false,
            has_generated: false,
            rowid_aliases: vec!["id".into(), "ROWID".into()],
        }
    }

    fn written(has_other_rows: bool, names: &[&str], is_unreported: bool) -> Written {
        let (database, table) = ("main".into(), "t".into());
        let writes = TableWrites { database, table, has_other_rows, columns: columns(names), is_unreported };
        let mut written = Written::default();
        written.add(&Writes::Tables(vec![writes]));
        written
    }

    fn rows(came_or_went: &[i64], updated: &[i64]) -> Vec<ChangedRows> {
        let set = |rows: &[i64]| if rows.is_empty() { RowSet::None } else { RowSet::Some(rows.to_vec()) };
        let (database, table) = ("main".into(), "t".into());
        vec![ChangedRows { database, table, came_or_went: set(came_or_went), updated: set(updated) }]
    }

    fn invalidated(written: Written, rows: Vec<ChangedRows>, reads: &TableReads) -> String {
        let Change::Tables(tables) = Change::of(written, rows) else { return "everything".into() };
        match tables[0].invalidates(reads) {
            Invalidated::Nothing => "nothing".into(),
            Invalidated::All => "whole".into(),
            Invalidated::Rows(sets) => {
                let all: Vec<_> = sets
                    .iter()
                    .filter_map(|set| if let RowSet::Some(rows) = set { Some(rows) } else { None })
                    .collect();
                format!("{all:?}")
            }
        }
    }

    #[test]
    fn what_is_reported_invalidates_by_row_and_column() {
        assert_eq!(invalidated(written(true, &[], false), rows(&[1, 2], &[]), &reads(&["a"])), "[[1, 2]]");
        assert_eq!(invalidated(written(false, &["a"], false), rows(&[], &[7]), &reads(&["a"])), "[[7]]");
        assert_eq!(invalidated(written(false, &["b"], false), rows(&[], &[7]), &reads(&["a"])), "nothing");
        assert_eq!(invalidated(written(true, &["b"], false), rows(&[3], &[7]), &reads(&[])), "[[3]]");
        assert_eq!(invalidated(written(true, &["a"], false), vec![], &reads(&["a"])), "nothing", "no row was there");
        let many = vec![ChangedRows { updated: RowSet::Many, ..rows(&[1], &[])[0].clone() }];
        assert_eq!(invalidated(written(true, &["a"], false), many, &reads(&["a"])), "whole");
    }

    #[test]
    fn what_may_be_unreported_invalidates_the_table() {
        assert_eq!(invalidated(written(true, &[], true), vec![], &reads(&["a"])), "whole", "REPLACE, or emptied");
        assert_eq!(
            invalidated(written(false, &["id"], false), rows(&[], &[7]), &reads(&["a"])),
            "whole",
            "the old rowid"
        );
        let without_rowid = TableReads { are_rows_reported: false, ..reads(&["a"]) };
        assert_eq!(invalidated(written(true, &[], false), vec![], &without_rowid), "whole");
        assert_eq!(invalidated(written(false, &["b"], false), vec![], &without_rowid), "nothing");
        let replaced = TableReads { may_be_replaced: true, ..reads(&["a"]) };
        assert_eq!(invalidated(written(false, &["b"], false), rows(&[], &[7]), &replaced), "whole");
        let generated = TableReads { has_generated: true, ..reads(&["a"]) };
        assert_eq!(invalidated(written(false, &["b"], false), rows(&[], &[7]), &generated), "[[7]]");
    }

    #[test]
    fn writes_are_joined_and_everything_covers_all() {
        let mut all = written(false, &["a"], false);
        all.add(&Writes::Tables(written(true, &["b"], false).tables));
        assert_eq!(all, written(true, &["a", "b"], false));
        all.add(&Writes::Everything);
        all.add(&Writes::Tables(written(true, &["b"], false).tables));
        assert_eq!(Change::of(all, rows(&[1], &[])), Change::Everything);
        let by_a_virtual_table = Change::of(Written::default(), rows(&[1], &[2]));
        let Change::Tables(tables) = by_a_virtual_table else { panic!() };
        assert_eq!(tables[0].writes.columns, Columns::All);
    }
}
