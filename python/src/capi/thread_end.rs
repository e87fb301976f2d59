//! Threads that the interpreter ends while they are within this package.
//!
//! Owns: what happens to them. Until Python 3.14 the interpreter ends a daemon thread, when it has ended itself and the
//! thread comes back for the lock, by unwinding its stack: through Rust, which would release the lock that the thread
//! does not have, and abort the process. Invariant: such a thread waits for the end of the process instead, as it does
//! from 3.14 on.

use std::mem::forget;
use std::thread::{panicking, park};

use pyo3::prelude::*;

/// Runs `work` with the interpreter, on a thread that has its lock.
pub(super) fn attached<T>(work: impl FnOnce(Python<'_>) -> T) -> T {
    Python::attach(|py| staying(|| work(py)))
}

/// Runs `work`, which calls code of Python, in a function that PyO3 calls.
pub(crate) fn staying<T>(work: impl FnOnce() -> T) -> T {
    let stays = Stays;
    let done = work();
    forget(stays);
    done
}

/// Is dropped only when the stack is unwound.
struct Stays;

impl Drop for Stays {
    fn drop(&mut self) {
        while !panicking() {
            park();
        }
    }
}
