//! The tables of a database, and the SQL for their rows.
//!
//! Owns: reading the schema, and these texts. Invariants: a name stands in a text in quotes; what a table says of conflicts has no effect. Leaves out: running them.

use flatwater::{Result, Session};

use crate::rows::refused;

/// The log has so many columns for a key.
pub(crate) const MOST_KEYS: usize = 8;

/// A table, with what says which row it is.
pub(crate) struct Table {
    pub(crate) name: String,
    /// As it was created.
    pub(crate) sql: String,
    pub(crate) key: Vec<String>,
    /// Of each column of the key: its collation in the index of the primary key. None of a rowid.
    collations: Vec<String>,
    /// The columns that are no part of the key, and not generated.
    pub(crate) columns: Vec<String>,
    /// The tables to which its rows refer.
    refers_to: Vec<String>,
}

/// In which order of the keys rows are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    Ascending,
    Descending,
}

/// `name`, in quotes.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A value behind its type, in a form that every server answers as it is. An expression has no declared type, for which a server would
/// convert it; rqlite gives it the type of the first row, for which it makes text of a BLOB, and its JSON does not tell 1 from 1.0.
pub(crate) fn typed(name: &str) -> String {
    format!(
        "typeof({name}), CASE typeof({name}) WHEN 'integer' THEN CAST({name} AS TEXT) WHEN 'blob' THEN hex({name}) ELSE {name} END"
    )
}

/// `text`, as a literal.
pub(crate) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

const TABLES: &str = "SELECT l.name, s.sql, l.type, l.wr FROM pragma_table_list AS l
    JOIN sqlite_schema AS s ON s.type = 'table' AND s.name = l.name
    WHERE l.schema = 'main' AND l.name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
    AND (l.name NOT LIKE '\\_flatwater\\_%' ESCAPE '\\' OR l.name = '_flatwater_migrations') ORDER BY s.rowid";
const COLUMNS: &str = "SELECT name, type, pk, hidden FROM pragma_table_xinfo(?) ORDER BY cid";
const KEY: &str = "SELECT x.name, x.coll FROM pragma_index_list(?) AS l, pragma_index_xinfo(l.name) AS x
    WHERE l.origin = 'pk' AND x.key = 1 ORDER BY x.seqno";
const HAS_KEY_INDEX: &str = "SELECT count(*) FROM pragma_index_list(?) WHERE origin = 'pk'";
const REFERS_TO: &str = "SELECT DISTINCT \"table\" FROM pragma_foreign_key_list(?)";

/// Returns the tables, those first to which others refer.
///
/// # Errors
/// `Misuse` for one that cannot be moved.
pub(crate) async fn tables(of: &Session) -> Result<Vec<Table>> {
    let mut tables = Vec::new();
    for (name, sql, kind, is_without_rowid) in of.query_as::<(String, String, String, bool)>(TABLES, ()).await? {
        if kind != "table" {
            let hint = "drop it, and make it anew on the target after the move";
            return Err(refused(format!("{name} is a {kind} table, which cannot be moved"), hint));
        }
        tables.push(table(of, name, sql, is_without_rowid).await?);
    }
    Ok(in_order(tables))
}

async fn table(of: &Session, name: String, sql: String, is_without_rowid: bool) -> Result<Table> {
    let columns: Vec<(String, String, i64, i64)> = of.query_as(COLUMNS, (&*name,)).await?;
    let mut primary: Vec<_> = columns.iter().filter(|(.., pk, _)| *pk > 0).collect();
    primary.sort_by_key(|(.., pk, _)| *pk);
    let is_rowid = |(_, declared, ..): &(String, String, i64, i64)| declared.eq_ignore_ascii_case("INTEGER");
    let has_index = of.query_value::<i64>(HAS_KEY_INDEX, (&*name,)).await? > 0;
    let mut collations = Vec::new();
    let key: Vec<String> = match &primary[..] {
        _ if is_without_rowid => {
            let key: Vec<(String, String)> = of.query_as(KEY, (&*name,)).await?;
            let (key, of_key) = key.into_iter().unzip();
            collations = of_key;
            key
        }
        [one] if is_rowid(one) && !has_index => vec![one.0.clone()],
        _ => vec![rowid_name(&name, &columns)?],
    };
    if key.len() > MOST_KEYS {
        return Err(refused(format!("{name} has a key of {} columns", key.len()), "a key may have 8"));
    }
    let own = columns.iter().filter(|(name, .., hidden)| *hidden == 0 && !key.contains(name));
    let columns = own.map(|(name, ..)| name.clone()).collect();
    let refers_to = of.query_values::<String>(REFERS_TO, (&*name,)).await?;
    Ok(Table { name, sql, key, collations, columns, refers_to })
}

/// The name of the rowid that no column has.
fn rowid_name(table: &str, columns: &[(String, String, i64, i64)]) -> Result<String> {
    let is_free = |name: &&str| !columns.iter().any(|(column, ..)| column.eq_ignore_ascii_case(name));
    let name = ["rowid", "_rowid_", "oid"].into_iter().find(is_free);
    name.map(str::to_owned).ok_or_else(|| {
        refused(format!("the rows of {table} cannot be told apart: its columns hide the rowid"), "rename one of them")
    })
}

