//! Whether short work may run on its caller's thread, and what counts as short.
//!
//! Owns: the option's values and their defaults, which are API. Leaves out: deciding.

use std::time::Duration;

/// Whether an awaited call may run on the thread that polls it. A call that is known to be short then costs about what
/// SQLite itself costs, instead of two changes of threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inline {
    /// A statement whose bytecode shows that it is short, and that keeps to these limits. One that does not is run again
    /// by a worker, and stays with the workers for a while.
    Auto(InlineLimits),
    /// Everything runs on the threads of workers.
    Never,
}

impl Default for Inline {
    fn default() -> Self {
        Self::Auto(InlineLimits::default())
    }
}

/// What an inline call keeps to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InlineLimits {
    /// A read ends after this long; it is looked at about every 1,000 steps of SQLite's virtual machine, and before each
    /// page that is read from the file. A write is inline only if it usually takes no longer; it is ended only before
    /// such a page, and not in a transaction. Default 50 us.
    pub time: Duration,
    /// Rows of a result at most. Default 256.
    pub rows: usize,
    /// Bytes of text and blob parameters together, and of each value and row that is touched, at most. For values and
    /// rows less than 1 KiB counts as that. Default 64 KiB.
    pub bytes: usize,
}

impl Default for InlineLimits {
    fn default() -> Self {
        Self { time: Duration::from_micros(50), rows: 256, bytes: 64 << 10 }
    }
}
