//! The log of the source: the keys of rows that change while they are copied.
//!
//! Owns: its table and the triggers that write it, and those that refuse writes after the switch. Invariant: each set comes and goes
//! in one transaction. Leaves out: what is made of it (`apply`).

use std::fmt::Write as _;

use flatwater::{Result, Session, Value};

use crate::table::{MOST_KEYS, Table, literal, quoted};

const LOG: &str = "_flatwater_moving";

/// One entry: its number, the table, and the key.
pub(crate) struct Entry {
    pub(crate) id: i64,
    pub(crate) of: String,
    pub(crate) key: Vec<Value>,
}

fn keys() -> String {
    (1..=MOST_KEYS).map(|number| format!("k{number}")).collect::<Vec<_>>().join(", ")
}

/// Begins to log, unless that was begun.
pub(crate) async fn begin(on: &Session, tables: &[Table]) -> Result<()> {
    let columns = keys();
    let mut script = format!(
        "CREATE TABLE IF NOT EXISTS {LOG} (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, {columns});"
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
            let (name, on) = (trigger(number, event), quoted(&table.name));
            let _ = write!(
                script,
                "CREATE TRIGGER IF NOT EXISTS {name} AFTER {event} ON {on} BEGIN INSERT INTO {LOG} (name, {columns}) VALUES {}; END;",
                rows(of)
            );
        }
    }
    on.execute_script(script).await
}

fn trigger(number: usize, event: &str) -> String {
    format!("_flatwater_moving_{number}_{}", event.to_ascii_lowercase())
}

fn refusal(number: usize, event: &str) -> String {
    format!("_flatwater_moved_{number}_{}", event.to_ascii_lowercase())
}

const EVENTS: [&str; 3] = ["INSERT", "UPDATE", "DELETE"];

/// Has the source refuse writes, and name where the database is now. Nothing is logged any more.
pub(crate) async fn refuse_writes(on: &Session, tables: &[Table], target: &str) -> Result<()> {
    let mut script = String::new();
    let message = literal(&format!("this database has moved to {target}"));
    for (number, table) in tables.iter().enumerate() {
        for event in EVENTS {
            let (name, table) = (refusal(number, event), quoted(&table.name));
            let _ = write!(script, "DROP TRIGGER IF EXISTS {};", trigger(number, event));
            let _ = write!(
                script,
                "CREATE TRIGGER IF NOT EXISTS {name} BEFORE {event} ON {table} BEGIN SELECT RAISE(ABORT, {message}); END;"
            );
        }
    }
    if script.is_empty() { Ok(()) } else { on.execute_script(script).await }
}

/// Has the source take writes again, and log them.
pub(crate) async fn take_writes(on: &Session, tables: &[Table]) -> Result<()> {
    drop_all(on, "_flatwater_moved").await?;
    begin(on, tables).await
}

/// Removes all of it.
pub(crate) async fn remove(on: &Session) -> Result<()> {
    drop_all(on, "_flatwater_mov").await?;
    on.execute(format!("DROP TABLE IF EXISTS {LOG}"), ()).await.map(drop)
}

async fn drop_all(on: &Session, begin: &str) -> Result<()> {
    let named = "SELECT name FROM sqlite_schema WHERE type = 'trigger' AND substr(name, 1, ?1) = ?2";
    let length = i64::try_from(begin.len()).unwrap_or_default();
    let names: Vec<String> = on.query_values(named, (length, begin)).await?;
    let script: String = names.iter().map(|name| format!("DROP TRIGGER IF EXISTS {};", quoted(name))).collect();
    if script.is_empty() { Ok(()) } else { on.execute_script(script).await }
}

/// The number of the newest entry.
pub(crate) async fn newest(on: &Session) -> Result<i64> {
    on.query_value(format!("SELECT coalesce(max(id), 0) FROM {LOG}"), ()).await
}

/// The oldest entries behind this one, up to another one.
pub(crate) async fn read(on: &Session, behind: i64, until: i64, most: usize) -> Result<Vec<Entry>> {
    let sql = format!("SELECT id, name, {} FROM {LOG} WHERE id > ? AND id <= ? ORDER BY id LIMIT {most}", keys());
    let rows = on.query(sql, (behind, until)).await?;
    let entry = |row: flatwater::Row<'_>| {
        let key = (2..row.len()).map(|at| row.get(at)).collect::<Result<Vec<Value>>>()?;
        Ok(Entry { id: row.get(0)?, of: row.get(1)?, key })
    };
    rows.iter().map(entry).collect()
}

/// Removes entries that were applied.
pub(crate) async fn forget(on: &Session, ids: Vec<i64>) -> Result<()> {
    on.execute_many(format!("DELETE FROM {LOG} WHERE id = ?"), ids.into_iter().map(|id| (id,))).await.map(drop)
}
