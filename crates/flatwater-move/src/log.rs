//! What a move adds to the source.
//!
//! Owns: the log, which has the keys of rows that change while they are copied, the triggers that write it, and those that refuse writes.
//! Invariants: the source changes from each state to the next in one transaction; a switch that is over leaves nothing but the triggers
//! that refuse. Leaves out: what is made of the log (`apply`), and where a source is (`bound`).

use std::fmt::Write as _;

use flatwater::{ErrorKind, Result, Session, Value};

use crate::rows::values;
use crate::table::{MOST_KEYS, Table, literal, quoted, typed};

const LOG: &str = "_flatwater_moving";
/// On the source: the number of the move, and whether its target has it.
pub(crate) const MOVE: &str = "_flatwater_move";
/// On the source: each object of the schema when it was copied last (`schema`).
pub(crate) const SCHEMA: &str = "_flatwater_copied";
const REFUSALS: &str = "_flatwater_moved_";
const EVENTS: [&str; 3] = ["INSERT", "UPDATE", "DELETE"];

/// One entry: its number, the table, and the key.
pub(crate) struct Entry {
    pub(crate) id: i64,
    pub(crate) of: String,
    pub(crate) key: Vec<Value>,
}

fn keys() -> String {
    (1..=MOST_KEYS).map(|number| format!("k{number}")).collect::<Vec<_>>().join(", ")
}

/// Has the source log what changes, and take writes, from this run of the move on. With `only`, if that is the newest run.
pub(crate) async fn begin(on: &Session, tables: &[Table], number: &str, run: &str, only: Option<&str>) -> Result<()> {
    let columns = keys();
    let mut script = only.map_or_else(String::new, unless_newest) + &without_triggers(on).await?;
    let _ = write!(
        script,
        "CREATE TABLE IF NOT EXISTS {LOG} (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, {columns});
        CREATE TABLE IF NOT EXISTS {SCHEMA} (type TEXT NOT NULL, name TEXT NOT NULL, sql TEXT NOT NULL);
        CREATE TABLE IF NOT EXISTS {MOVE} (number TEXT NOT NULL PRIMARY KEY, bound INTEGER NOT NULL DEFAULT 0, run TEXT NOT NULL);
        INSERT OR IGNORE INTO {MOVE} (number, run) VALUES ({}, ''); {}",
        literal(number),
        newest_is(run)
    );
    for (number, table) in tables.iter().enumerate() {
        let rows = |of: &[&str]| {
            let row = |of: &&str| {
                let mut values = vec![literal(&table.name)];
                values.extend(table.key.iter().map(|name| format!("{of}.{}", quoted(name))));
                values.resize(1 + MOST_KEYS, "NULL".to_owned());
                format!("({})", values.join(", "))
            };
            of.iter().map(row).collect::<Vec<_>>().join(", ")
        };
        for (event, of) in [("INSERT", &["NEW"][..]), ("UPDATE", &["OLD", "NEW"]), ("DELETE", &["OLD"])] {
            let (name, on) = (trigger(&format!("{LOG}_"), number, event), quoted(&table.name));
            let _ = write!(
                script,
                "CREATE TRIGGER {name} AFTER {event} ON {on} BEGIN INSERT INTO {LOG} (name, {columns}) VALUES {}; END;",
                rows(of)
            );
        }
    }
    on.execute_script(script).await
}

fn trigger(begin: &str, number: usize, event: &str) -> String {
    format!("{begin}{number}_{}", event.to_ascii_lowercase())
}

/// Each copy and each switch is a run.
fn newest_is(run: &str) -> String {
    format!("UPDATE {MOVE} SET run = {};", literal(run))
}

/// Fails the script if a later run has begun.
fn unless_newest(run: &str) -> String {
    format!("UPDATE {MOVE} SET number = NULL WHERE run <> {};", literal(run))
}

