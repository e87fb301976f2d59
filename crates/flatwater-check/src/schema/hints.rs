//! What to do about a text that SQLite cannot prepare: the nearest name, and the migration that made its table.
//!
//! Owns: which message gets which hint. Invariant: a name is suggested only if it exists and is like the wrong one. Leaves out: rules
//! of Flatwater (`statements`).

use super::{Schema, line};
use crate::fault::Fault;

const TABLES: &str = "SELECT name FROM pragma_table_list WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'";
const FUNCTIONS: &str = "SELECT DISTINCT name FROM pragma_function_list";
const COLUMNS: &str = "SELECT name FROM pragma_table_info(?1)";

/// The names of a query of one column.
fn names(schema: &Schema, sql: &str, table: Option<&str>) -> Vec<String> {
    let connection = schema.sqlite.rusqlite();
    let read = || -> rusqlite::Result<Vec<String>> {
        let mut statement = connection.prepare(sql)?;
        statement.query_map(rusqlite::params_from_iter(table), |row| row.get(0))?.collect()
    };
    read().unwrap_or_default()
}

/// The name that is most like `wanted`: it differs in a third of its letters at most, and in three.
fn nearest<'a>(wanted: &str, names: impl IntoIterator<Item = &'a String>) -> Option<&'a String> {
    let wanted = wanted.to_lowercase();
    let near = names.into_iter().filter_map(|name| {
        let distance = strsim::damerau_levenshtein(&name.to_lowercase(), &wanted);
        (distance <= (name.len().max(wanted.len()) / 3).min(3)).then_some((distance, name))
    });
    near.min().map(|(_, name)| name)
}

/// The last part of a name that may be qualified.
fn last(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

impl Schema {
    /// Adds what to do to SQLite's error of a text.
    pub(super) fn with_hint(&self, fault: Fault, sql: &str) -> Fault {
        let message = &*fault.message;
        let hint = if let Some(wanted) = message.strip_prefix("no such table: ") {
            self.table_like(last(wanted))
        } else if let Some(wanted) = message.strip_prefix("no such function: ") {
            let nearest =
                nearest(wanted, &names(self, FUNCTIONS, None)).map(|name| format!("there is a function {name}"));
            Some(nearest.unwrap_or_else(|| format!("declare it in flatwater.toml: [functions.{wanted}] arguments = 1")))
        } else if message.starts_with("no such collation sequence: ") {
            Some("declare it in flatwater.toml: collations = [\"name\"]".to_owned())
        } else if let Some(wanted) = message.strip_prefix("no such column: ") {
            self.column_like(last(wanted), sql)
        } else {
            message.rsplit_once(" has no column named ").and_then(|(_, wanted)| self.column_like(wanted, sql))
        };
        Fault { hint, ..fault }
    }

    fn table_like(&self, wanted: &str) -> Option<String> {
        let tables = names(self, TABLES, None);
        let Some(table) = nearest(wanted, &tables) else {
            return Some("no migration makes it".to_owned());
        };
        Some(format!("there is a table {table}{}", self.maker(table)))
    }

    /// The nearest column of the tables that a text names, or all of the only one.
    fn column_like(&self, wanted: &str, sql: &str) -> Option<String> {
        let named: Vec<&str> = flatwater_sql::tokens::names(sql).collect();
        let is_named = |table: &String| named.iter().any(|name| name.eq_ignore_ascii_case(table));
        let tables: Vec<String> = names(self, TABLES, None).into_iter().filter(is_named).collect();
        let columns: Vec<(String, &String)> = tables
            .iter()
            .flat_map(|table| names(self, COLUMNS, Some(table)).into_iter().map(move |column| (column, table)))
            .collect();
        if let Some(column) = nearest(wanted, columns.iter().map(|(column, _)| column)) {
            let (_, table) = columns.iter().find(|(name, _)| name == column)?;
            return Some(format!("there is a column {column} in {table}{}", self.maker(table)));
        }
        let [table] = &tables[..] else { return None };
        let all = columns.iter().map(|(column, _)| &**column).collect::<Vec<_>>().join(", ");
        Some(format!("{table} has the columns {all}{}", self.maker(table)))
    }

    fn maker(&self, table: &str) -> String {
        let maker = self.made.get(&table.to_lowercase());
        maker.map(|migration| format!(", made by the migration {migration}")).unwrap_or_default()
    }
}

/// The fault of a migration that failed.
pub(super) fn of_migration(failed: impl Fn(String) -> Fault, fault: Fault, script: &str) -> Fault {
    let message = fault.message;
    let hint = if message.starts_with("no such function: ") || message.starts_with("unknown function: ") {
        Some("declare functions of the program in flatwater.toml: [functions.name] arguments = 1".to_owned())
    } else {
        None
    };
    // An offset is that in the statement, which begins somewhere in a script of several.
    let at = fault.offset.filter(|_| script.trim_end().trim_end_matches(';').matches(';').count() == 0);
    let message = at.map_or(message.clone(), |offset| format!("line {}: {message}", line(script, offset)));
    Fault { hint, ..failed(message) }
}
