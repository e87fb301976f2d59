//! What is counted of calls and queries besides their latencies, for `stats()`: how many calls ran on their caller's thread, how often
//! a connection kept its snapshot for its next use and why leases ended, and what live queries did.
//!
//! Owns: the counters, and the snapshots. A counter of calls or leases is a single atomic, written by the thread that ran a call or
//! sent it to a worker, or by who has the lease. Short reads are so fast that an atomic for each would be measurable: what the pool of
//! readers counts is under its lock, which each read takes anyway, and what live queries count under that of their registry. Leaves
//! out: latencies of reads that workers run, all reads in a transaction, the numbers of live queries and subscribers, and deciding
//! where a call runs or when a lease begins and ends.

use std::time::Duration;

use super::counters::{Counter, Times, counters, us};
use flatwater_base::inline::outcome::{Fallback, InlineRun, NotTried};
use flatwater_sql::dependencies::index::Precision;

counters! {
    pub(crate) struct InlineRecorder {}

    /// Calls that ran on the thread that polled them, and calls that did not. With [`Inline::Never`](crate::options::Inline::Never)
    /// no call is tried on its thread and none is counted. Blocking calls are tried and counted too.
    #[derive(Debug, Clone, Default, PartialEq, Eq)]
    #[non_exhaustive]
    pub struct InlineStats {
        /// Reads that ran on the thread that polled them.
        pub reads: u64 = Counter,
        /// Writes that ran on the thread that polled them, and nested transactions that were opened or kept there.
        pub writes: u64 = Counter,
        /// Calls that began on that thread, turned out not to be short, and were run again by a worker.
        pub moved: u64 = Counter,
        /// The calls among `moved` that exceeded the time limit.
        pub interrupted: u64 = Counter,
        /// The calls among `moved` whose statement SQLite would have had to prepare again, because the schema had changed or
        /// because it plans the statement by the values that were bound.
        pub moved_to_prepare: u64 = Counter,
        /// Calls that did not begin on that thread, because they are not a single short statement, or because no connection
        /// was free. A worker ran them, or the calling thread in the case of a blocking call.
        pub queued: u64 = Counter,
        /// The calls among `queued` for which no reader was free.
        pub queued_busy: u64 = Counter,
        /// The calls among `queued` whose statement was not prepared on the reader, or used there once at most.
        pub queued_unknown: u64 = Counter,
        /// The calls among `queued` whose statement is known not to be short.
        pub queued_long: u64 = Counter,
        /// The calls among `queued` whose statement was not tried for a while, because earlier runs were not short.
        pub queued_backoff: u64 = Counter,
        /// The calls among `queued` that came while no read was tried, because several had waited for the disk.
        pub queued_breaker: u64 = Counter,
        /// Times a call suspended so that other tasks could run, after 1 ms of results that were there at once on its thread.
        pub yields: u64 = Counter,
        /// The longest time one call held its caller's thread, in wall-clock microseconds.
        pub longest_us: u64 = Counter,
    }
}

impl InlineRecorder {
    /// Records what became of a call that was tried. A run that was answered is counted with its latency.
    pub(crate) fn tried<T>(&self, run: &InlineRun<T>) {
        match run {
            InlineRun::Done(..) => {}
            InlineRun::FellBack(why, _) => {
                self.moved.count();
                match why {
                    Fallback::Interrupted | Fallback::Late => self.interrupted.count(),
                    Fallback::SchemaChanged => self.moved_to_prepare.count(),
                    _ => {}
                }
            }
            InlineRun::Ineligible(why) => return self.not_tried(*why),
        }
        self.longest_us.raise(us(run.took()));
    }

    /// Returns what is permitted, or counts why it is not.
    pub(crate) fn permitted<T>(&self, permitted: Result<T, NotTried>) -> Option<T> {
        permitted.inspect_err(|why| self.not_tried(*why)).ok()
    }

