//! What a schema says of its tables and indexes, as far as live queries depend on it. Pure.
//!
//! Owns: the facts, by name and by root page. Invariant: they are of the snapshot in which the reads are derived.
//! Leaves out: reading them (`connection::learn::live_query`).

use std::collections::HashMap;

/// The kind of something that can be read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A table with rowids.
    Rowid,
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
pub(crate) struct Table {
    pub(crate) kind: Kind,
    pub(crate) root: i32,
    /// It has generated columns, which change with others.
    pub(crate) has_generated: bool,
    /// The columns that may be an alias of the rowid.
    pub(crate) rowid_aliases: Vec<Box<str>>,
    /// A name of the rowid that no column hides.
    pub(crate) rowid_name: Option<&'static str>,
    /// The columns of the primary key.
    pub(crate) primary_key: Vec<Box<str>>,
}

impl Table {
    /// A table of whose columns nothing is known.
    pub(crate) fn of(kind: Kind, root: i32) -> Self {
        let (rowid_aliases, primary_key) = (Vec::new(), Vec::new());
        Self { kind, root, has_generated: false, rowid_aliases, rowid_name: None, primary_key }
    }
}

/// One index of the main database.
#[derive(Debug, Clone)]
pub(crate) struct Index {
    pub(crate) table: Box<str>,
    /// `None`: it has an expression, and so may depend on any column.
    pub(crate) columns: Option<Vec<Box<str>>>,
    /// The columns of its key, if no two rows have the same, and it compares bytes. Empty otherwise.
    pub(crate) unique: Vec<Box<str>>,
}

#[derive(Debug, Default)]
pub(crate) struct Tables {
    /// By the name that SQLite reports.
    pub(crate) tables: HashMap<Box<str>, Table>,
    /// By root page.
    pub(crate) indexes: HashMap<i32, Index>,
    /// The text, or a view that it reads, joins tables by USING or NATURAL. SQLite does not report what that reads.
    pub(crate) joins_by_name: bool,
    /// There are statistics of ANALYZE. Each connection has read them at another time, and plans with what it has read.
    pub(crate) has_statistics: bool,
    /// A table, or a trigger, replaces rows.
    pub(crate) replaces: bool,
    /// The functions whose result depends on their arguments alone, in lower case.
    pub(crate) pure_functions: std::collections::HashSet<Box<str>>,
}
