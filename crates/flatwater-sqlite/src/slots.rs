//! The table of prepared statements inside a connection.
//!
//! Owns: the statements. Used by the thread that has the connection. Invariants: a statement is finalised exactly once,
//! before its connection closes; the name of a finalised one never names another. Leaves out: what statements do.

use rusqlite::ffi;

/// Names a statement of one connection. Using it on another connection, or after `finalize`, is an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatementId {
    slot: u32,
    generation: u32,
}

/// One place in the table. `raw` is null while the place is free.
struct Slot {
    raw: *mut ffi::sqlite3_stmt,
    generation: u32,
}

#[derive(Default)]
pub(crate) struct Slots {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

impl Slots {
    /// Takes a statement into the table.
    ///
    /// # Safety
    /// `raw` is a statement of the connection this table belongs to, not null, and nobody else finalises it.
    pub(crate) unsafe fn keep(&mut self, raw: *mut ffi::sqlite3_stmt) -> StatementId {
        if let Some(slot) = self.free.pop() {
            let place = &mut self.slots[slot as usize];
            place.raw = raw;
            return StatementId { slot, generation: place.generation };
        }
        let slot = u32::try_from(self.slots.len()).expect("fewer than 2^32 statements fit into memory");
        self.slots.push(Slot { raw, generation: 0 });
        StatementId { slot, generation: 0 }
    }

    pub(crate) fn get(&self, id: StatementId) -> Option<*mut ffi::sqlite3_stmt> {
        let place = self.slots.get(id.slot as usize)?;
        (place.generation == id.generation && !place.raw.is_null()).then_some(place.raw)
    }

    /// Ends a statement. One that is already ended is left alone.
    pub(crate) fn finalize(&mut self, id: StatementId) {
        let Some(raw) = self.get(id) else { return };
        let place = &mut self.slots[id.slot as usize];
        place.raw = std::ptr::null_mut();
        place.generation = place.generation.wrapping_add(1);
        self.free.push(id.slot);
        // SAFETY: a statement of the table is alive, and its place forgot it just now.
        unsafe { ffi::sqlite3_finalize(raw) };
    }

    /// Ends all of them, when the connection is about to close.
    pub(crate) fn finalize_all(&mut self) {
        self.free.clear();
        for slot in self.slots.drain(..) {
            // SAFETY: null is allowed; a statement of the table is alive, and the table forgets it here.
            unsafe { ffi::sqlite3_finalize(slot.raw) };
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}
