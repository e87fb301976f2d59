//! Detecting that this process was made by fork.
//!
//! Owns: noticing a fork, how many databases are open then, and state that each process has for itself. Runs on any
//! thread. A connection must not be used after a fork
//! (<https://sqlite.org/howtocorrupt.html#_carrying_an_open_database_connection_across_a_fork_>), and locks may have
//! been held by threads that the child does not have: a child uses, closes and unlocks nothing that it inherited.
//! Invariant: the check takes no lock and makes no system call, because any lock may be one that is never released.
//! Leaves out: which process made a value (`origin`), the reaction to a fork, and SQLite's own state (`forks`). A child
//! made without the C library's `fork`, such as by a bare `clone`, is not detected.

pub(crate) mod at_exit;
pub(crate) mod forks;
pub(crate) mod origin;

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::process::origin::{Origin, generation};

static FORKS: AtomicU32 = AtomicU32::new(0);
static OPEN: AtomicUsize = AtomicUsize::new(0);
/// A database was open at the fork that made this process, or at one before.
static INHERITED: AtomicBool = AtomicBool::new(false);
/// Held during each fork, and while a fork would do harm.
static FORKING: AtomicBool = AtomicBool::new(false);
/// How many threads are just starting or ending.
static CHANGING: AtomicUsize = AtomicUsize::new(0);

/// A database is open, being opened or being closed. Dropping it ends that state.
#[derive(Debug)]
pub struct InUse(Origin);

impl InUse {
    /// Counts one more database, and makes sure that forks are detected from now on.
    #[must_use]
    pub fn new() -> Self {
        notice_forks();
        OPEN.fetch_add(1, Ordering::SeqCst);
        Self(Origin::here())
    }
}

impl Default for InUse {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        if !self.0.is_inherited() {
            OPEN.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// Returns true if this process may open databases. In a forked child this has SQLite keep its files apart from those that
/// were open at the fork; on systems where it cannot, no database may be open then.
#[must_use]
pub fn may_open() -> bool {
    generation() == 0 || forks::separate() || !INHERITED.load(Ordering::SeqCst)
}

/// Returns true in a forked child.
#[must_use]
pub fn is_forked() -> bool {
    generation() != 0
}

/// How often this process or one of its ancestors was forked, as far as forks are detected.
pub(crate) fn forks() -> u32 {
    notice_forks();
    FORKS.load(Ordering::SeqCst)
}

/// Runs `f`, which is short, while no thread of this process can fork.
pub(crate) fn without_forks<T>(f: impl FnOnce() -> T) -> T {
    struct Allow;
    impl Drop for Allow {
        fn drop(&mut self) {
            FORKING.store(false, Ordering::Release);
        }
    }
    hold_forks();
    let _allow = Allow;
    f()
}

/// A thread is just starting or ending: until this is dropped, no thread of this process can fork. A thread that starts or
/// ends holds a lock of Rust's standard library for a moment, without which no thread can be started in the child.
#[derive(Debug)]
pub struct ThreadChange(Origin);

impl ThreadChange {
    /// Waits for a fork in progress.
    #[must_use]
    pub fn begin() -> Self {
        without_forks(|| CHANGING.fetch_add(1, Ordering::SeqCst));
        Self(Origin::here())
    }
}

impl Drop for ThreadChange {
    fn drop(&mut self) {
        if !self.0.is_inherited() {
            CHANGING.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

fn hold_forks() {
    while FORKING.compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed).is_err() {
        std::thread::yield_now();
    }
}

/// Makes sure that forks are detected from now on, also while no database is open.
#[cfg(unix)]
pub fn notice_forks() {
    extern "C" fn before() {
        hold_forks();
        while CHANGING.load(Ordering::SeqCst) > 0 {
            std::thread::yield_now();
        }
        forks::hold();
    }
    extern "C" fn in_parent() {
        forks::release();
        FORKS.fetch_add(1, Ordering::SeqCst);
        FORKING.store(false, Ordering::Release);
    }
    extern "C" fn in_child() {
        forks::release();
        FORKS.fetch_add(1, Ordering::SeqCst);
        origin::forked();
        if OPEN.load(Ordering::SeqCst) > 0 {
            INHERITED.store(true, Ordering::SeqCst);
            // What the count counted is the parent's, and will not end here.
            OPEN.store(0, Ordering::SeqCst);
        }
        FORKING.store(false, Ordering::Release);
    }
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        forks::prepare();
        // SAFETY: the handlers live as long as the process. In the child they use atomics, which is allowed in the child of
        // a process with several threads (POSIX, pthread_atfork), and release mutexes that the same thread took before.
        // A failure, for lack of memory, leaves forks undetected.
        unsafe {
            libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child));
        }
    });
}

/// Nothing forks here.
#[cfg(not(unix))]
pub fn notice_forks() {}

/// The number of processes in a row, from parent to child, that have a lock of their own.
const SLOTS: usize = 8;

/// State that a forked child begins anew, behind a lock of its own: the parent's lock may never be released in the
/// child, and the state behind it belongs to the parent.
pub struct PerProcess<T> {
    slots: [Mutex<Slot<T>>; SLOTS],
    make: fn() -> T,
}

/// The state behind the lock.
pub struct Slot<T> {
    generation: u32,
    value: Option<T>,
}

impl<T> PerProcess<T> {
    /// State that `make` creates, once in each process.
    #[must_use]
    pub const fn new(make: fn() -> T) -> Self {
        Self { slots: [const { Mutex::new(Slot { generation: 0, value: None }) }; SLOTS], make }
    }

    /// Locks the state of this process.
    pub fn lock(&self) -> MutexGuard<'_, Slot<T>> {
        let generation = generation();
        let mut slot = self.slots[generation as usize % SLOTS].lock().unwrap_or_else(PoisonError::into_inner);
        if slot.value.is_none() || slot.generation != generation {
            // The state of an ancestor must not be dropped in this process.
            std::mem::forget(slot.value.replace((self.make)()));
            slot.generation = generation;
        }
        slot
    }
}

impl<T> Deref for Slot<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value.as_ref().expect("it is made when it is locked")
    }
}

impl<T> DerefMut for Slot<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.value.as_mut().expect("it is made when it is locked")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_is_made_once_and_anew_in_another_generation() {
        static STATE: PerProcess<Vec<u32>> = PerProcess::new(Vec::new);
        STATE.lock().push(1);
        assert_eq!(STATE.lock().len(), 1);
        STATE.slots[0].lock().unwrap().generation = u32::MAX;
        assert!(STATE.lock().is_empty(), "it was another process'");
    }
}
