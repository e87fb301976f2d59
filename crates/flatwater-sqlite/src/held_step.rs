//! Holding a statement at one of its steps, for tests (feature `fault`).
//!
//! Owns: a process-wide switch in the progress handler of all connections. The thread that uses the connection waits
//! there until the test releases it, so that a deadline can pass, or a caller leave, at that step. Invariant: while no
//! `HeldStep` lives, nothing waits. Leaves out: what happens then.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

static EACH_STEP: AtomicBool = AtomicBool::new(false);
static STATE: Mutex<State> = Mutex::new(State { wanted: None, left: None, is_held: false });
static CHANGED: Condvar = Condvar::new();

struct State {
    /// The look to hold, counted from the call of `count_from_here`.
    wanted: Option<u64>,
    /// The looks until one is held; `None` if none is to be held.
    left: Option<u64>,
    is_held: bool,
}

fn lock() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes SQLite look after each step, wherever a program lets it, on the connections that are opened from now on. Never
/// undone.
pub fn look_at_each_step() {
    EACH_STEP.store(true, Ordering::SeqCst);
}

/// The steps between two looks of a new connection, if a test sets them.
pub(crate) fn steps() -> Option<c_int> {
    EACH_STEP.load(Ordering::SeqCst).then_some(1)
}

/// Called for each look.
pub(crate) fn looks() {
    if !EACH_STEP.load(Ordering::Relaxed) {
        return;
    }
    let mut state = lock();
    let Some(left) = &mut state.left else { return };
    *left -= 1;
    if *left > 0 {
        return;
    }
    state.left = None;
    state.is_held = true;
    CHANGED.notify_all();
    while state.is_held {
        state = CHANGED.wait(state).unwrap_or_else(PoisonError::into_inner);
    }
}

/// Starts to count the looks of the process for the `HeldStep` that lives, if one does.
pub fn count_from_here() {
    let mut state = lock();
    state.left = state.wanted.take();
}

/// A step that is held, or is to be. Dropping it releases the step. Only one may live at a time.
pub struct HeldStep(());

impl HeldStep {
    /// Holds the `look`-th look (from 1 on) after the next call of [`count_from_here`].
    #[must_use]
    pub fn at(look: u64) -> Self {
        lock().wanted = Some(look);
        Self(())
    }

    /// Returns true if the step was reached, and a thread waits there.
    #[must_use]
    pub fn is_reached(&self) -> bool {
        lock().is_held
    }
}

impl Drop for HeldStep {
    fn drop(&mut self) {
        *lock() = State { wanted: None, left: None, is_held: false };
        CHANGED.notify_all();
    }
}
