//! SQLite's preupdate hook, in a build that has it (`-DSQLITE_ENABLE_PREUPDATE_HOOK` in `LIBSQLITE3_FLAGS`).
//!
//! Owns: when the hook is set, and its callback, which runs inside of SQLite calls. The hook is called before a row changes
//! (<https://sqlite.org/c3ref/preupdate_blobwrite.html>), also for what the update hook is not: a row that REPLACE deletes,
//! rows of tables without rowids, and the old rowid of a row that gets another. Invariants: it is set while changes are
//! recorded, and not while a text is prepared: with it SQLite compiles a DELETE without WHERE so that it deletes row by row;
//! no panic crosses into C. Leaves out: what is recorded (`changes`).

#[cfg(sqlite_preupdate)]
use rusqlite::ffi;

use crate::hooks::Hooks;

/// True if every row that changes is recorded, but those of a table that is emptied at once. Otherwise only those are that
/// the update hook reports.
pub const REPORTS_ALL_ROWS: bool = cfg!(sqlite_preupdate);

impl Hooks {
    /// Sets the hook, or removes it. Returns true if the hook that was set is this crate's, or there was none.
    #[cfg(sqlite_preupdate)]
    pub(super) fn report_rows(&self, on: bool) -> bool {
        let context = self.as_context();
        // SAFETY: the connection is open and used by this thread only; hooks stay at their address until it is closed.
        let before = unsafe {
            match on {
                true => ffi::sqlite3_preupdate_hook(self.handle.raw(), Some(callback::on_preupdate), context),
                false => ffi::sqlite3_preupdate_hook(self.handle.raw(), None, std::ptr::null_mut()),
            }
        };
        before.is_null() || before == context
    }

    #[cfg(not(sqlite_preupdate))]
    pub(super) fn report_rows(&self, _: bool) -> bool {
        true
    }
}

#[cfg(sqlite_preupdate)]
mod callback {
    use std::ffi::{CStr, c_char, c_int, c_void};

    use rusqlite::ffi;

    use crate::hooks::callbacks::hooks;

    pub(super) unsafe extern "C" fn on_preupdate(
        context: *mut c_void,
        _: *mut ffi::sqlite3,
        action: c_int,
        database: *const c_char,
        table: *const c_char,
        before: ffi::sqlite3_int64,
        after: ffi::sqlite3_int64,
    ) {
        // SAFETY: SQLite passes the context registered here.
        let hooks = unsafe { hooks(context) };
        if table.is_null() || database.is_null() {
            return;
        }
        // SAFETY: SQLite passes names that live for this call.
        let (database, table) = unsafe { (CStr::from_ptr(database), CStr::from_ptr(table)) };
        hooks.guarded((), || {
            if action == ffi::SQLITE_UPDATE && before != after {
                hooks.changes.note(database, table, before, false);
                hooks.changes.note(database, table, after, false);
            } else {
                hooks.changes.note(database, table, before, action == ffi::SQLITE_UPDATE);
            }
        });
    }
}
