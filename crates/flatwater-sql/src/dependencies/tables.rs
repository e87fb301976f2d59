//! What a schema says of its tables and indexes, as far as live queries depend on it, and the columns of a result that are the key
//! of its rows: those that come from a primary key or a rowid. Pure.
//!
//! Owns: the facts, by name and by root page, and the choice of the key. Invariants: the facts are of the snapshot in which the reads
//! are derived; of each table, either all columns of a key are chosen or none. Leaves out: reading the schema
//! (`connection::learn::live_query`), and whether the rows of a result differ in their key, which only the rows tell
//! (`values::difference`).

use std::collections::{BTreeMap, HashMap, HashSet};

use flatwater_sqlite::ColumnSource;

use super::Columns;
use flatwater_base::growth_counter::step;

/// The kind of something that can be read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// A table with rowids.
    Rowid,
    /// A table WITHOUT ROWID.
    WithoutRowid,
    /// A view: what it reads is reported as well.
    View,
    /// An FTS or R-Tree table: all it reads is in tables named after it.
    Shadowed,
    /// Another virtual table, or a virtual table that also reads elsewhere.
    Virtual,
}

/// One table of the main database.
#[derive(Debug, Clone)]
pub struct Table {
    /// What it is.
    pub kind: Kind,
    /// Its root page.
    pub root: i32,
    /// It has generated columns, which change with others.
    pub has_generated: bool,
    /// The columns that may be an alias of the rowid.
    pub rowid_aliases: Vec<Box<str>>,
    /// A name of the rowid that no column hides.
    pub rowid_name: Option<&'static str>,
    /// The columns of the primary key.
    pub primary_key: Vec<Box<str>>,
}

impl Table {
    /// A table of whose columns nothing is known.
    pub fn of(kind: Kind, root: i32) -> Self {
        let (rowid_aliases, primary_key) = (Vec::new(), Vec::new());
        Self { kind, root, has_generated: false, rowid_aliases, rowid_name: None, primary_key }
    }
}

/// One index of the main database.
#[derive(Debug, Clone)]
pub struct Index {
    /// Its table.
    pub table: Box<str>,
    /// `All`: it has an expression, and so may depend on any column.
    pub columns: Columns,
    /// The columns of its key, if no two rows have the same, and it compares bytes. Empty otherwise.
    pub unique: Vec<Box<str>>,
}

/// What is known of a schema.
#[derive(Debug, Default)]
pub struct Tables {
    /// By the name that SQLite reports.
    pub tables: HashMap<Box<str>, Table>,
    /// By root page.
    pub indexes: HashMap<i32, Index>,
    /// The text, or a view that it reads, joins tables by USING or NATURAL. SQLite does not report what that reads.
    pub joins_by_name: bool,
    /// There are statistics of ANALYZE. Each connection has read them at another time, and plans with what it has read.
    pub has_statistics: bool,
    /// A table, or a trigger, replaces rows.
    pub replaces: bool,
    /// The functions whose result depends on their arguments alone, in lower case.
    pub pure_functions: std::collections::HashSet<Box<str>>,
}

/// The key of one table of the main database.
#[derive(Debug, PartialEq, Eq)]
struct PrimaryKey {
    /// The columns of the primary key. A table may have none.
    columns: Vec<Box<str>>,
    /// No column has the name of the rowid.
    has_rowid: bool,
}

/// The keys of the tables that a query reads.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct PrimaryKeys(BTreeMap<Box<str>, PrimaryKey>);

/// The origin of a rowid that is no column.
const ROWID: &str = "rowid";

impl PrimaryKeys {
    /// Returns those of a schema.
    pub fn of(tables: &Tables) -> Self {
        let are_tables = tables.tables.iter().filter(|(_, table)| table.kind != Kind::View);
        let keys = are_tables.map(|(name, table)| {
            let has_rowid = table.rowid_name == Some(ROWID);
            (name.clone(), PrimaryKey { columns: table.primary_key.clone(), has_rowid })
        });
        Self(keys.filter(|(_, key)| key.has_rowid || !key.columns.is_empty()).collect())
    }

