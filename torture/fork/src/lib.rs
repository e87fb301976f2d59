//! A process that forks itself without exec, as programs do that should not.
//!
//! Owns: the fork, and that the child ends in it. Invariant: a child never returns to its caller's code, and never lives
//! longer than it was given. Leaves out: waiting for it.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a child answers that panicked.
pub const PANICKED: u8 = 101;

/// How a child ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// By `_exit`: nothing else of the process runs.
    AtOnce,
    /// By `exit`: what the C library and its users registered runs first.
    AfterHandlers,
}

/// Forks. The child runs `child` and ends with the exit code that it answers; if that takes longer than `seconds`, the
/// kernel ends it by SIGALRM. The parent is answered the child's number.
///
/// The child has this thread only. It must not need anything that another thread held at the fork, but for what the C
/// library makes ready by itself, such as its allocator; it is ended by the alarm if it does.
///
/// # Errors
/// What the system says.
pub fn fork(ending: Ending, seconds: u32, child: impl FnOnce() -> u8) -> io::Result<i32> {
    // SAFETY: fork itself touches no memory of ours. What the child of a process with several threads may do is limited
    // by locks that others held; it waits for such a lock until the alarm ends it, and breaks nothing of its parent's,
    // whose memory it has a copy of.
    match unsafe { libc::fork() } {
        0 => {
            // SAFETY: a plain system call.
            unsafe { libc::alarm(seconds) };
            let code = i32::from(catch_unwind(AssertUnwindSafe(child)).unwrap_or(PANICKED));
            match ending {
                // SAFETY: ends the process, which has one thread; no code of the caller runs twice.
                Ending::AtOnce => unsafe { libc::_exit(code) },
                // SAFETY: the same, after the handlers that were registered with `atexit`. The standard library's own
                // clean-up is not run: it may take a lock that another thread held at the fork.
                Ending::AfterHandlers => unsafe { libc::exit(code) },
            }
        }
        -1 => Err(io::Error::last_os_error()),
        child => Ok(child),
    }
}
