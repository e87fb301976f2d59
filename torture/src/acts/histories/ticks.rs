//! Records the order in which the writer ran the statements of many tasks.
//!
//! Owns: a function `at(number, value)` that returns the value and records the number. Statements of many tasks call
//! it, each with the number of its operation, and all run on the writer's single connection. If a group is rolled back,
//! its members run again and record their numbers again: the last record counts. A statement that fails also records
//! its number. Leaves out: statements that do not call it. They only use what belongs to their task, and follow
//! directly what their task did before.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;
use rusqlite::functions::FunctionFlags;
use rusqlite::types::Value;

/// The records, in order.
#[derive(Clone, Default)]
pub(super) struct Ticks(Arc<Mutex<Vec<i64>>>);

impl Ticks {
    /// Returns when each operation was last recorded.
    pub(super) fn last(&self) -> BTreeMap<i64, usize> {
        let notes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        notes.iter().enumerate().map(|(at, number)| (*number, at)).collect()
    }
}

/// Adds the function to a connection. It is deterministic, so SQLite evaluates it once, before it searches for rows.
pub(super) fn add_function(connection: &Connection, ticks: &Ticks) -> rusqlite::Result<()> {
    let ticks = ticks.clone();
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    connection.create_scalar_function("at", 2, flags, move |call| {
        ticks.0.lock().unwrap_or_else(PoisonError::into_inner).push(call.get(0)?);
        call.get::<Value>(1)
    })
}
