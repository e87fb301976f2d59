//! The file `<db>-turn`, through which the processes that write to a database take turns.
//!
//! Owns: making and removing the file, its counters, its locks, and waiting until a counter changes. Runs on any thread; only
//! `wait` blocks. Invariants: the file is made and removed only while no other process uses it; what it holds is read and
//! written by system calls and never through the mapping, which only gives the kernel the address to wait at. So a file that
//! was cut short, removed or filled with something else is an error of a call, and never SIGBUS. Leaves out: what the
//! counters mean (the engine's `turnstile`).
//!
//! | bytes | |
//! |---|---|
//! | 0..12 | the name and the version of this form |
//! | 16, 20, 24 | the counters of [`Word`], in the byte order of the machine |
//!
//! | lock | held by |
//! |---|---|
//! | `IN_USE`, shared | each process that uses the file; alone: the one that makes or removes it |
//! | `FOLLOWING`, shared | each process that waits for commits |
//! | one byte for each ticket, alone | who has drawn it: it shows that he lives |

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod other;

#[cfg(target_os = "linux")]
pub use linux::{TurnFile, precise_pauses};
#[cfg(not(target_os = "linux"))]
pub use other::{TurnFile, precise_pauses};

/// The counters of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    /// The highest ticket that was drawn.
    Next,
    /// The highest ticket whose turn is over.
    Served,
    /// Changes with each commit that is told here.
    Commit,
}

/// What the counters were, at one moment each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counters {
    /// See [`Word::Next`].
    pub next: u32,
    /// See [`Word::Served`].
    pub served: u32,
    /// See [`Word::Commit`].
    pub commit: u32,
}