    /// Returns the positions of the columns that are the key of a result with these columns: the key of each table that
    /// has its whole key there. `None` if no table has.
    pub fn of_result(&self, sources: &[ColumnSource]) -> Option<Box<[usize]>> {
        let there: HashSet<(&str, &str)> = sources.iter().filter_map(origin).collect();
        let mut of_keys: HashSet<(&str, &str)> = HashSet::new();
        let tables: HashSet<&str> = there.iter().map(|(table, _)| *table).collect();
        for (table, key) in tables.iter().filter_map(|table| Some((*table, self.0.get(*table)?))) {
            if key.has_rowid && there.contains(&(table, ROWID)) {
                of_keys.insert((table, ROWID));
            } else if key.columns.iter().all(|part| there.contains(&(table, part))) {
                of_keys.extend(key.columns.iter().inspect(|_| step(1)).map(|part| (table, &**part)));
            }
        }
        let found = |(position, source)| of_keys.contains(&origin(source)?).then_some(position);
        let columns: Box<[usize]> = sources.iter().enumerate().filter_map(found).collect();
        (!columns.is_empty()).then_some(columns)
    }

    /// Returns the keys that a query of these tables can select, as a list.
    pub fn listed(&self) -> String {
        let keys = self.0.iter().map(|(table, key)| match &*key.columns {
            [] => format!("{ROWID} of {table}"),
            columns => format!("{} of {table}", columns.join(" and ")),
        });
        keys.collect::<Vec<_>>().join(", ")
    }
}

/// Returns the table of the main database that a column comes from, and its name there.
fn origin(source: &ColumnSource) -> Option<(&str, &str)> {
    let origin = source.origin.as_ref().filter(|origin| &*origin.database == "main")?;
    Some((&origin.table, &origin.column))
}

#[cfg(test)]
mod tests {
    use flatwater_sqlite::ColumnOrigin;

    use super::*;

    fn keys() -> PrimaryKeys {
        let table = |columns: &[&str], rowid_name| Table {
            primary_key: columns.iter().map(|column| (*column).into()).collect(),
            rowid_name,
            ..Table::of(Kind::Rowid, 2)
        };
        let all = [
            ("t", table(&["id"], Some(ROWID))),
            ("two", table(&["a", "b"], Some(ROWID))),
            ("none", table(&[], Some(ROWID))),
            ("odd", table(&["a"], Some("_rowid_"))),
            ("hides", table(&[], Some("_rowid_"))),
            ("unread", table(&[], None)),
            ("view", Table { kind: Kind::View, ..table(&[], Some(ROWID)) }),
        ];
        let tables = all.into_iter().map(|(name, table)| (name.into(), table)).collect();
        PrimaryKeys::of(&Tables { tables, ..Tables::default() })
    }

    /// Takes `table.column`; an expression has no point.
    fn of(columns: &[&str]) -> Option<Vec<usize>> {
        let source = |column: &&str| {
            let origin = column.split_once('.').map(|(table, column)| {
                let (database, table) = table.split_once('/').unwrap_or(("main", table));
                ColumnOrigin { database: database.into(), table: table.into(), column: column.into() }
            });
            ColumnSource { declared_type: None, origin }
        };
        let sources: Vec<_> = columns.iter().map(source).collect();
        keys().of_result(&sources).map(|key| key.to_vec())
    }

    #[test]
    fn a_key_is_chosen_in_full_or_not_at_all() {
        assert_eq!(of(&["t.a", "t.id"]), Some(vec![1]));
        assert_eq!(of(&["two.b", "two.c", "two.a"]), Some(vec![0, 2]));
        assert_eq!(of(&["two.b", "two.c"]), None);
        assert_eq!(of(&["count", "t.a", "unknown.id"]), None);
        assert_eq!(of(&["aux/t.id", "t.a"]), None, "a table of another database");
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn the_keys_of_several_tables_are_one_key() {
        assert_eq!(of(&["t.id", "two.a", "two.b", "t.id"]), Some(vec![0, 1, 2, 3]));
        assert_eq!(of(&["two.a", "t.id"]), Some(vec![1]));
    }

    #[test]
    fn a_rowid_is_preferred_unless_a_column_has_its_name() {
        assert_eq!(of(&["none.rowid", "none.a"]), Some(vec![0]));
        assert_eq!(of(&["two.a", "two.b", "two.rowid"]), Some(vec![2]));
        assert_eq!((of(&["hides.rowid"]), of(&["view.rowid"])), (None, None));
        assert_eq!(of(&["odd.rowid", "odd.a"]), Some(vec![1]));
    }

    #[test]
    fn the_list_names_the_keys_and_nothing_that_is_no_key() {
        assert_eq!(keys().listed(), "rowid of none, a of odd, id of t, a and b of two");
        assert_eq!(PrimaryKeys::default().listed(), "");
    }
}
