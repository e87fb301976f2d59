//! Code that runs when the process exits, before what was registered earlier.
//!
//! Owns: registering it with the C library. It runs on the thread that exits, after `main` has returned or `exit` was
//! called, and while all other threads run on. Invariant: a panic in it goes nowhere. Leaves out: what it does.

use std::panic::catch_unwind;
use std::sync::OnceLock;

static CODE: OnceLock<fn()> = OnceLock::new();

/// Has `code` called when the process exits. Only the first call registers anything. What SQLite registers for itself
/// must be registered before: open a connection first.
pub fn at_exit(code: fn()) {
    if CODE.set(code).is_ok() {
        // SAFETY: the function takes nothing, returns nothing and does not unwind.
        unsafe { libc::atexit(run) };
    }
}

extern "C" fn run() {
    if let Some(code) = CODE.get() {
        let _ = catch_unwind(code);
    }
}
