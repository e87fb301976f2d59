//! Putting rows into the target.
//!
//! Owns: the order of it. Invariants: a row may be put twice; one that cannot be put now is told, and nothing of it is there. Leaves out: which
//! rows.

use flatwater::{Error, ErrorKind, Result, Session};
use futures_util::future::join_all;

use crate::rows::{Values, params};
use crate::table::Table;

/// Adds rows that are not there: as many at once as go into one request, and each by itself if one of them is refused. Returns those that were.
pub(crate) async fn add(to: &Session, table: &Table, rows: Vec<Values>) -> Result<Vec<Values>> {
    let all = rows.iter().map(|row| params(row));
    match to.execute_many(table.insert(), all.collect::<Result<Vec<_>>>()?).await {
        Ok(_) => Ok(Vec::new()),
        Err(error) if is_of_rows(&error) => put(to, table, rows).await,
        Err(error) => Err(error),
    }
}

/// Puts rows, each by itself. Returns those that were refused, because of other rows.
pub(crate) async fn put(to: &Session, table: &Table, rows: Vec<Values>) -> Result<Vec<Values>> {
    let rows = match table.update() {
        None => rows,
        Some(update) => {
            let updated = join_all(rows.iter().map(|row| to.execute(&*update, params(row)))).await;
            let mut refused = Vec::new();
            let mut missing = Vec::new();
            for (row, updated) in rows.into_iter().zip(updated) {
                match updated {
                    Ok(updated) if updated.changes > 0 => {}
                    Ok(_) => missing.push(row),
                    Err(error) if is_of_rows(&error) => refused.push(row),
                    Err(error) => return Err(error),
                }
            }
            refused.extend(insert(to, table, missing).await?);
            return Ok(refused);
        }
    };
    insert(to, table, rows).await
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
