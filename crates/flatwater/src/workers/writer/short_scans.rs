//! Writes that scan a table in an open transaction: whether the next scan is as short as the last one.
//!
//! Owns: noting a scan with its prepared statement, and asking for it. Runs on the thread that has the transaction's connection.
//! Leaves out: what is noted (`scan_history`), which writes scan (`bytecode::analysis`).

use std::time::Duration;

use super::writer_connection::WriterConnection;
use crate::connection::run::scan_history::RowChanges;
use crate::connection::run::statement_cache::CachedStatement;

/// A scan counts as short if it took no more than this part of the limit in time. With other values the same statement may
/// change each row that it passes, which takes several times as long as to pass it.
const PART_OF_THE_LIMIT: u32 = 4;
/// A scan that took so many times the limit counts against its text.
const FAR_TOO_LONG: u32 = 4;

/// Returns true for a write whose last scan of the table was short, if the table cannot have got many rows since.
pub(super) fn is_short_scan(writer: &WriterConnection, ready: &CachedStatement) -> bool {
    let changes = ready.short_scan().zip(changes_so_far(writer));
    changes.is_some_and(|(before, now)| now.are_few_since(before))
}

/// Called after a write in a transaction that succeeded and took so long, on any thread: if it scans a table, notes whether it
/// was short.
pub(super) fn note_scan(writer: &WriterConnection, ready: &CachedStatement, took: Duration) {
    let is_scan = ready.inline_write().is_some_and(|write| write.scans);
    let Some(limits) = writer.context.policy.limits().filter(|_| is_scan) else { return };
    ready.note_scan(changes_so_far(writer).filter(|_| took <= limits.time / PART_OF_THE_LIMIT));
    if took > limits.time.saturating_mul(FAR_TOO_LONG) {
        // With these values it changed many rows, which it may do again after some short scans.
        ready.text.backoff.was_long();
    }
}

fn changes_so_far(writer: &WriterConnection) -> Option<RowChanges> {
    RowChanges::so_far(&writer.connection.as_ref()?.sqlite)
}
