//! Forks the process without exec, which programs should not do.
//!
//! Owns: the fork, and that the child ends inside it. Invariant: a child never returns to its caller's code, and never
//! lives longer than its time limit. Leaves out: waiting for the child.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The exit code of a child that panicked.
pub const PANICKED: u8 = 101;

/// How a child ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// By `_exit`: no other code of the process runs.
    AtOnce,
    /// By `exit`: the handlers registered by the C library and its users run first.
    AfterHandlers,
}

/// Forks. The child runs `child` and exits with the code it returns; if that takes longer than `seconds`, the kernel
/// ends the child with SIGALRM. The parent receives the child's process id.
///
/// Only the calling thread exists in the child. The child must not need anything that another thread held at the fork,
/// except what the C library itself prepares for a fork, such as its allocator; otherwise the alarm ends it.
///
/// # Errors
/// The system's error.
pub fn fork(ending: Ending, seconds: u32, child: impl FnOnce() -> u8) -> io::Result<i32> {
    // SAFETY: fork itself accesses no memory of this process. In the child of a process with several threads, locks may
    // be held by threads that do not exist there; the child waits for such a lock until the alarm ends it. It cannot
    // damage its parent, because it has only a copy of the parent's memory.
    match unsafe { libc::fork() } {
        0 => {
            // SAFETY: alarm has no preconditions.
            unsafe { libc::alarm(seconds) };
            let code = i32::from(catch_unwind(AssertUnwindSafe(child)).unwrap_or(PANICKED));
            match ending {
                // SAFETY: this ends the process, which has one thread; no code of the caller runs twice.
                Ending::AtOnce => unsafe { libc::_exit(code) },
                // SAFETY: as above, after the handlers that were registered with `atexit`. The standard library's own
                // clean-up does not run: it could take a lock that another thread held at the fork.
                Ending::AfterHandlers => unsafe { libc::exit(code) },
            }
        }
        -1 => Err(io::Error::last_os_error()),
        child => Ok(child),
    }
}
