//! What only one task writes: rows of `owned` with keys that no other task uses, its row of `marks`, its table.
//!
//! None of these calls depends on what other tasks do, and the trace of each write shows whether it was done.

use rand::RngExt;
use rand::rngs::StdRng;
use rusqlite::types::Value;

use super::op::{Statement, Work};

/// The number of rows of a task in `owned`.
const KEYS: i64 = 8;

const TEXTS: &[&str] = &[
    "INSERT INTO owned (id, task, u, k, v) VALUES (:id, :task, :u, :k, :v)",
    "INSERT INTO owned (id, task, u, k, v) VALUES (:id, :task, :u, :k, :v) ON CONFLICT DO UPDATE SET v = v + 1, u = excluded.u",
    "INSERT OR IGNORE INTO owned (id, task, u, k, v) VALUES (:id, :task, :u, :k, :v)",
    "INSERT OR FAIL INTO owned (id, task, u, k, v) VALUES (:id, :task, :u, :k, :v)",
    "REPLACE INTO owned (id, task, u, k, v) VALUES (:id, :task, :u, :k, :v)",
    "UPDATE owned SET u = :u, v = v + 1 WHERE id = :id",
    "UPDATE owned SET u = :u, k = :k WHERE id = :id",
    "UPDATE owned SET u = :u, v = NULL WHERE id = :id",
    "DELETE FROM owned WHERE id = :id",
    "UPDATE owned SET u = :u, v = v + 1 WHERE id = :id RETURNING v",
    "INSERT INTO owned (id, task, u, k, v) VALUES (:id, :task, :u, :k, :v) RETURNING id, v",
    "SELECT * FROM owned WHERE id = :id",
    "SELECT * FROM owned WHERE task = :task ORDER BY id",
    "SELECT id, v FROM owned WHERE task = :task ORDER BY id LIMIT :v",
    "UPDATE owned SET u = :u, v = v WHERE id = (SELECT id FROM owned WHERE task = :task AND id >= :id ORDER BY id LIMIT 1)",
    "SELECT v FROM owned WHERE k = :k",
    "SELECT u FROM marks WHERE task = :task",
];

const DEFINITIONS: &[&str] = &[
    "CREATE TABLE own_# (a, b)",
    "DROP TABLE IF EXISTS own_#",
    "ALTER TABLE own_# ADD COLUMN c DEFAULT 7",
    "ALTER TABLE own_# DROP COLUMN c",
    "CREATE INDEX own_#_a ON own_# (a)",
    "INSERT INTO own_# (a, b) VALUES (:u, :v)",
];

/// Returns a call on what belongs to the task.
pub(super) fn work(rng: &mut StdRng, task: i64, unit: i64, defines: bool) -> Work {
    let number = task.to_string();
    let text = match rng.random_range(0..25) {
        0 if defines => DEFINITIONS[rng.random_range(0..DEFINITIONS.len())].replace('#', &number),
        _ => TEXTS[rng.random_range(0..TEXTS.len())].to_owned(),
    };
    let key = rng.random_range(0..KEYS);
    let other = rng.random_range(0..KEYS);
    let values = [
        (":id", task * KEYS + key),
        (":task", task),
        (":u", unit),
        (":k", task * KEYS + other),
        (":v", rng.random_range(0..42)),
    ];
    let answers = text.starts_with("SELECT") || text.contains("RETURNING");
    let statement = positional(&text, &values);
    if answers { Work::Query(statement) } else { Work::Execute(statement) }
}

/// Replaces each name with `?`, and returns their values in that order.
fn positional(text: &str, values: &[(&str, i64)]) -> Statement {
    let (mut sql, mut params) = (String::new(), Vec::new());
    let mut rest = text;
    while let Some(at) = rest.find(':') {
        sql.push_str(&rest[..at]);
        rest = &rest[at..];
        // No name is a prefix of another.
        let (name, value) = values.iter().find(|(name, _)| rest.starts_with(name)).expect("each name has a value");
        sql.push('?');
        params.push(Value::Integer(*value));
        rest = &rest[name.len()..];
    }
    sql.push_str(rest);
    Statement { sql, params }
}

/// Returns the statement that stores the operation's number in the task's row of `marks`.
pub(super) fn mark(task: i64, unit: i64, shares: bool) -> Statement {
    let (unit, task) = (Value::Integer(unit), Value::Integer(task));
    if shares {
        let sql = "INSERT INTO marks VALUES (?, at(?, ?)) ON CONFLICT DO UPDATE SET u = excluded.u".into();
        return Statement { sql, params: vec![task, unit.clone(), unit] };
    }
    let sql = "INSERT INTO marks VALUES (?, ?) ON CONFLICT DO UPDATE SET u = excluded.u".into();
    Statement { sql, params: vec![task, unit] }
}

/// Returns the same for a script.
pub(super) fn mark_as_text(task: i64, unit: i64, shares: bool) -> String {
    let value = if shares { format!("at({unit}, {unit})") } else { unit.to_string() };
    format!("INSERT INTO marks VALUES ({task}, {value}) ON CONFLICT DO UPDATE SET u = excluded.u")
}
