//! Which process made a value.
//!
//! Owns: the number of this process among those that its ancestors made by fork. Runs on any thread. Invariant: reading it
//! takes no lock and makes no system call, because any lock may be one that is never released. Leaves out: noticing a fork
//! (`process`).

use std::sync::atomic::{AtomicU32, Ordering};

static GENERATION: AtomicU32 = AtomicU32::new(0);

/// A number that changes with every fork, in the child.
#[inline]
pub(crate) fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// Called in the child of a fork, by the only thread that it has.
pub(crate) fn forked() {
    GENERATION.fetch_add(1, Ordering::SeqCst);
}

/// The process that made a value. A forked child has a copy of the value, which is its parent's all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin(u32);

impl Origin {
    /// This process.
    #[must_use]
    #[inline]
    pub fn here() -> Self {
        Self(generation())
    }

    /// Returns true if another process made the value, of which this one is a descendant: the value must not be used here,
    /// nor what it shares with others be dropped.
    #[must_use]
    #[inline]
    pub fn is_inherited(self) -> bool {
        self.0 != generation()
    }
}
