//! Dropping a large value on a thread of its own.
//!
//! Owns: that thread. Invariant: the caller's thread is not held by giving the memory back. Leaves out: what is large.

use super::park::start;

/// Drops the value on another thread, or here if none can be started.
pub(crate) fn dispose<T: Send + 'static>(large: T) {
    // If the thread cannot be started, the closure is dropped here, and the value with it.
    let _ = start("fw-dispose", move || drop(large));
}
