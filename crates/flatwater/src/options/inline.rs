//! Whether short work may run on its caller's thread, and what counts as short.
//!
//! Owns: the option's values, plain values for any thread. Invariant: the defaults are part of the API. Leaves out:
//! deciding whether a call is short.

use std::time::Duration;

/// Whether an awaited call may run on the thread that polls it. A call that is known to be short then costs about what
/// SQLite itself costs, instead of two thread switches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inline {
    /// A statement may run inline if its bytecode shows that it is short and its runs stay within these limits. A run
    /// that exceeds them is repeated by a worker, and the statement then goes to workers for a while.
    Auto(InlineLimits),
    /// Everything runs on worker threads.
    Never,
}

impl Default for Inline {
    fn default() -> Self {
        Self::Auto(InlineLimits::default())
    }
}

/// The limits of an inline call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InlineLimits {
    /// A read is ended after this long; the time is checked about every 1,000 steps of SQLite's virtual machine, and
    /// before each page that is read from the file. A write runs inline only if it usually takes no longer; it is ended
    /// only before reading such a page, and not in a transaction. Default 50 us.
    pub time: Duration,
    /// The maximum number of rows in a result. Default 256.
    pub rows: usize,
    /// The maximum size in bytes of all text and blob parameters together, and of each value and row that is touched.
    /// For values and rows, a limit of less than 1 KiB counts as 1 KiB. Default 64 KiB.
    pub bytes: usize,
}

impl Default for InlineLimits {
    fn default() -> Self {
        Self { time: Duration::from_micros(50), rows: 256, bytes: 64 << 10 }
    }
}
