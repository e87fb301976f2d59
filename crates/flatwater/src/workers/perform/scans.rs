//! Writes that scan a table in an open transaction: whether the next scan is as short as the last one.
//!
//! Owns: which scan counts as short, noting it with its prepared statement, and asking for it. Runs on the thread that has the transaction's connection.
//! Leaves out: what is noted (`scan_history`), which writes scan (`bytecode::analysis`).

use std::time::Duration;

use crate::connection::run::scan_history::RowChanges;
use crate::connection::run::statement_cache::CachedStatement;
use crate::workers::writer::writer_connection::WriterConnection;

/// A scan counts as short if it took no more than this part of the limit in time. With other values the same statement may
/// change each row that it passes, which takes several times as long as to pass it.
const PART_OF_THE_LIMIT: u32 = 4;
/// One of no more steps is short whatever it took: the machine stopped the thread, or nothing was in the processor's caches.
/// How long its text takes on average is asked anyway (`write`).
const FEW_STEPS: u32 = 1_000;
/// A scan that took so many times the limit counts against its text.
const FAR_TOO_LONG: u32 = 4;

/// Returns true for a write whose last scan of the table was short, if the table cannot have got many rows since.
pub(crate) fn is_short_scan(writer: &WriterConnection, ready: &CachedStatement) -> bool {
    let changes = ready.short_scan().zip(changes_so_far(writer));
    changes.is_some_and(|(before, now)| now.are_few_since(before))
}

/// Called after a write in a transaction that succeeded and took so long, on any thread: if it scans a table, notes whether it
/// was short.
pub(crate) fn note_scan(writer: &mut WriterConnection, ready: &CachedStatement, took: Duration) {
    let is_scan = ready.inline_write().is_some_and(|write| write.scans);
    let Some(limits) = writer.context.policy.limits().filter(|_| is_scan) else { return };
    let Some(connection) = &mut writer.connection else { return };
    let scan = Scan { took, steps: connection.sqlite.statement(ready.id).take_steps() };
    ready.note_scan(changes_so_far(writer).filter(|_| scan.is_short(limits.time)));
    if scan.is_far_too_long(limits.time) {
        // With these values it changed many rows, which it may do again after some short scans.
        ready.text.backoff.was_long();
    }
}

/// A scan that has ended.
#[derive(Debug, Clone, Copy)]
struct Scan {
    took: Duration,
    steps: u32,
}

impl Scan {
    fn is_short(self, limit: Duration) -> bool {
        self.steps <= FEW_STEPS || self.took <= limit / PART_OF_THE_LIMIT
    }

    fn is_far_too_long(self, limit: Duration) -> bool {
        self.steps > FEW_STEPS && self.took > limit.saturating_mul(FAR_TOO_LONG)
    }
}

fn changes_so_far(writer: &WriterConnection) -> Option<RowChanges> {
    RowChanges::so_far(&writer.connection.as_ref()?.sqlite)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_was_stopped_makes_no_scan_of_few_rows_long() {
        let limit = Duration::from_micros(50);
        let is = |steps, us| {
            let scan = Scan { took: Duration::from_micros(us), steps };
            (scan.is_short(limit), scan.is_far_too_long(limit))
        };
        assert_eq!(is(500, 12), (true, false));
        assert_eq!(is(500, 5_000), (true, false), "it was stopped");
        assert_eq!(is(2_000, 12), (true, false), "a fast machine");
        assert_eq!(is(2_000, 13), (false, false));
        assert_eq!(is(2_000, 201), (false, true));
    }
}
