//! The tables and rows of the lanes, the same for every peer.
//!
//! Owns: every table definition, statement and row that several lanes use. The driver scripts of other languages follow
//! this file: row `i` counts from 0 and is
//! - `t`: name `item_i`, value `i * 1.5`
//! - `items`: name `Item i`, a description of 85 characters padded with dots, value `i * 1.5`, category
//!   `category_(i mod 10)`, created_at `2026-01-0DT12:00:00.000Z` with D = `i mod 9 + 1`
//! - `wide`: 7 integers `i + c`, 6 reals `i * 0.1 + c`, 7 texts `str_(i + c)`, with c the column's place from 0
//!
//! Leaves out: traffic, which is drawn at random from a fixed seed.

use std::sync::Arc;

use anyhow::{Result, ensure};

use crate::peer::{Peer, Table};
use crate::record::Record;
use crate::value::{Rows, Value};

pub const T: &str = "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT NOT NULL, value REAL NOT NULL)";
pub const INSERT_T: &str = "INSERT INTO t (name, value) VALUES (?, ?)";
pub const DELETE_T: &str = "DELETE FROM t";

pub const ITEMS: &str = "CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT NOT NULL, description TEXT NOT NULL, \
     value REAL, category TEXT NOT NULL, created_at TEXT NOT NULL)";
pub const INSERT_ITEM: &str =
    "INSERT INTO items (name, description, value, category, created_at) VALUES (?, ?, ?, ?, ?)";
pub const SELECT_ITEMS: &str = "SELECT id, name, description, value, category, created_at FROM items";
pub const SELECT_ITEM: &str = "SELECT id, name, description, value, category, created_at FROM items WHERE id = ?";

const FILLED_AT_ONCE: usize = 100;

/// A row of `items` with its id.
pub type Item = (i64, String, String, f64, String, String);

/// The names of rows `0..count` of `t`, made before they are timed.
#[must_use]
pub fn names(count: usize) -> Vec<String> {
    (0..count).map(|i| format!("item_{i}")).collect()
}

#[must_use]
pub fn value(i: usize) -> f64 {
    i as f64 * 1.5
}

#[must_use]
pub fn t_rows(count: usize) -> Rows {
    Arc::new(names(count).into_iter().enumerate().map(|(i, name)| vec![name.into(), value(i).into()]).collect())
}

#[must_use]
pub fn item(i: usize) -> Item {
    let description = format!("{:.<85}", format!("A description of item {i} that is as long as such texts are "));
    let created = format!("2026-01-{:02}T12:00:00.000Z", i % 9 + 1);
    (i as i64 + 1, format!("Item {i}"), description, value(i), format!("category_{}", i % 10), created)
}

#[must_use]
pub fn items(count: usize) -> Vec<Item> {
    (0..count).map(item).collect()
}

/// Makes `items` and its first `count` rows, a few at a time so that no heap is left behind.
pub async fn fill_items<P: Peer>(peer: &P, count: usize) -> Result<()> {
    peer.execute(ITEMS, &[]).await?;
    for first in (0..count).step_by(FILLED_AT_ONCE) {
        let rows = (first..count.min(first + FILLED_AT_ONCE)).map(|i| {
            let (_, name, description, value, category, created) = item(i);
            vec![name.into(), description.into(), value.into(), category.into(), created.into()]
        });
        let rows: Rows = Arc::new(rows.collect());
        let changed = peer.many(INSERT_ITEM, &rows).await?;
        ensure!(changed == rows.len() as u64, "{changed} of {} rows were written", rows.len());
    }
    Ok(())
}

pub const WIDE_COLUMNS: usize = 20;
pub const WIDE: &str = "CREATE TABLE wide (id INTEGER PRIMARY KEY, \
     i0 INTEGER, i1 INTEGER, i2 INTEGER, i3 INTEGER, i4 INTEGER, i5 INTEGER, i6 INTEGER, \
     r0 REAL, r1 REAL, r2 REAL, r3 REAL, r4 REAL, r5 REAL, \
     s0 TEXT, s1 TEXT, s2 TEXT, s3 TEXT, s4 TEXT, s5 TEXT, s6 TEXT)";
pub const INSERT_WIDE: &str = "INSERT INTO wide \
     (i0, i1, i2, i3, i4, i5, i6, r0, r1, r2, r3, r4, r5, s0, s1, s2, s3, s4, s5, s6) \
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
pub const SELECT_WIDE: &str =
    "SELECT i0, i1, i2, i3, i4, i5, i6, r0, r1, r2, r3, r4, r5, s0, s1, s2, s3, s4, s5, s6 FROM wide ORDER BY id";

#[must_use]
pub fn wide_row(i: usize) -> [Value<'static>; WIDE_COLUMNS] {
    std::array::from_fn(|column| match column {
        0..=6 => Value::Integer((i + column) as i64),
        7..=12 => Value::Real(i as f64 * 0.1 + column as f64),
        _ => format!("str_{}", i + column).into(),
    })
}

#[must_use]
pub fn wide_rows(count: usize) -> Rows {
    Arc::new((0..count).map(|i| wide_row(i).to_vec()).collect())
}

/// The rows that a query answers, as records, are the expected ones in order.
pub async fn expect_rows<P: Peer, R: Record>(peer: &P, sql: &'static str, expected: &[R]) -> Result<()> {
    let found = peer.query::<R>(sql, &[]).await?.records()?;
    ensure!(found.len() == expected.len(), "{sql} answered {} rows, expected {}", found.len(), expected.len());
    for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
        ensure!(found == expected, "row {at} of {sql} is {found:?}, expected {expected:?}");
    }
    Ok(())
}

/// `t` holds exactly the rows `0..count`, whatever order they were written in.
pub async fn expect_t<P: Peer>(peer: &P, count: usize) -> Result<()> {
    let expected: Vec<_> = names(count).into_iter().enumerate().map(|(i, name)| (name, value(i))).collect();
    expect_rows(peer, "SELECT name, value FROM t ORDER BY value", &expected).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_is_as_described() {
        let (id, name, description, value, category, created) = item(12);
        assert_eq!((id, name.as_str(), value), (13, "Item 12", 18.0));
        assert!(description.len() == 85 && description.contains(" 12 "), "{description}");
        assert_eq!((category.as_str(), created.as_str()), ("category_2", "2026-01-04T12:00:00.000Z"));
    }
}
