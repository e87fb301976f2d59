//! Comparing a table of the target with that of the source, and putting right what differs.
//!
//! Owns: this. Invariant: no more than a page of each is in memory. Leaves out: when it is done.

use std::collections::HashMap;

use flatwater::{Params, Result, Session, Value};

use crate::apply::{delete, put};
use crate::rows::{Values, params, same, values};
use crate::table::Table;

/// So many rows are read at once.
pub(crate) const PAGE: usize = 500;

/// Reads the rows behind a key.
pub(crate) async fn page(of: &Session, table: &Table, behind: Option<&[Value]>) -> Result<Vec<Values>> {
    let given = behind.map_or(Ok(Params::default()), params)?;
    read(of, table.page(behind.is_none(), PAGE), given).await
}

/// Reads the row of a key.
pub(crate) async fn row(of: &Session, table: &Table, key: &[Value]) -> Result<Option<Values>> {
    let mut rows = read(of, table.row(), params(key)?).await?;
    Ok(rows.pop())
}

async fn read(of: &Session, sql: String, given: Params) -> Result<Vec<Values>> {
    of.query(sql, given).await?.iter().map(|row| values(&row)).collect()
}

/// Puts right what differs in the target. Returns how many rows did. It may be less than right if rows need each other.
pub(crate) async fn repair(from: &Session, to: &Session, table: &Table) -> Result<usize> {
    let (mut behind, mut differ, keys) = (None::<Values>, 0, table.key.len());
    loop {
        let ours = page(from, table, behind.as_deref()).await?;
        let is_last = ours.len() < PAGE;
        let until = (!is_last).then(|| ours.last().map(|row| row[..keys].to_vec())).flatten();
        let bounds: Values = behind.iter().flatten().chain(until.iter().flatten()).cloned().collect();
        let sql = table.between(behind.is_some(), until.is_some());
        let theirs = read(to, sql, params(&bounds)?).await?;
        let mut there: HashMap<String, Values> = theirs.into_iter().map(|row| (same(&row[..keys]), row)).collect();
        let is_other = |row: &Values, there: &mut HashMap<String, Values>| {
            there.remove(&same(&row[..keys])).is_none_or(|other| same(&other) != same(row))
        };
        let other: Vec<Values> = ours.into_iter().filter(|row| is_other(row, &mut there)).collect();
        let gone: Vec<Values> = there.into_values().map(|row| row[..keys].to_vec()).collect();
        differ += other.len() + gone.len();
        // What is gone may stand in the way of what is put.
        delete(to, table, gone).await?;
        let refused = put(to, table, other).await?;
        if !refused.is_empty() {
            delete(to, table, refused.iter().map(|row| row[..keys].to_vec()).collect()).await?;
            put(to, table, refused).await?;
        }
        match until {
            Some(until) => behind = Some(until),
            None => return Ok(differ),
        }
    }
}

/// How many rows the table has.
pub(crate) async fn count(of: &Session, table: &Table) -> Result<i64> {
    of.query_value(format!("SELECT count(*) FROM {}", crate::table::quoted(&table.name)), ()).await
}
