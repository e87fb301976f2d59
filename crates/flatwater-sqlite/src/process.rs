//! Detecting that this process was made by fork.
//!
//! Owns: what a forked child sees at once: a number that changes with each fork, and whether a database was open at the
//! fork; and state that each process has for itself. Runs on any thread. SQLite must not be used after a fork
//! (<https://sqlite.org/howtocorrupt.html#_carrying_an_open_database_connection_across_a_fork_>), and locks may have
//! been held by threads that the child does not have. Invariant: the check takes no lock and makes no system call,
//! because any lock may be one that is never released. Leaves out: the reaction to a fork. A child made without the C
//! library's `fork`, such as by a bare `clone`, is not detected.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

static GENERATION: AtomicU32 = AtomicU32::new(0);
static FORKS: AtomicU32 = AtomicU32::new(0);
static OPEN: AtomicUsize = AtomicUsize::new(0);
static STRANDED: AtomicBool = AtomicBool::new(false);
/// Held during each fork, and while a fork would do harm.
static FORKING: AtomicBool = AtomicBool::new(false);

/// A database is open, being opened or being closed. Dropping it ends that state.
#[derive(Debug)]
pub struct InUse(());

impl InUse {
    /// Counts one more database, and makes sure that forks are detected from now on.
    #[must_use]
    pub fn new() -> Self {
        notice_forks();
        OPEN.fetch_add(1, Ordering::SeqCst);
        Self(())
    }
}

impl Default for InUse {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        OPEN.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Returns true in a process that was forked while a database was open: it must neither use nor open a database.
#[must_use]
#[inline]
pub fn is_stranded() -> bool {
    STRANDED.load(Ordering::Relaxed)
}

/// A number that changes with every fork, in the child.
fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
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

fn hold_forks() {
    while FORKING.compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed).is_err() {
        std::thread::yield_now();
    }
}

#[cfg(unix)]
fn notice_forks() {
    extern "C" fn before() {
        hold_forks();
    }
    extern "C" fn in_parent() {
        FORKS.fetch_add(1, Ordering::SeqCst);
        FORKING.store(false, Ordering::Release);
    }
    extern "C" fn in_child() {
        FORKS.fetch_add(1, Ordering::SeqCst);
        GENERATION.fetch_add(1, Ordering::SeqCst);
        if OPEN.load(Ordering::SeqCst) > 0 {
            STRANDED.store(true, Ordering::SeqCst);
        }
        FORKING.store(false, Ordering::Release);
    }
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handlers live as long as the process and only use atomics, which is allowed in the child of a
        // process with several threads (POSIX, pthread_atfork). A failure, for lack of memory, leaves forks undetected.
        unsafe {
            libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child));
        }
    });
}

#[cfg(not(unix))]
fn notice_forks() {}

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