    pub(crate) fn not_tried(&self, why: NotTried) {
        self.queued.count();
        match why {
            NotTried::Busy => self.queued_busy.count(),
            NotTried::Unknown => self.queued_unknown.count(),
            NotTried::Long => self.queued_long.count(),
            NotTried::Backoff => self.queued_backoff.count(),
            NotTried::Breaker => self.queued_breaker.count(),
            NotTried::Other => {}
        }
    }

    pub(super) fn snapshot(&self, readers: &ReaderCounters) -> InlineStats {
        let mut stats = self.counted();
        // The counter is without the calls that readers ran.
        stats.reads += readers.answered.len();
        stats
    }
}

#[derive(Clone, Default)]
pub(crate) struct ReaderCounters {
    /// Latencies of the reads that were answered on their caller's thread.
    pub(super) answered: Times,
    /// Reads that used a lease again.
    pub(super) reused: u64,
}

impl ReaderCounters {
    /// Records a read that was answered on its caller's thread, and how long it took.
    pub(crate) fn answered(&mut self, took: Duration) {
        self.answered.record(took);
    }

    /// Adds to the number of reads that used a lease again.
    pub(crate) fn reused(&mut self, reads: u64) {
        self.reused += reads;
    }
}

counters! {
    pub(crate) struct LeaseRecorder {}

    /// Leases: snapshots that a reader kept from one read for the next, or the writer from one short write for the next.
    /// There are none with attached files, with an external checkpointer, or in a journal mode other than WAL.
    #[derive(Debug, Clone, Default, PartialEq, Eq)]
    #[non_exhaustive]
    pub struct LeaseStats {
        /// Leases taken.
        pub taken: u64 = Counter,
        /// Reads that used a lease again.
        pub reused: u64,
        /// Leases that ended because a commit of any process, or a WAL restart, changed the WAL.
        pub ended_by_commit: u64 = Counter,
        /// Leases that ended because no read used them for some milliseconds.
        pub ended_by_idle: u64 = Counter,
        /// Leases that ended at their maximum age.
        pub ended_by_age: u64 = Counter,
        /// Leases that ended because the checkpointer was about to restart or truncate the WAL.
        pub ended_by_checkpoint: u64 = Counter,
        /// Leases that ended with a failed read, a closure, or their connection.
        pub ended_otherwise: u64 = Counter,
        /// Leases held at the moment.
        pub held: u64,
        /// Short writes on their callers' threads that continued in the snapshot of the previous write. The other counters
        /// count readers only.
        pub reused_by_writes: u64 = Counter,
    }
}

impl LeaseRecorder {
    pub(crate) fn snapshot(&self, readers: &ReaderCounters) -> LeaseStats {
        let mut stats = LeaseStats { reused: readers.reused, ..self.counted() };
        stats.held = stats.taken.saturating_sub(stats.ended());
        stats
    }
}

impl LeaseStats {
    fn ended(&self) -> u64 {
        self.ended_by_commit + self.ended_by_idle + self.ended_by_age + self.ended_by_checkpoint + self.ended_otherwise
    }
}

#[derive(Default)]
pub(crate) struct LiveCounts {
    /// What is counted. The rest is filled in by `stats`.
    pub(crate) counted: LiveStats,
    lag: Times,
}

impl LiveCounts {
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

    pub(crate) fn delivered(&mut self, is_taken: bool, is_superseded: bool) {
        self.counted.deliveries += u64::from(is_taken);
        self.counted.superseded += u64::from(is_superseded);
    }

    /// Records the time from the publication of a change to the delivery of its result.
    pub(crate) fn lag(&mut self, lag: Duration) {
        self.lag.record(lag);
    }

    pub(crate) fn stats(&self, queries: usize, subscribers: usize, pending: usize) -> LiveStats {
        LiveStats {
            queries,
            subscribers,
            pending,
            lag_p50_us: self.lag.quantile(0.5),
            lag_p99_us: self.lag.quantile(0.99),
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
