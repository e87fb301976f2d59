//! The callbacks from C: authorizer, busy handler, progress handler, commit, rollback, WAL and update hook.
//!
//! Owns: what each callback asks and notes. Each runs on the thread that is inside a SQLite call on the connection.
//! Invariant: no panic crosses into C; each callback catches it and returns the safe result. Leaves out: the state
//! (`hooks`), and the preupdate hook (`preupdate`).

use std::ffi::{CStr, c_char, c_int, c_void};

use rusqlite::ffi;

use super::Hooks;
use super::authorizer::{AuthEvent, Verdict};

/// # Safety
/// `context` is the address of the connection's `Hooks`, which outlives the connection.
pub(super) unsafe fn hooks<'a>(context: *mut c_void) -> &'a Hooks {
    // SAFETY: as the caller promises; only shared references to it are ever made.
    unsafe { &*context.cast::<Hooks>() }
}

/// # Safety
/// `text` is null or a NUL-terminated string that lives for the call.
unsafe fn owned(text: *const c_char) -> Option<Box<str>> {
    if text.is_null() {
        return None;
    }
    // SAFETY: not null, and NUL-terminated as the caller promises.
    Some(unsafe { CStr::from_ptr(text) }.to_string_lossy().into())
}

pub(super) unsafe extern "C" fn on_authorize(
    context: *mut c_void,
    action: c_int,
    first: *const c_char,
    second: *const c_char,
    database: *const c_char,
    accessor: *const c_char,
) -> c_int {
    // SAFETY: SQLite passes the context registered here and strings that live for this call.
    let hooks = unsafe { hooks(context) };
    hooks.guarded(ffi::SQLITE_DENY, || {
        // SAFETY: as above.
        let event = unsafe {
            AuthEvent {
                action,
                first: owned(first),
                second: owned(second),
                database: owned(database),
                accessor: owned(accessor),
            }
        };
        let asked = hooks.authorized(&event);
        match hooks.authorizer.authorize(event) {
            Verdict::Allow => match asked {
                Verdict::Allow => ffi::SQLITE_OK,
                Verdict::Deny => ffi::SQLITE_DENY,
                Verdict::Ignore => ffi::SQLITE_IGNORE,
            },
            Verdict::Deny => ffi::SQLITE_DENY,
            Verdict::Ignore => ffi::SQLITE_IGNORE,
        }
    })
}

pub(super) unsafe extern "C" fn on_busy(context: *mut c_void, calls: c_int) -> c_int {
    // SAFETY: SQLite passes the context registered here.
    let hooks = unsafe { hooks(context) };
    c_int::from(hooks.waits(calls.unsigned_abs()))
}

pub(super) unsafe extern "C" fn on_progress(context: *mut c_void) -> c_int {
    // SAFETY: SQLite passes the context registered here.
    let hooks = unsafe { hooks(context) };
    hooks.guarded(1, || {
        #[cfg(feature = "fault")]
        crate::held_step::looks();
        c_int::from(hooks.interrupts.ends_now() || hooks.progressed())
    })
}

/// Called at the last moment before the point of no return. SQLite calls the progress handler once more when a
/// statement ends, and an interrupt then would report a failure of a statement that is committed. So from here on the
/// progress handler does not interrupt. Whoever may end the statement is asked a last time. A result other than 0 makes
/// SQLite roll the transaction back (<https://sqlite.org/c3ref/commit_hook.html>).
pub(super) unsafe extern "C" fn on_commit(context: *mut c_void) -> c_int {
    // SAFETY: SQLite passes the context registered here.
    let hooks = unsafe { hooks(context) };
    hooks.guarded(0, || {
        let lets = !hooks.failure.is_noted() && hooks.interrupts.lets_commit() && hooks.commits.begins();
        c_int::from(!lets)
    })
}

/// Called when a transaction is rolled back, also by SQLite itself (<https://sqlite.org/c3ref/commit_hook.html>).
pub(super) unsafe extern "C" fn on_rollback(context: *mut c_void) {
    // SAFETY: SQLite passes the context registered here.
    unsafe { hooks(context) }.commits.undoes();
}

/// Called after a commit into a WAL, with no lock held.
pub(super) unsafe extern "C" fn on_wal(
    context: *mut c_void,
    db: *mut ffi::sqlite3,
    database: *const c_char,
    frames: c_int,
) -> c_int {
    // SAFETY: SQLite passes the context registered here and a name that lives for this call.
    let (hooks, name) = unsafe { (hooks(context), CStr::from_ptr(database)) };
    hooks.guarded(ffi::SQLITE_OK, || {
        let limit = hooks.attached_frames.get();
        if name == c"main" {
            hooks.commits.publishes();
        } else if limit > 0 && frames >= limit {
            let none = std::ptr::null_mut();
            // SAFETY: `db` is the connection that committed, and may be used in this hook. The next commit copies what
            // this one could not copy.
            unsafe { ffi::sqlite3_wal_checkpoint_v2(db, database, ffi::SQLITE_CHECKPOINT_PASSIVE, none, none) };
        }
        ffi::SQLITE_OK
    })
}

pub(super) unsafe extern "C" fn on_update(
    context: *mut c_void,
    action: c_int,
    database: *const c_char,
    table: *const c_char,
    rowid: ffi::sqlite3_int64,
) {
    // SAFETY: SQLite passes the context registered here.
    let hooks = unsafe { hooks(context) };
    let is_recorded = hooks.changes.is_recording();
    let is_watched = action == ffi::SQLITE_INSERT && hooks.inserts.is_watching();
    let is_told = hooks.wants_changes();
    if !(is_recorded || is_watched || is_told) || table.is_null() || database.is_null() {
        return;
    }
    // SAFETY: SQLite passes names that live for this call.
    let (database, table) = unsafe { (CStr::from_ptr(database), CStr::from_ptr(table)) };
    hooks.guarded((), || {
        if is_watched {
            hooks.inserts.note(table.to_bytes(), rowid);
        }
        if is_recorded {
            hooks.changes.note(database, table, rowid, action == ffi::SQLITE_UPDATE);
        }
        if is_told {
            hooks.row_changed(action, database, table, rowid);
        }
    });
}