fn in_order(mut left: Vec<Table>) -> Vec<Table> {
    let mut ordered: Vec<Table> = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let waits = |table: &Table| {
            let is_left = |name: &String| left.iter().any(|other| other.name.eq_ignore_ascii_case(name));
            table.refers_to.iter().any(|name| !name.eq_ignore_ascii_case(&table.name) && is_left(name))
        };
        // Those in a circle come as they are.
        let next = left.iter().position(|table| !waits(table)).unwrap_or_default();
        ordered.push(left.remove(next));
    }
    ordered
}

impl Table {
    fn list(names: &[String], each: impl Fn(&str) -> String) -> String {
        names.iter().map(|name| each(&quoted(name))).collect::<Vec<_>>().join(", ")
    }

    /// `key AND key` of the parameters that begin at 1.
    fn is_key(&self) -> String {
        let each = self.key_columns().into_iter().enumerate().map(|(at, column)| format!("{column} IS ?{}", at + 1));
        each.collect::<Vec<_>>().join(" AND ")
    }

    /// Returns true if the rows of both are the same if their values are.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        (&self.name, &self.key, &self.collations) == (&other.name, &other.key, &other.collations)
            && self.columns == other.columns
    }

    fn values(&self) -> String {
        let all: Vec<String> = self.key.iter().chain(&self.columns).cloned().collect();
        Self::list(&all, typed)
    }

    /// So many values a row has.
    pub(crate) fn width(&self) -> usize {
        self.key.len() + self.columns.len()
    }

    /// The columns of the key, to be compared as the index of the primary key does.
    fn key_columns(&self) -> Vec<String> {
        let of = |(at, name): (usize, &String)| match self.collations.get(at) {
            Some(collation) => format!("{} COLLATE {}", quoted(name), quoted(collation)),
            None => quoted(name),
        };
        self.key.iter().enumerate().map(of).collect()
    }

    /// The next rows behind a key, up to another one, of which there are at most as many. Both bounds are optional.
    pub(crate) fn page(&self, order: Order, has_first: bool, has_last: bool, most: usize) -> String {
        let (behind, until) = match order {
            Order::Ascending => (">", "<="),
            Order::Descending => ("<", ">="),
        };
        let (key, values) = (self.key_columns().join(", "), vec!["?"; self.key.len()].join(", "));
        let bounds = [(has_first, behind), (has_last, until)];
        let bounds = bounds.iter().filter(|(is_given, _)| *is_given);
        let bounds: Vec<String> = bounds.map(|(_, than)| format!("({key}) {than} ({values})")).collect();
        let only = if bounds.is_empty() { String::new() } else { format!(" WHERE {}", bounds.join(" AND ")) };
        format!("SELECT {} FROM {}{only} {}", self.values(), quoted(&self.name), self.ordered(order, most))
    }

    fn ordered(&self, order: Order, most: usize) -> String {
        let direction = if order == Order::Descending { " DESC" } else { "" };
        let by: Vec<String> = self.key_columns().iter().map(|column| format!("{column}{direction}")).collect();
        format!("ORDER BY {} LIMIT {most}", by.join(", "))
    }

    /// The largest key.
    pub(crate) fn last_key(&self) -> String {
        let key = Self::list(&self.key, typed);
        format!("SELECT {key} FROM {} {}", quoted(&self.name), self.ordered(Order::Descending, 1))
    }

    /// The row of a key.
    pub(crate) fn row(&self) -> String {
        format!("SELECT {} FROM {} WHERE {}", self.values(), quoted(&self.name), self.is_key())
    }

    /// Changes the row of a key: also the key, of which another spelling may be the same.
    pub(crate) fn update(&self) -> String {
        let is_whole = !self.collations.is_empty() || self.columns.is_empty();
        let all = self.key.iter().chain(&self.columns).enumerate().skip(if is_whole { 0 } else { self.key.len() });
        let set = all.map(|(at, name)| format!("{} = ?{}", quoted(name), at + 1)).collect::<Vec<_>>().join(", ");
        format!("UPDATE OR ABORT {} SET {set} WHERE {}", quoted(&self.name), self.is_key())
    }

    /// Adds a row, unless its key is there.
    pub(crate) fn insert(&self) -> String {
        let all: Vec<String> = self.key.iter().chain(&self.columns).cloned().collect();
        let values = (1..=self.width()).map(|number| format!("?{number}")).collect::<Vec<_>>().join(", ");
        let name = quoted(&self.name);
        format!(
            "INSERT OR ABORT INTO {name} ({}) SELECT {values} WHERE NOT EXISTS (SELECT 1 FROM {name} WHERE {})",
            Self::list(&all, str::to_owned),
            self.is_key()
        )
    }

    /// So many rows have a parameter for each value (<https://sqlite.org/limits.html#max_variable_number>).
    pub(crate) fn most_at_once(&self) -> usize {
        (32_766 / self.width()).clamp(1, 500)
    }

    /// Adds so many rows, whose keys are not there.
    pub(crate) fn insert_all(&self, rows: usize) -> String {
        let all: Vec<String> = self.key.iter().chain(&self.columns).cloned().collect();
        let row = format!("({})", vec!["?"; self.width()].join(", "));
        let rows = vec![row; rows].join(", ");
        format!("INSERT OR ABORT INTO {} ({}) VALUES {rows}", quoted(&self.name), Self::list(&all, str::to_owned))
    }

    pub(crate) fn delete(&self) -> String {
        format!("DELETE FROM {} WHERE {}", quoted(&self.name), self.is_key())
    }
}
