//! Putting rows into the target.
//!
//! Owns: the order of it. Invariants: a row may be put twice; one that cannot be put now is told, and nothing of it is there. Leaves out: which
//! rows.

use flatwater::{Error, ErrorKind, Result, Session, Value};
use futures_util::future::join_all;

use crate::rows::{Values, params};
use crate::table::Table;

/// A request has rows of so many bytes, and one more row.
const REQUEST_BYTES: usize = 512 << 10;

/// Adds rows that are not there: as many at once as go into one request, and each by itself if one of them is refused. Returns those that were.
pub(crate) async fn add(to: &Session, table: &Table, rows: Vec<Values>) -> Result<Vec<Values>> {
    let mut refused = Vec::new();
    for part in parts(rows) {
        let all = part.iter().map(|row| params(row));
        match to.execute_many(table.insert(), all.collect::<Result<Vec<_>>>()?).await {
            Ok(_) => {}
            Err(error) if is_of_rows(&error) => refused.append(&mut put(to, table, part).await?),
            Err(error) => return Err(error),
        }
    }
    Ok(refused)
}

fn parts(rows: Vec<Values>) -> Vec<Vec<Values>> {
    let (mut parts, mut bytes) = (Vec::<Vec<Values>>::new(), usize::MAX);
    for row in rows {
        if bytes >= REQUEST_BYTES {
            parts.push(Vec::new());
            bytes = 0;
        }
        bytes += row.iter().map(bytes_of).sum::<usize>();
        parts.last_mut().expect("one was begun").push(row);
    }
    parts
}

fn bytes_of(value: &Value) -> usize {
    match value {
        Value::Text(text) => text.len(),
        Value::Blob(blob) => blob.len(),
        _ => 8,
    }
}

/// Puts rows, each by itself. Returns those that were refused, because of other rows.
pub(crate) async fn put(to: &Session, table: &Table, rows: Vec<Values>) -> Result<Vec<Values>> {
    let sql = table.update();
    let (mut refused, mut missing) = (Vec::new(), Vec::new());
    for part in parts(rows) {
        let updated = join_all(part.iter().map(|row| to.execute(&*sql, params(row)))).await;
        for (row, updated) in part.into_iter().zip(updated) {
            match updated {
                Ok(updated) if updated.changes > 0 => {}
                Ok(_) => missing.push(row),
                Err(error) if is_of_rows(&error) => refused.push(row),
                Err(error) => return Err(error),
            }
        }
    }
    for part in parts(missing) {
        refused.append(&mut insert(to, table, part).await?);
    }
    Ok(refused)
}

async fn insert(to: &Session, table: &Table, rows: Vec<Values>) -> Result<Vec<Values>> {
    let sql = table.insert();
    let inserted = join_all(rows.iter().map(|row| to.execute(&*sql, params(row)))).await;
    let mut left = refused(rows, inserted)?;
    if left.len() < 2 {
        return Ok(left);
    }
    // They may refer to each other: SQLite looks when a statement is over.
    let mut again = Vec::new();
    while !left.is_empty() {
        let rest = left.split_off(left.len().min(table.most_at_once()));
        let values: Values = left.iter().flatten().cloned().collect();
        match to.execute(table.insert_all(left.len()), params(&values)).await {
            Ok(_) => {}
            Err(error) if is_of_rows(&error) => again.append(&mut left),
            Err(error) => return Err(error),
        }
        left = rest;
    }
    Ok(again)
}

/// Deletes the rows of these keys. Returns the keys of those that were refused.
pub(crate) async fn delete(to: &Session, table: &Table, keys: Vec<Values>) -> Result<Vec<Values>> {
    let sql = table.delete();
    let deleted = join_all(keys.iter().map(|key| to.execute(&*sql, params(key)))).await;
    refused(keys, deleted)
}

fn refused<T>(rows: Vec<Values>, done: Vec<Result<T>>) -> Result<Vec<Values>> {
    let mut refused = Vec::new();
    for (row, done) in rows.into_iter().zip(done) {
        match done {
            Ok(_) => {}
            Err(error) if is_of_rows(&error) => refused.push(row),
            Err(error) => return Err(error),
        }
    }
    Ok(refused)
}

/// Returns true for what another row may change.
fn is_of_rows(error: &Error) -> bool {
    error.kind() == ErrorKind::Constraint
}
