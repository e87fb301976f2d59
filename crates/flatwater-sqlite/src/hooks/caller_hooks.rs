//! What the caller of a connection of its own wants to be asked and told, beside what the engine asks itself.
//!
//! Owns: the callbacks of one connection, and calling them. Runs on the thread that uses the connection, inside of
//! SQLite. Invariant: a callback is called only for statements of the caller: while one is prepared, or runs armed.
//! Leaves out: what the engine asks (`authorizer`, `interrupts`), which comes first.

use std::cell::{Cell, RefCell};
use std::ffi::{CStr, c_int, c_uint, c_void};
use std::sync::Arc;

use rusqlite::ffi;

use super::Hooks;
use super::authorizer::{AuthEvent, Verdict};
use super::callbacks::hooks;

/// Decides what a text of the caller may do.
pub type Authorize = Arc<dyn Fn(&AuthEvent) -> Verdict + Send + Sync>;
/// Returns true if the statement must end.
pub type Progress = Arc<dyn Fn() -> bool + Send + Sync>;
/// Is told of a statement that begins to run, with its values.
pub type Trace = Arc<dyn Fn(&str) + Send + Sync>;

/// The callbacks of a caller.
#[derive(Clone, Default)]
pub struct Callbacks {
    /// Called for what a text does.
    pub authorize: Option<Authorize>,
    /// Called after about so many steps of the virtual machine.
    pub progress: Option<(i32, Progress)>,
    /// Called for each statement, those of triggers included.
    pub trace: Option<Trace>,
}

/// The callbacks that are called now.
#[derive(Default)]
pub(super) struct Called {
    callbacks: RefCell<Callbacks>,
    /// Steps since the last call of `progress`.
    steps: Cell<i32>,
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
        let traces = callbacks.trace.is_some();
        let (mask, on_trace): (c_uint, OnTrace) =
            if traces { (ffi::SQLITE_TRACE_STMT as c_uint, Some(on_trace)) } else { (0, None) };
        // SAFETY: the connection is open and used here alone; hooks keep their address until it is closed.
        unsafe { ffi::sqlite3_trace_v2(handle, mask, on_trace, context) };
        *self.called.callbacks.borrow_mut() = callbacks;
        self.called.steps.set(0);
    }

    /// Asks the caller's authorizer, if the event is one of a text that is being prepared.
    pub(super) fn authorized(&self, event: &AuthEvent) -> Verdict {
        let authorize = self.called.now().authorize.filter(|_| self.authorizer.is_recording());
        authorize.map_or(Verdict::Allow, |authorize| authorize(event))
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

/// Called when a statement begins to run, and for each that a trigger runs.
unsafe extern "C" fn on_trace(_: c_uint, context: *mut c_void, statement: *mut c_void, _: *mut c_void) -> c_int {
    // SAFETY: SQLite passes the context registered here.
    let hooks = unsafe { hooks(context) };
    hooks.guarded(0, || {
        let Some(trace) = hooks.called.now().trace.filter(|_| hooks.interrupts.is_armed()) else { return 0 };
        // SAFETY: SQLite passes the statement, which lives for the call. The text is null or NUL-terminated, and is this
        // code's to free.
        unsafe {
            let text = ffi::sqlite3_expanded_sql(statement.cast());
            if !text.is_null() {
                let said = CStr::from_ptr(text).to_string_lossy().into_owned();
                ffi::sqlite3_free(text.cast());
                trace(&said);
            }
        }
        0
    })
}
