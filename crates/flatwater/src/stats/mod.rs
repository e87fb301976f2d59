//! The data of [`Database::stats`](crate::Database::stats): what a database has counted, and the latencies of calls.
//!
//! Owns: the recorder, written by workers and callers' threads, and the snapshot that a caller gets. Counters are
//! single atomics; the times of calls are guarded by a lock for each kind, held for one record or one summary. The recorder also emits
//! the events for what it counts. Leaves out: export to any metrics system.

mod counters;
pub(crate) mod file_counters;
pub(crate) mod query_counters;

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use counters::{Counter, Times, counters};
use file_counters::{TurnRecorder, WalRecorder};
pub use file_counters::{TurnStats, WalBlocker, WalStats};
use query_counters::{InlineRecorder, LeaseRecorder, ReaderCounters};
pub use query_counters::{InlineStats, LeaseStats, LiveStats};

use crate::events;
use flatwater_base::error::Error;
use flatwater_base::inline::outcome::InlineRun;
use flatwater_base::thread::lock;

macro_rules! call_kinds {
    ($($kind:ident $name:literal,)*) => {
        /// The kinds of call that have separate statistics.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum CallKind {
            $($kind,)*
        }

        impl CallKind {
            /// All of them in their order, with their names.
            const ALL: &[(Self, &'static str)] = &[$((Self::$kind, $name),)*];
        }
    };
}

call_kinds! {
    Execute "execute",
    ExecuteMany "execute_many",
    Batch "batch",
    Script "execute_script",
    Query "query",
    Fetch "fetch",
    Snapshot "snapshot",
    Live "live",
    Begin "begin",
    Commit "commit",
    ReadWith "read_with",
    WriteWith "write_with",
    WithConnection "with_connection",
    Migrate "migrate",
    Backup "backup",
    Control "control",
}

pub(crate) struct Recorder {
    path: PathBuf,
    latency: [Mutex<Times>; CallKind::ALL.len()],
    pub(crate) counts: Counts,
    pub(crate) inline: InlineRecorder,
    pub(crate) wal: WalRecorder,
    pub(crate) leases: LeaseRecorder,
    pub(crate) turns: std::sync::Arc<TurnRecorder>,
}

impl Recorder {
    pub(crate) fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            latency: std::array::from_fn(|_| Mutex::default()),
            counts: Counts::default(),
            inline: InlineRecorder::default(),
            wal: WalRecorder::new(path.to_owned()),
            leases: LeaseRecorder::default(),
            turns: std::sync::Arc::new(TurnRecorder::new(path.to_owned())),
        }
    }

    /// Records that a call was answered `latency` after it began.
    pub(crate) fn answered(&self, kind: CallKind, latency: Duration) {
        lock(&self.latency[kind as usize]).record(latency);
    }

    /// Records that a call was tried on its caller's thread; of a read on a reader's connection the readers record the answer.
    pub(crate) fn tried<T>(&self, kind: CallKind, writes: bool, run: &InlineRun<T>) {
        if let InlineRun::Done(_, held) = run {
            let counter = if writes { &self.inline.writes } else { &self.inline.reads };
            counter.count();
            self.answered(kind, held.time());
        }
        self.inline.tried(run);
    }

    pub(crate) fn committed_group(&self, members: usize) {
        self.counts.groups.count();
        self.counts.members.add(members as u64);
    }

    pub(crate) fn commit_failed(&self, error: &Error) {
        self.counts.failed_commits.count();
        events::commit_failed(&self.path, error);
    }

    pub(crate) fn replaced_connection(&self) {
        self.counts.replaced_connections.count();
        events::replaced_connection(&self.path);
    }

    /// Returns everything but the data of the file and of the queues, which the recorder does not have.
    pub(crate) fn snapshot(&self, readers: &ReaderCounters) -> Stats {
        let calls_of = |&(kind, name): &(CallKind, &'static str)| {
            let mut times = if kind == CallKind::Query { readers.answered.clone() } else { Times::default() };
            times.add(&lock(&self.latency[kind as usize]));
            (times.len() > 0).then(|| CallStats {
                kind: name,
                count: times.len(),
                p50_us: times.quantile(0.5),
                p99_us: times.quantile(0.99),
                p999_us: times.quantile(0.999),
                max_us: times.max(),
            })
        };
        Stats {
            calls: CallKind::ALL.iter().filter_map(calls_of).collect(),
            inline: self.inline.snapshot(readers),
            wal: self.wal.snapshot(),
            leases: self.leases.snapshot(readers),
            turns: self.turns.counted(),
            ..self.counts.counted()
        }
    }
}

