//! The table of prepared statements inside a connection.
//!
//! Owns: the statements. Used by the thread that uses the connection. Invariants: a statement is finalised exactly
//! once, before its connection closes; the id of a finalised statement never identifies another one. Leaves out: what
//! statements do, and what their parameters are called (`parameters`); compiling a stable one again
//! (`connection::stable`).

pub(crate) mod bindings;
pub(crate) mod columns;
pub(crate) mod parameters;
pub(crate) mod running;
pub(crate) mod sink;
pub(crate) mod statement_start;

use std::sync::Arc;

use rusqlite::ffi;

use crate::statements::parameters::{Names, Parameters};

/// Identifies a statement of one connection. Using it on another connection, or after `finalize`, is an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatementId {
    slot: u32,
    generation: u32,
}

/// One place in the table.
struct Slot {
    /// Its `raw` is null while the slot is free.
    compiled: Compiled,
    generation: u32,
    /// Read when values are first bound by name. They are those of its text, whatever the schema.
    names: Option<Arc<Names>>,
    /// The text of a stable statement, which SQLite does not prepare again by itself.
    stable: Option<Arc<str>>,
}

/// A compiled statement, and the properties that every run needs. Only a run changes them: SQLite prepares a statement again
/// only while the statement is stepped.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Compiled {
    pub(crate) raw: *mut ffi::sqlite3_stmt,
    pub(crate) parameters: Parameters,
    /// It may be a `PRAGMA journal_mode`, which writes and returns a row.
    pub(crate) may_leave_wal: bool,
    /// How often it was prepared again.
    pub(crate) reprepares: u32,
    /// It has the plan that it was prepared with, whatever is bound (`connection::stable`).
    pub(crate) is_stable: bool,
}

impl Compiled {
    /// # Safety
    /// `raw` is a statement that is alive, and no other thread uses its connection.
    unsafe fn of(raw: *mut ffi::sqlite3_stmt) -> Self {
        // SAFETY: as the caller promises.
        unsafe {
            let parameters = Parameters::of(raw);
            let may_leave_wal = ffi::sqlite3_stmt_readonly(raw) == 0 && ffi::sqlite3_column_count(raw) > 0;
            let reprepares = ffi::sqlite3_stmt_status(raw, ffi::SQLITE_STMTSTATUS_REPREPARE, 0).unsigned_abs();
            Self { raw, parameters, may_leave_wal, reprepares, is_stable: false }
        }
    }
}

/// The prepared statements of a connection.
#[derive(Default)]
pub struct Statements {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

impl Statements {
    /// Adds a statement to the table.
    ///
    /// # Safety
    /// `raw` is a statement of the connection this table belongs to, not null, and no other code finalises it.
    pub(crate) unsafe fn keep(&mut self, raw: *mut ffi::sqlite3_stmt) -> StatementId {
        // SAFETY: as the caller promises.
        let compiled = unsafe { Compiled::of(raw) };
        if let Some(slot) = self.free.pop() {
            let place = &mut self.slots[slot as usize];
            place.compiled = compiled;
            return StatementId { slot, generation: place.generation };
        }
        let slot = u32::try_from(self.slots.len()).expect("fewer than 2^32 statements fit into memory");
        self.slots.push(Slot { compiled, generation: 0, names: None, stable: None });
        StatementId { slot, generation: 0 }
    }

    /// The statement, which was just prepared of this text, is a stable one.
    pub(crate) fn mark_stable(&mut self, id: StatementId, text: Arc<str>) {
        if self.get(id).is_some() {
            let slot = &mut self.slots[id.slot as usize];
            slot.compiled.is_stable = true;
            slot.stable = Some(text);
        }
    }

    /// Returns the text of a stable statement.
    pub(crate) fn stable_text(&self, id: StatementId) -> Option<Arc<str>> {
        self.get(id)?;
        self.slots[id.slot as usize].stable.clone()
    }

    /// Puts a stable statement in the place of the one that was prepared of the same text before, and returns that.
    ///
    /// # Safety
    /// As for `keep`, and the caller finalises what is returned.
    pub(crate) unsafe fn replace(&mut self, id: StatementId, raw: *mut ffi::sqlite3_stmt) -> *mut ffi::sqlite3_stmt {
        let slot = &mut self.slots[id.slot as usize];
        let before = slot.compiled;
        // SAFETY: as the caller promises.
        slot.compiled = Compiled {
            reprepares: before.reprepares.saturating_add(1),
            is_stable: true,
            ..unsafe { Compiled::of(raw) }
        };
        before.raw
    }

    pub(crate) fn get(&self, id: StatementId) -> Option<Compiled> {
        let place = self.slots.get(id.slot as usize)?;
        (place.generation == id.generation && !place.compiled.raw.is_null()).then_some(place.compiled)
    }

    /// Returns the names of the parameters of a statement.
    pub(crate) fn names(&mut self, id: StatementId) -> Option<Arc<Names>> {
        let Compiled { raw, .. } = self.get(id)?;
        let names = &mut self.slots[id.slot as usize].names;
        // SAFETY: a statement of the table is alive, and the caller that has the table has the connection.
        Some(names.get_or_insert_with(|| Arc::new(unsafe { Names::of(raw) })).clone())
    }

    /// Returns true if SQLite prepared the statement again since the last call. Call it after each run of the
    /// statement.
    pub(crate) fn was_prepared_again(&mut self, id: StatementId) -> bool {
        let Some(before) = self.get(id).filter(|before| !before.is_stable) else { return false };
        // SAFETY: a statement of the table is alive, and the caller that has the table has the connection.
        let reprepares = unsafe { ffi::sqlite3_stmt_status(before.raw, ffi::SQLITE_STMTSTATUS_REPREPARE, 0) };
        let was = reprepares.unsigned_abs() != before.reprepares;
        if was {
            // SAFETY: as above.
            self.slots[id.slot as usize].compiled = unsafe { Compiled::of(before.raw) };
        }
        was
    }

    /// Returns how often the statement was prepared again, because the schema had changed or because of the values that were
    /// bound (<https://sqlite.org/c3ref/c_stmtstatus_counter.html#sqlitestmtstatusreprepare>).
    #[must_use]
    pub fn reprepares(&self, id: StatementId) -> u32 {
        self.get(id).map_or(0, |compiled| compiled.reprepares)
    }

    /// Finalises a statement. Does nothing for one that is already finalised.
    pub(crate) fn finalize(&mut self, id: StatementId) {
        let Some(Compiled { raw, .. }) = self.get(id) else { return };
        let place = &mut self.slots[id.slot as usize];
        place.compiled.raw = std::ptr::null_mut();
        place.generation = place.generation.wrapping_add(1);
        (place.names, place.stable) = (None, None);
        self.free.push(id.slot);
        // SAFETY: a statement of the table is alive, and its slot was just cleared.
        unsafe { ffi::sqlite3_finalize(raw) };
    }

    /// Finalises all statements, when the connection is about to close.
    pub(crate) fn finalize_all(&mut self) {
        self.free.clear();
        for slot in self.slots.drain(..) {
            // SAFETY: null is allowed; a statement of the table is alive, and the table removes it here.
            unsafe { ffi::sqlite3_finalize(slot.compiled.raw) };
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}
