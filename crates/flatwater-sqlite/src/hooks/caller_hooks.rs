//! What the caller of a connection of its own wants to be asked and told, beside what the engine asks itself.
//!
//! Owns: the callbacks of one connection, and calling them. Runs on the thread that uses the connection, inside of
//! SQLite. Invariant: a callback is called only for statements of the caller: while one is prepared, or runs armed.
//! Leaves out: what the engine asks (`authorizer`, `interrupts`), which comes first.

use std::cell::{Cell, RefCell};
use std::ffi::{CStr, c_int, c_uint, c_void};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::ffi;

use super::Hooks;
use super::authorizer::{AuthEvent, Verdict};
use super::callbacks::hooks;

/// Decides what a text of the caller may do.
pub type Authorize = Arc<dyn Fn(&AuthEvent) -> Verdict + Send + Sync>;
/// Returns true if the statement must end.
pub type Progress = Arc<dyn Fn() -> bool + Send + Sync>;
/// Is told of a statement that begins to run: its text, and the same with its values.
pub type Trace = Arc<dyn Fn(&str, &str) + Send + Sync>;
/// Is told of a statement that has ended, and how long it took.
pub type Profile = Arc<dyn Fn(&str, Duration) + Send + Sync>;
/// Is told of a row that the update hook reports: `insert`, `update` or `delete`, the database, the table, the rowid.
pub type Changed = Arc<dyn Fn(&'static str, &str, &str, i64) + Send + Sync>;

/// The callbacks of a caller.
#[derive(Clone, Default)]
pub struct Callbacks {
    /// Called for what a text does.
    pub authorize: Option<Authorize>,
    /// Called after about so many steps of the virtual machine.
    pub progress: Option<(i32, Progress)>,
    /// Called for each statement, those of triggers included.
    pub trace: Option<Trace>,
    /// Called when a statement has ended, also one that the engine runs in between.
    pub profile: Option<Profile>,
    /// Called for each row that changes.
    pub changed: Option<Changed>,
    /// Limits of the connection (<https://sqlite.org/c3ref/limit.html>), which stay when these callbacks are gone.
    pub limits: Vec<(i32, i32)>,
}

/// The callbacks that are called now.
#[derive(Default)]
pub(super) struct Called {
    callbacks: RefCell<Callbacks>,
    /// Steps since the last call of `progress`.
    steps: Cell<i32>,
    wants_changes: Cell<bool>,
}

impl Called {
    fn now(&self) -> Callbacks {
        self.callbacks.borrow().clone()
    }
}

impl Hooks {
    /// Has these callbacks called from now on, in the place of others.
    pub fn call(&self, callbacks: Callbacks) {
        let (handle, context) = (self.handle.raw(), self.as_context());
        let steps = callbacks.progress.as_ref().map_or(0, |(steps, _)| (*steps).max(1));
        self.interrupts.look_at_least_after(steps);
        self.install_progress();
        let traces = if callbacks.trace.is_some() { ffi::SQLITE_TRACE_STMT } else { 0 };
        let profiles = if callbacks.profile.is_some() { ffi::SQLITE_TRACE_PROFILE } else { 0 };
        let mask = (traces | profiles) as c_uint;
        let on_trace: OnTrace = (mask != 0).then_some(on_trace);
        // SAFETY: the connection is open and used here alone; hooks keep their address until it is closed.
        unsafe { ffi::sqlite3_trace_v2(handle, mask, on_trace, context) };
        for &(limit, value) in &callbacks.limits {
            // SAFETY: as above; SQLite ignores a limit that it does not know.
            unsafe { ffi::sqlite3_limit(handle, limit, value) };
        }
        self.called.wants_changes.set(callbacks.changed.is_some());
        *self.called.callbacks.borrow_mut() = callbacks;
        self.called.steps.set(0);
    }

    /// Asks the caller's authorizer, if the event is one of a text that is being prepared.
    pub(super) fn authorized(&self, event: &AuthEvent) -> Verdict {
        let authorize = self.called.now().authorize.filter(|_| self.authorizer.is_recording());
        authorize.map_or(Verdict::Allow, |authorize| authorize(event))
    }

    /// Tells of a row that has changed, if the caller wants to know and its statement runs.
    pub(super) fn row_changed(&self, action: c_int, database: &CStr, table: &CStr, rowid: i64) {
        let Some(changed) = self.called.now().changed.filter(|_| self.interrupts.is_armed()) else { return };
        let action = match action {
            ffi::SQLITE_INSERT => "insert",
            ffi::SQLITE_UPDATE => "update",
            _ => "delete",
        };
        changed(action, &database.to_string_lossy(), &table.to_string_lossy(), rowid);
    }

    /// Returns true if `row_changed` is to be called.
    pub(super) fn wants_changes(&self) -> bool {
        self.called.wants_changes.get()
    }

    /// Asks the caller's progress handler, if it is its turn. Returns true if the statement must end.
    pub(super) fn progressed(&self) -> bool {
        let Some((every, progress)) = self.called.now().progress.filter(|_| self.interrupts.is_armed()) else {
            return false;
        };
        let steps = self.called.steps.get().saturating_add(self.interrupts.steps());
        self.called.steps.set(if steps < every { steps } else { 0 });
        steps >= every && progress()
    }
}

type OnTrace = Option<unsafe extern "C" fn(c_uint, *mut c_void, *mut c_void, *mut c_void) -> c_int>;

/// Called when a statement begins to run, and for each that a trigger runs, and when one has ended.
unsafe extern "C" fn on_trace(what: c_uint, context: *mut c_void, statement: *mut c_void, more: *mut c_void) -> c_int {
    // SAFETY: SQLite passes the context registered here.
    let hooks = unsafe { hooks(context) };
    hooks.guarded(0, || {
        let callbacks = hooks.called.now();
        // SAFETY: SQLite passes the statement, which lives for the call, and for the end of one the nanoseconds that it took.
        unsafe {
            if what == ffi::SQLITE_TRACE_PROFILE as c_uint {
                let took = Duration::from_nanos((*more.cast::<i64>()).unsigned_abs());
                callbacks.profile.into_iter().for_each(|profile| ended(statement, &profile, took));
            } else if hooks.interrupts.is_armed() {
                callbacks.trace.into_iter().for_each(|trace| begins(statement, &trace));
            }
        }
        0
    })
}

/// Tells of a statement that begins, with its values.
///
/// # Safety
/// The statement is SQLite's, and lives for the call.
unsafe fn begins(statement: *mut c_void, trace: &Trace) {
    // SAFETY: as above. Both texts are null or NUL-terminated; the second is this code's to free.
    unsafe {
        let (text, expanded) = (ffi::sqlite3_sql(statement.cast()), ffi::sqlite3_expanded_sql(statement.cast()));
        if !text.is_null() && !expanded.is_null() {
            let said = CStr::from_ptr(expanded).to_string_lossy().into_owned();
            ffi::sqlite3_free(expanded.cast());
            trace(&CStr::from_ptr(text).to_string_lossy(), &said);
        }
    }
}

/// Tells of a statement that has ended.
///
/// # Safety
/// The same.
unsafe fn ended(statement: *mut c_void, profile: &Profile, took: Duration) {
    // SAFETY: as above. The text is null or NUL-terminated, and the statement's.
    unsafe {
        let text = ffi::sqlite3_sql(statement.cast());
        if !text.is_null() {
            profile(&CStr::from_ptr(text).to_string_lossy(), took);
        }
    }
}
