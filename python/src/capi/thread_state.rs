//! The state of the interpreter for a thread of the database, which calls functions of Python.
//!
//! Owns: the state, from the first such call of the thread to its end, taking the lock for a call, and whether a
//! thread is in one; a thread that polls a call has both already. The interpreter makes a state for each time that a thread
//! takes its lock, and frees it with the lock, unless the thread has one: that takes longer than a short function, and
//! `threading.local` would be empty in each call. Invariant: the state is freed by its thread, unless the interpreter has ended:
//! then it was freed with that. Leaves out: whether the interpreter has ended (`thread_end`).

use std::cell::{Cell, RefCell};
use std::ptr::NonNull;
use std::time::Instant;

use flatwater::bindings::functions::waited_for_host;
use pyo3::ffi;
use pyo3::prelude::*;

use super::thread_end::{called_unless_gone, staying};

/// A state that this thread does not use at the moment.
struct State(NonNull<ffi::PyThreadState>);

thread_local! {
    /// How many calls of functions this thread is in.
    static CALLS: Cell<usize> = const { Cell::new(0) };
    static STATE: RefCell<Option<State>> = const { RefCell::new(None) };
}

/// Runs `work`, a function of Python that SQLite calls. Returns `None` if the interpreter has ended.
pub(crate) fn called_by_database<T>(work: impl FnOnce(Python<'_>) -> T) -> Option<T> {
    called_unless_gone(|| {
        // A thread that polls a call has the lock already.
        let asked = keep().then(Instant::now);
        Python::try_attach(|py| {
            if let Some(asked) = asked {
                waited_for_host(asked.elapsed());
            }
            staying(|| {
                let _called = Called::enter();
                work(py)
            })
        })
    })?
}

/// Returns true in a function of Python that SQLite calls: a statement waits for this thread.
pub(crate) fn is_called_by_database() -> bool {
    CALLS.get() > 0
}

/// One call of a function. A panic leaves it too.
struct Called;

impl Called {
    fn enter() -> Self {
        CALLS.set(CALLS.get() + 1);
        Self
    }
}

impl Drop for Called {
    fn drop(&mut self) {
        CALLS.set(CALLS.get() - 1);
    }
}

/// Makes the state of this thread, unless it has one. Returns true if it is ours: this is a thread of the database. The
/// interpreter has not ended, and does not end meanwhile.
fn keep() -> bool {
    STATE.with(|state| {
        let Ok(mut state) = state.try_borrow_mut() else { return true };
        if state.is_none() {
            *state = make();
        }
        state.is_some()
    })
}

#[cold]
fn make() -> Option<State> {
    // SAFETY: the interpreter has not ended, and does not end meanwhile.
    unsafe {
        // This thread has a state that is not ours: it began in Python.
        if !ffi::PyGILState_GetThisThreadState().is_null() {
            return None;
        }
        // Not released again: from now on the interpreter finds the state when the thread takes the lock.
        ffi::PyGILState_Ensure();
        NonNull::new(ffi::PyEval_SaveThread()).map(State)
    }
}

impl Drop for State {
    /// Runs at the end of the thread.
    fn drop(&mut self) {
        called_unless_gone(|| {
            // SAFETY: the interpreter has not ended, and does not end meanwhile. The state is that of this thread, which does
            // not have the lock. What is freed with it may run code of Python, which has the lock and the state.
            staying(|| unsafe {
                ffi::PyEval_RestoreThread(self.0.as_ptr());
                ffi::PyThreadState_Clear(self.0.as_ptr());
                ffi::PyThreadState_DeleteCurrent();
            });
        });
    }
}
