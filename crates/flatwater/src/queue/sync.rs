//! The locks of `queue`: the standard library's, or loom's when the queue and the reply are model-checked.

#[cfg(flatwater_loom)]
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU8};
#[cfg(not(flatwater_loom))]
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU8};

#[cfg(flatwater_loom)]
pub(crate) use loom::sync::{Arc, Condvar, Mutex, MutexGuard};
#[cfg(not(flatwater_loom))]
pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard};

/// Locks the mutex, also after a panic in another thread: every critical section of this crate leaves its state
/// consistent.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
