//! Knowing that this process was made by fork.
//!
//! Owns: two facts that the forked child sees at once: a number that changes with each fork, and whether a database was
//! open at the fork. SQLite must not be used after that (<https://sqlite.org/howtocorrupt.html#_carrying_an_open_database_connection_across_a_fork_>),
//! and locks may have been held by threads that the child does not have. Invariant: asking takes no lock and makes no
//! system call, since any lock may be one that is never given back. Leaves out: who asks. A child made without the C
//! library's `fork`, such as by a bare `clone`, is not noticed.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

static GENERATION: AtomicU32 = AtomicU32::new(0);
static OPEN: AtomicUsize = AtomicUsize::new(0);
static STRANDED: AtomicBool = AtomicBool::new(false);

/// A database is open, being opened or being closed. Dropping it says that it is not any more.
#[derive(Debug)]
pub struct InUse(());

impl InUse {
    /// Counts one more, and sees to it that forks are noticed from now on.
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

/// True in a process that was forked while a database was open: no database may be used in it, nor opened.
#[must_use]
#[inline]
pub fn is_stranded() -> bool {
    STRANDED.load(Ordering::Relaxed)
}

/// Changes with every fork, in the child. What was learnt under another number, such as that a thread runs, is void.
#[must_use]
pub fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

#[cfg(unix)]
fn notice_forks() {
    extern "C" fn in_child() {
        GENERATION.fetch_add(1, Ordering::SeqCst);
        if OPEN.load(Ordering::SeqCst) > 0 {
            STRANDED.store(true, Ordering::SeqCst);
        }
    }
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handler lives as long as the process and only stores to atomics, which is allowed in the child of
        // a process with several threads (POSIX, pthread_atfork). A failure, for lack of memory, leaves forks unnoticed.
        unsafe {
            libc::pthread_atfork(None, None, Some(in_child));
        }
    });
}

#[cfg(not(unix))]
fn notice_forks() {}
