//! One stay: a short statement that runs on its caller's thread, under limits that no worker's run has.
//!
//! Owns: putting the limits on and taking them off. Invariant: within a stay nothing is prepared, so that what is known
//! of a statement is true of what runs: one that SQLite wants to prepare again, because the schema changed, fails
//! instead. Leaves out: which statements may stay, and what to do with one that did not end.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use flatwater_sqlite::{Connection as Sqlite, Interrupt, Judge, LateReads, Refusal};

use super::judge;

/// The end of a stay, as the progress handler sees it.
#[derive(Debug)]
pub(crate) struct Budget {
    began: Instant,
    /// Nanoseconds after `began`.
    ends: AtomicU64,
}

impl Budget {
    pub(crate) fn new() -> Self {
        Self { began: Instant::now(), ends: AtomicU64::new(0) }
    }

    fn until(&self, end: Instant) {
        self.ends.store(nanos(end.saturating_duration_since(self.began)), Ordering::Relaxed);
    }
}

impl Interrupt for Budget {
    fn should_stop(&self) -> bool {
        nanos(self.began.elapsed()) >= self.ends.load(Ordering::Relaxed)
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// SQLite writes its messages under the same limit, and one that is cut is lost.
const MESSAGE_BYTES: usize = 1024;

/// What held before a stay.
#[must_use]
pub(crate) struct Before {
    length: usize,
    judge: Judge,
    late_reads: Option<LateReads>,
}

/// When the last page may be read from a file, and how one after that is refused: with a failure if the statement writes,
/// for then SQLite may have to read while it rolls back.
#[derive(Clone, Copy)]
pub(crate) struct LastRead(pub(crate) Instant, pub(crate) Refusal);

/// From now on values, rows and parameters are limited to `bytes`, or to less if they were before, and nothing is
/// prepared. The first page that would be read from a file after `last_read` is refused.
pub(crate) fn begin(sqlite: &mut Sqlite, bytes: usize, last_read: Option<LastRead>) -> Before {
    let bytes = bytes.max(MESSAGE_BYTES);
    let length = sqlite.set_length_limit(bytes);
    if length < bytes {
        sqlite.set_length_limit(length);
    }
    let late_reads = last_read.map(|LastRead(end, refusal)| sqlite.refuse_reads_after(end, refusal));
    Before { length, judge: sqlite.set_judge(judge::nothing), late_reads }
}

/// From now on statements end at `end`.
pub(crate) fn end_at(sqlite: &mut Sqlite, budget: &Arc<Budget>, end: Instant) {
    budget.until(end);
    sqlite.arm(budget.clone());
}

/// What became of the reads of a stay.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Reads {
    /// A page was read from a file.
    pub(crate) some: bool,
    /// One was refused.
    pub(crate) refused: bool,
}

/// The stay is over.
pub(crate) fn end(sqlite: &mut Sqlite, before: Before) -> Reads {
    sqlite.disarm();
    sqlite.set_judge(before.judge);
    sqlite.set_length_limit(before.length);
    before.late_reads.map_or(Reads::default(), |late| Reads { some: late.has_read(), refused: late.has_refused() })
}
