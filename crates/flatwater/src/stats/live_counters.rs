//! What live queries count, for `stats()`.
//!
//! Owns: the counters, under the lock of the registry of live queries. Leaves out: the numbers of queries and subscribers,
//! which the registry knows.

use std::time::Duration;

use super::{Times, record, times};
use crate::dependencies::index::Precision;

pub(crate) struct LiveCounts {
    /// What is counted. The rest is filled in by `stats`.
    counted: LiveStats,
    lag: Times,
}

impl Default for LiveCounts {
    fn default() -> Self {
        Self { counted: LiveStats::default(), lag: times() }
    }
}

impl LiveCounts {
    /// Counts a change that made every live query run.
    pub(crate) fn invalidated_all(&mut self) {
        self.counted.everything += 1;
    }

    /// Counts that a change caused a run.
    pub(crate) fn invalidated(&mut self, precision: Precision) {
        let by = match precision {
            Precision::Row => &mut self.counted.by_row,
            Precision::Column => &mut self.counted.by_column,
            Precision::Table => &mut self.counted.by_table,
            Precision::EveryCommit => &mut self.counted.by_commit,
        };
        *by += 1;
    }

    pub(crate) fn started(&mut self) {
        self.counted.runs += 1;
    }

    pub(crate) fn was_unchanged(&mut self) {
        self.counted.unchanged += 1;
    }

    pub(crate) fn delivered(&mut self, is_told: bool, is_superseded: bool) {
        self.counted.deliveries += u64::from(is_told);
        self.counted.superseded += u64::from(is_superseded);
    }

    /// Records the time from the publication of a change to the delivery of its result.
    pub(crate) fn lag(&mut self, lag: Duration) {
        record(&mut self.lag, lag);
    }

    pub(crate) fn stats(&self, queries: usize, subscribers: usize, pending: usize) -> LiveStats {
        LiveStats {
            queries,
            subscribers,
            pending,
            lag_p50_us: self.lag.value_at_quantile(0.5),
            lag_p99_us: self.lag.value_at_quantile(0.99),
            lag_max_us: self.lag.max(),
            ..self.counted
        }
    }
}

/// The counters of live queries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LiveStats {
    /// Live queries at the moment. Callers with equal queries share one.
    pub queries: usize,
    /// Streams that receive the results of live queries at the moment.
    pub subscribers: usize,
    /// Live queries that run at the moment, or wait to run.
    pub pending: usize,
    /// Runs that a change of one row caused, in queries that look rows up by their rowid.
    pub by_row: u64,
    /// Runs caused by an UPDATE of a column that the query reads.
    pub by_column: u64,
    /// Runs caused by inserted or deleted rows, or by a change for which only the table is known.
    pub by_table: u64,
    /// Runs that a commit caused because the query may depend on any commit, or because Flatwater does not know what it
    /// reads.
    pub by_commit: u64,
    /// Commits after which every live query ran again: changes of the schema, closures, other processes.
    pub everything: u64,
    /// Runs of live queries, the first ones included.
    pub runs: u64,
    /// Runs whose result was the same as before.
    pub unchanged: u64,
    /// Results that were delivered, once for each stream.
    pub deliveries: u64,
    /// Delivered results that a newer one replaced, or made unneeded, before the stream was polled.
    pub superseded: u64,
    /// The time from a commit to the delivery of its result: median, 99th percentile and longest, in microseconds.
    pub lag_p50_us: u64,
    /// See `lag_p50_us`.
    pub lag_p99_us: u64,
    /// See `lag_p50_us`.
    pub lag_max_us: u64,
}
