//! The content of a database as comparable lines of text: all of it, or what belongs to one task. Leaves out: the
//! counters, which `counters` compares.

use rusqlite::Connection;
use rusqlite::types::Value;

/// The part of the content that is compared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Scope {
    All,
    /// All but statistics, which describe the tables of all tasks at one moment.
    AllOfMany,
    Task(i64),
}

pub(super) type Content = Vec<String>;

impl Scope {
    /// Returns what is compared at the end of a history with this number of tasks.
    pub(super) fn at_the_end(tasks: usize) -> Self {
        if tasks == 1 { Self::All } else { Self::AllOfMany }
    }

    /// Returns the content that only this task writes.
    pub(super) fn of_task(task: usize, tasks: usize) -> Self {
        if tasks == 1 { Self::All } else { Self::Task(task as i64) }
    }
}

/// Returns the content, table by table.
pub(super) fn content(connection: &Connection, scope: Scope) -> rusqlite::Result<Content> {
    let mut lines = Vec::new();
    match scope {
        Scope::All | Scope::AllOfMany => {
            let schema =
                "SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE name NOT LIKE 'text\\_%' ESCAPE '\\'";
            rows(connection, "schema", &format!("{schema} ORDER BY name"), &mut lines)?;
            rows(connection, "user_version", "PRAGMA user_version", &mut lines)?;
            for (name, without_rowid) in tables(connection)? {
                if name.starts_with("sqlite_stat") {
                    statistics(connection, &name, scope, &mut lines)?;
                    continue;
                }
                let rowid = if without_rowid { "" } else { "rowid, " };
                rows(connection, &name, &format!("SELECT {rowid}* FROM \"{name}\" ORDER BY 1"), &mut lines)?;
            }
        }
        Scope::Task(task) => {
            rows(connection, "owned", &format!("SELECT * FROM owned WHERE task = {task} ORDER BY id"), &mut lines)?;
            rows(connection, "marks", &format!("SELECT u FROM marks WHERE task = {task}"), &mut lines)?;
            let own = format!("SELECT sql FROM sqlite_schema WHERE tbl_name = 'own_{task}' ORDER BY name");
            let before = lines.len();
            rows(connection, "schema", &own, &mut lines)?;
            if lines.len() > before {
                rows(connection, "own", &format!("SELECT rowid, * FROM own_{task} ORDER BY 1"), &mut lines)?;
            }
        }
    }
    Ok(lines)
}

/// Adds the result of ANALYZE. It processes tables in an order that depends on when the schema was read. The way FTS5
/// distributes its index over the rows of its own tables depends on the savepoints and commits between the writes.
fn statistics(connection: &Connection, name: &str, scope: Scope, lines: &mut Content) -> rusqlite::Result<()> {
    if scope == Scope::AllOfMany {
        return Ok(());
    }
    let from = lines.len();
    rows(connection, name, &format!("SELECT * FROM {name} WHERE tbl NOT LIKE 'text\\_%' ESCAPE '\\'"), lines)?;
    lines[from..].sort();
    Ok(())
}

/// Returns the tables, and whether they are WITHOUT ROWID tables.
fn tables(connection: &Connection) -> rusqlite::Result<Vec<(String, bool)>> {
    let sql = "SELECT name, wr FROM pragma_table_list
               WHERE schema = 'main' AND type IN ('table', 'virtual') AND name NOT IN ('sqlite_schema', 'counters')
               ORDER BY name";
    connection.prepare(sql)?.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}

fn rows(connection: &Connection, name: &str, sql: &str, lines: &mut Content) -> rusqlite::Result<()> {
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let columns = row.as_ref().column_count();
        let cells = (0..columns).map(|at| row.get(at)).collect::<rusqlite::Result<Vec<Value>>>()?;
        lines.push(format!("{name} {cells:?}"));
    }
    Ok(())
}

/// Returns the first line that only one of them contains.
pub(super) fn difference(ours: &Content, plain: &Content) -> Option<String> {
    let at = (0..ours.len().max(plain.len())).find(|at| ours.get(*at) != plain.get(*at))?;
    let line = |content: &Content| content.get(at).map_or("(nothing)".into(), |line| cut(line));
    Some(format!("ours: {}\nplain: {}", line(ours), line(plain)))
}

/// Returns the beginning of a long line.
pub(super) fn cut(line: &str) -> String {
    line.chars().take(300).collect()
}
