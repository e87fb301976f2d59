//! Whether short calls may run inline, and what counts as short.
//!
//! An inline run is a run of a short statement on the thread of its caller.
//!
//! Owns: the option's values, usable on any thread. Invariant: the defaults are part of the API. Leaves out: deciding
//! whether a call is short.

use std::time::Duration;

/// A write that took longer than this many times the limit is counted as this many times the limit: the machine or the
/// disk was busy.
const OUTLIER: u32 = 2;
/// So many times the limit may several runs take.
const TOGETHER: u32 = 4;

/// Whether an awaited call may run on the thread that polls it. A call that is known to be short then costs about as
/// much as the SQLite call itself, and saves two thread switches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Inline {
    /// A statement may run inline if its bytecode shows that it is short, and if its runs stay within these limits. If
    /// a run exceeds them, a worker repeats it, and the statement runs on workers for a while.
    Auto(InlineLimits),
    /// Every call runs on a worker thread.
    Never,
}

impl Default for Inline {
    fn default() -> Self {
        Self::Auto(InlineLimits::default())
    }
}

/// The limits of an inline run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct InlineLimits {
    /// The maximum duration of a read. The time is checked about every 1,000 steps of SQLite's virtual machine, and
    /// before each page that is read from the file. While pages come as fast as from the operating system's cache, they are
    /// read for up to four times as long. A write runs inline only if it usually takes no longer than this; it is
    /// interrupted only before it reads such a page, and never inside a transaction. All rows of a batch or of `execute_many`
    /// run inline if together they usually take no longer than four times this. Default 50 us.
    pub time: Duration,
    /// The maximum number of rows in a result. Default 256.
    pub rows: usize,
    /// The maximum size in bytes of all text and blob parameters together, of each value and row that is touched, and of
    /// the JSON that a read returns. For values and rows, a limit below 1 KiB counts as 1 KiB. Default 64 KiB.
    pub bytes: usize,
}

impl InlineLimits {
    /// Sets [`time`](Self::time).
    #[must_use]
    pub fn time(self, time: Duration) -> Self {
        Self { time, ..self }
    }

    /// Sets [`rows`](Self::rows).
    #[must_use]
    pub fn rows(self, rows: usize) -> Self {
        Self { rows, ..self }
    }

    /// Sets [`bytes`](Self::bytes).
    #[must_use]
    pub fn bytes(self, bytes: usize) -> Self {
        Self { bytes, ..self }
    }

    /// How long the writes of a transaction, or the rows of one call, may take together, so that to end them is short too: the
    /// pages that they changed are written then, or freed.
    pub(crate) fn together(&self) -> Duration {
        self.time.saturating_mul(TOGETHER)
    }

    /// Returns the part of the time of an inline write that counts for its text's history.
    pub(crate) fn counted(&self, took: Duration) -> Duration {
        took.min(self.time.saturating_mul(OUTLIER))
    }
}

impl Default for InlineLimits {
    fn default() -> Self {
        Self { time: Duration::from_micros(50), rows: 256, bytes: 64 << 10 }
    }
}
