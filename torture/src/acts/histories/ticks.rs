//! In which order the writer ran what many tasks asked for.
//!
//! Owns: a function `at(number, value)` that answers the value and notes the number. Statements of many tasks use it,
//! each with the number of its operation, and all run on the writer's one connection. A member of a group that was
//! rolled back runs again, and notes its number again: the last note counts. A statement that fails has noted it, too.
//! Leaves out: what does not call it. That works on what is its task's own, and comes right after what its task did
//! before.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;
use rusqlite::functions::FunctionFlags;
use rusqlite::types::Value;

/// The notes, in order.
#[derive(Clone, Default)]
pub(super) struct Ticks(Arc<Mutex<Vec<i64>>>);

impl Ticks {
    /// When each operation was last noted.
    pub(super) fn last(&self) -> BTreeMap<i64, usize> {
        let notes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        notes.iter().enumerate().map(|(at, number)| (*number, at)).collect()
    }
}

/// Adds the function to a connection. It is deterministic, so that SQLite evaluates it once before it looks for rows.
pub(super) fn add_function(connection: &Connection, ticks: &Ticks) -> rusqlite::Result<()> {
    let ticks = ticks.clone();
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    connection.create_scalar_function("at", 2, flags, move |call| {
        ticks.0.lock().unwrap_or_else(PoisonError::into_inner).push(call.get(0)?);
        call.get::<Value>(1)
    })
}
