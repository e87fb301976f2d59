//! Comparing a table of the target with that of the source, and putting right what differs.
//!
//! Owns: this, and reading in pages. Invariant: no more than a page of each side is in memory. Leaves out: when it is done.

use std::collections::HashMap;

use flatwater::{Params, Result, Session, Value};

use crate::apply::{delete, put};
use crate::rows::{Values, params, same, values};
use crate::sides::Sides;
use crate::table::Table;

/// So many rows are read at once.
const PAGE: usize = 500;
/// The code of an answer that is larger than a server gives (<https://sqlite.org/rescode.html#toobig>).
const TOO_BIG: i32 = 18;

/// The rows of a table, in the order of its keys.
pub(crate) struct Pages<'a> {
    of: &'a Session,
    table: &'a Table,
    /// The key of the row that was read last.
    behind: Option<Values>,
    most: usize,
}

impl<'a> Pages<'a> {
    pub(crate) fn new(of: &'a Session, table: &'a Table) -> Self {
        Self { of, table, behind: None, most: PAGE }
    }

    /// Reads the next rows, up to a key if one is given. Empty if there are none.
    pub(crate) async fn next(&mut self, until: Option<&[Value]>) -> Result<Vec<Values>> {
        let bounds: Values = self.behind.iter().flatten().chain(until.into_iter().flatten()).cloned().collect();
        let rows = loop {
            let sql = self.table.page(self.behind.is_some(), until.is_some(), self.most);
            match read(self.of, sql, params(&bounds)?).await {
                Err(error) if error.sqlite_code() == Some(TOO_BIG) && self.most > 1 => self.most /= 2,
                read => break read?,
            }
        };
        if let Some(last) = rows.last() {
            self.behind = Some(last[..self.table.key.len()].to_vec());
        }
        Ok(rows)
    }
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
pub(crate) async fn repair(sides: &Sides<'_>, table: &Table) -> Result<usize> {
    let (from, to) = (sides.from, sides.to);
    let (mut source, mut target, keys) = (Pages::new(from, table), Pages::new(to, table), table.key.len());
    let mut differ = 0;
    loop {
        let rows = source.next(None).await?;
        sides.check().await?;
        // Behind the last row of the source there is none in the target.
        let until = rows.last().map(|row| row[..keys].to_vec());
        let mut other: HashMap<String, Values> = rows.into_iter().map(|row| (same(&row[..keys]), row)).collect();
        loop {
            let theirs = target.next(until.as_deref()).await?;
            let is_last = theirs.len() < target.most;
            let mut gone = Vec::new();
            for row in theirs {
                let key = same(&row[..keys]);
                match other.get(&key) {
                    Some(ours) if same(ours) == same(&row) => drop(other.remove(&key)),
                    Some(_) => {}
                    None => gone.push(row[..keys].to_vec()),
                }
            }
            differ += gone.len();
            // What is gone may stand in the way of what is put.
            delete(to, table, gone).await?;
            if is_last {
                break;
            }
        }
        differ += other.len();
        let refused = put(to, table, other.into_values().collect()).await?;
        if !refused.is_empty() {
            delete(to, table, refused.iter().map(|row| row[..keys].to_vec()).collect()).await?;
            put(to, table, refused).await?;
        }
        match until {
            Some(until) => target.behind = Some(until),
            None => return Ok(differ),
        }
    }
}