/// Returns true while no later run has begun.
pub(crate) async fn is_newest(on: &Session, run: &str) -> Result<bool> {
    match on.query_optional_value::<String>(format!("SELECT run FROM {MOVE}"), ()).await {
        Ok(newest) => Ok(newest.as_deref() == Some(run)),
        // It is over, and the table gone.
        Err(error) if error.kind() == ErrorKind::Sql => Ok(false),
        Err(error) => Err(error),
    }
}

/// Has the source refuse writes, until the switch is over, which is this run. Nothing is logged any more.
pub(crate) async fn refuse_writes(on: &Session, tables: &[Table], target: &str, run: &str) -> Result<()> {
    let message = format!("this database is being moved to {target}");
    let script = newest_is(run) + &without_triggers(on).await? + &refusals(tables, &message);
    on.execute_script(script).await
}

/// Ends the move, unless a later run has begun: the source refuses writes, and names where the database is.
pub(crate) async fn end(on: &Session, tables: &[Table], target: &str, run: &str) -> Result<()> {
    let mut script = unless_newest(run) + &without_triggers(on).await?;
    let _ = write!(script, "DROP TABLE {LOG}; DROP TABLE {MOVE}; DROP TABLE {SCHEMA};");
    script += &refusals(tables, &format!("this database has moved to {target}"));
    on.execute_script(script).await
}

fn refusals(tables: &[Table], message: &str) -> String {
    let mut script = String::new();
    for (number, table) in tables.iter().enumerate() {
        for event in EVENTS {
            let (name, table, message) = (trigger(REFUSALS, number, event), quoted(&table.name), literal(message));
            let _ = write!(
                script,
                "CREATE TRIGGER {name} BEFORE {event} ON {table} BEGIN SELECT RAISE(ABORT, {message}); END;"
            );
        }
    }
    script
}

/// Removes all of it from the source.
pub(crate) async fn remove(on: &Session) -> Result<()> {
    let mut script = without_triggers(on).await?;
    let _ = write!(script, "DROP TABLE IF EXISTS {LOG}; DROP TABLE IF EXISTS {MOVE}; DROP TABLE IF EXISTS {SCHEMA};");
    on.execute_script(script).await
}

/// The beginning of a script: no trigger of ours is there any more.
async fn without_triggers(on: &Session) -> Result<String> {
    let names = triggers(on, "_flatwater_mov").await?;
    Ok(names.iter().map(|name| format!("DROP TRIGGER IF EXISTS {};", quoted(name))).collect())
}

/// Returns true if the source refuses writes.
pub(crate) async fn refuses(on: &Session) -> Result<bool> {
    Ok(!triggers(on, REFUSALS).await?.is_empty())
}

async fn triggers(on: &Session, begin: &str) -> Result<Vec<String>> {
    let named = "SELECT name FROM sqlite_schema WHERE type = 'trigger' AND substr(name, 1, ?1) = ?2";
    let length = i64::try_from(begin.len()).unwrap_or_default();
    on.query_values(named, (length, begin)).await
}

/// The number of the newest entry.
pub(crate) async fn newest(on: &Session) -> Result<i64> {
    on.query_value(format!("SELECT coalesce(max(id), 0) FROM {LOG}"), ()).await
}

/// The oldest entries behind this one, up to another one.
pub(crate) async fn read(on: &Session, behind: i64, until: i64, most: usize) -> Result<Vec<Entry>> {
    let keys = (1..=MOST_KEYS).map(|number| typed(&format!("k{number}"))).collect::<Vec<_>>().join(", ");
    let sql = format!("SELECT id, name, {keys} FROM {LOG} WHERE id > ? AND id <= ? ORDER BY id LIMIT {most}");
    let rows = on.query(sql, (behind, until)).await?;
    let entry = |row: flatwater::Row<'_>| Ok(Entry { id: row.get(0)?, of: row.get(1)?, key: values(&row, 2)? });
    rows.iter().map(entry).collect()
}

/// Removes entries that were applied.
pub(crate) async fn forget(on: &Session, ids: Vec<i64>) -> Result<()> {
    on.execute_many(format!("DELETE FROM {LOG} WHERE id = ?"), ids.into_iter().map(|id| (id,))).await.map(drop)
}
