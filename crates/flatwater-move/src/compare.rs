//! Comparing a table of the target with that of the source, and putting right what differs.
//!
//! Owns: this, and reading in pages. Invariant: no more than a page of each side is in memory. Leaves out: when it is done.

use std::collections::HashMap;

use flatwater::{Params, Result, Session, Value};

use crate::apply::{delete, put};
use crate::rows::{Values, params, same, values};
use crate::sides::Sides;
use crate::table::{Order, Table};

/// So many rows are read at once.
const PAGE: usize = 500;
/// The code of an answer that is larger than a server gives (<https://sqlite.org/rescode.html#toobig>).
const TOO_BIG: i32 = 18;

/// The rows of a table, in an order of its keys.
pub(crate) struct Pages<'a> {
    of: &'a Session,
    table: &'a Table,
    order: Order,
    /// The key of the row that was read last.
    behind: Option<Values>,
    /// There are no more rows behind it.
    end: Option<Values>,
    is_over: bool,
    most: usize,
}

impl<'a> Pages<'a> {
    /// All rows.
    pub(crate) fn all(of: &'a Session, table: &'a Table, order: Order) -> Self {
        Self { of, table, order, behind: None, end: None, is_over: false, most: PAGE }
    }

    /// The rows of a table that grows: those behind the largest key of now are not read, so this has an end.
    pub(crate) async fn of_now(of: &'a Session, table: &'a Table, order: Order) -> Result<Self> {
        let mut pages = Self::all(of, table, order);
        if order == Order::Ascending {
            pages.end = read(of, table.last_key(), Params::default()).await?.pop();
            pages.is_over = pages.end.is_none();
        }
        Ok(pages)
    }

    /// Reads the next rows, up to a key if one is given. Empty if there are none.
    pub(crate) async fn next(&mut self, until: Option<&[Value]>) -> Result<Vec<Values>> {
        if self.is_over {
            return Ok(Vec::new());
        }
        let until = until.or(self.end.as_deref());
        let bounds: Values = self.behind.iter().flatten().chain(until.into_iter().flatten()).cloned().collect();
        let rows = loop {
            let sql = self.table.page(self.order, self.behind.is_some(), until.is_some(), self.most);
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
    of.query(sql, given).await?.iter().map(|row| values(&row, 0)).collect()
}

/// Puts right what differs in the target. Returns how many rows did. It may be less than right if rows need each other.
pub(crate) async fn repair(sides: &Sides<'_>, table: &Table, order: Order) -> Result<usize> {
    let (to, keys) = (sides.to, table.key.len());
    let mut source = Pages::of_now(sides.from, table, order).await?;
    let mut target = Pages::all(to, table, order);
    let mut differ = 0;
    loop {
        let rows = source.next(None).await?;
        sides.check().await?;
        // Behind the last row of the source there is none in the target: what the source has got there since is in the log.
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