counters! {
    pub(crate) struct Counts {}

    /// What a database has done since it was opened. Counters only grow; each is read independently of the others.
    #[derive(Debug, Clone, Default, PartialEq, Eq)]
    #[non_exhaustive]
    pub struct Stats {
        /// The journal mode, such as `wal`, `delete` or `memory`.
        pub journal: String,
        /// True if one connection serves both reads and writes, as in memory and in any other journal mode than WAL.
        pub one_connection: bool,
        /// How often a check found that another SQLite library in this process has the file open. Flatwater checks at open
        /// and every few seconds.
        pub second_copies: u64,
        /// Requests that wait for the writer at the moment.
        pub writes_waiting: usize,
        /// Requests that wait for a reader at the moment.
        pub reads_waiting: usize,
        /// Reader connections that closures, snapshots and streams hold at the moment, of
        /// [`Tuning::extra_readers`](crate::options::Tuning::extra_readers).
        pub readers_held: usize,
        /// Commits that two or more writes shared.
        pub groups: u64 = Counter,
        /// Writes in those groups.
        pub members: u64 = Counter,
        /// Writes that were run again because a group's transaction was lost.
        pub replays: u64 = Counter,
        /// COMMITs that failed.
        pub failed_commits: u64 = Counter,
        /// Requests that never began, because their caller dropped them or their deadline passed.
        pub abandoned: u64 = Counter,
        /// Requests that had begun and were ended, because their caller dropped them, their deadline passed, or the
        /// wait of a close was over: interrupted reads, and writes that were rolled back.
        pub interrupted: u64 = Counter,
        /// Connections that Flatwater replaced, because a closure left them in an unexpected state or a commit could
        /// not be undone.
        pub replaced_connections: u64 = Counter,
        /// How often SQLite prepared a statement again while it ran: after another schema, or because it plans the statement by
        /// the values that are bound.
        pub prepared_again: u64,
        /// How often the connections were closed because more databases were open than
        /// [may have some](crate::process::set_max_open).
        pub parked: u64 = Counter,
        /// Latency of calls, from the poll that begins a call to its answer, by kind. Kinds that were never called are
        /// omitted.
        pub calls: Vec<CallStats>,
        /// Calls that ran on the thread that polled them.
        pub inline: InlineStats,
        /// The WAL and its checkpoints.
        pub wal: WalStats,
        /// Snapshots that a connection kept from one read, or short write, for the next.
        pub leases: LeaseStats,
        /// Turns among the processes that write to the file.
        pub turns: TurnStats,
        /// Live queries.
        pub live: LiveStats,
    }
}

/// Count and latency of one kind of call, in microseconds; percentiles are exact to 1 %.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallStats {
    /// The call's name, such as `execute`.
    pub kind: &'static str,
    /// The number of calls answered.
    pub count: u64,
    /// The median latency.
    pub p50_us: u64,
    /// The 99th percentile of the latency.
    pub p99_us: u64,
    /// The 99.9th percentile of the latency.
    pub p999_us: u64,
    /// The latency of the slowest call.
    pub max_us: u64,
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use flatwater_base::inline::eligibility::{Inline, InlinePolicy};

    use super::counters::SLOWEST_US;
    use super::*;

    #[test]
    fn latencies_are_summed_up_by_kind() {
        let recorder = Recorder::new(Path::new("a.db"));
        for us in 1..=1000 {
            recorder.answered(CallKind::Query, Duration::from_micros(us));
        }
        recorder.committed_group(7);
        let stats = recorder.snapshot(&ReaderCounters::default());
        assert_eq!((stats.groups, stats.members, stats.calls.len()), (1, 7, 1));
        let query = &stats.calls[0];
        assert_eq!((query.kind, query.count), ("query", 1000));
        assert!((495..=505).contains(&query.p50_us) && (985..=1000).contains(&query.p99_us), "{query:?}");
    }

    #[test]
    fn what_the_readers_count_is_part_of_it() {
        let recorder = Recorder::new(Path::new("a.db"));
        let policy = InlinePolicy::new(Inline::default(), Instant::now());
        let permit = policy.permit(false, 0, || true).unwrap_or_else(|why| panic!("{why:?}"));
        let stays: InlineRun<()> = InlineRun::Done((), permit.held(Duration::from_micros(3)));
        recorder.tried(CallKind::Query, false, &stays);
        let mut readers = ReaderCounters::default();
        (0..9).for_each(|_| readers.answered(Duration::from_micros(5)));
        readers.reused(4);
        let stats = recorder.snapshot(&readers);
        assert_eq!((stats.calls[0].count, stats.calls[0].p50_us, stats.calls[0].max_us), (10, 5, 5));
        assert_eq!((stats.inline.reads, stats.inline.longest_us, stats.leases.reused), (10, 3, 4));
    }

    #[test]
    fn any_time_can_be_recorded_and_added_to_others() {
        let (mut short, mut long) = (Times::default(), Times::default());
        short.record(Duration::ZERO);
        short.record(Duration::from_micros(700));
        [Duration::from_secs(36), Duration::MAX].into_iter().for_each(|time| long.record(time));
        short.add(&long);
        assert_eq!((short.len(), short.quantile(0.0)), (4, 1));
        assert!(short.max().abs_diff(SLOWEST_US) < SLOWEST_US / 100, "{}", short.max());
    }
}
