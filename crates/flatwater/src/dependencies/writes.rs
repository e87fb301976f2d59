//! The writes of one statement: what it may change, derived from one prepare. Pure.
//!
//! Owns: reading the authorizer's events as writes. Invariant: a statement changes nothing that its writes do not cover.
//! Leaves out: which rows it changed, which only the run shows.

use flatwater_sqlite::AuthEvent;
use rusqlite::ffi;

use super::Columns;

/// What a statement may change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Writes {
    /// Anything, the schema included.
    Everything,
    Tables(Vec<TableWrites>),
}

/// What a statement may change of one table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TableWrites {
    /// The schema: `main`, `temp` or an attached name.
    pub(crate) database: Box<str>,
    pub(crate) table: Box<str>,
    /// Rows may come or go.
    pub(crate) has_other_rows: bool,
    /// The columns that an UPDATE sets.
    pub(crate) columns: Columns,
    /// Rows may go of which SQLite reports nothing.
    pub(crate) is_unreported: bool,
}

/// What the text of a statement shows, where the events do not.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Unreported {
    /// It may replace rows.
    pub(crate) replaces: bool,
    /// It is a DELETE without WHERE.
    pub(crate) empties: bool,
}

impl Writes {
    /// Returns the writes of a statement that only writes rows.
    pub(crate) fn of_rows(events: &[AuthEvent], unreported: Unreported) -> Self {
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
