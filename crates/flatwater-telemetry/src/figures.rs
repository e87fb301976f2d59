//! The figures of a database that go into metrics, from `Database::stats`.
//!
//! Owns: their names, kinds and units, which the packages for Python and Node have too: `conformance/figures.csv` lists them. Names and
//! units are OpenTelemetry's form (<https://opentelemetry.io/docs/specs/semconv/general/metrics/>). Pure. Leaves out: where they go.

use flatwater::stats::Stats;

/// Whether a figure only grows while the database is open.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Counter,
    Gauge,
}

impl Kind {
    /// Returns the name, which is also the type in Prometheus' text format.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
        }
    }
}

/// One figure.
pub(crate) struct Figure {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// In UCUM's form: `s` and `By`, or what is counted in braces.
    pub(crate) unit: &'static str,
    pub(crate) help: &'static str,
    pub(crate) read: fn(&Stats) -> f64,
}

macro_rules! figures {
    ($($kind:ident $name:literal, $unit:literal, $help:literal, |$stats:ident| $read:expr;)*) => {
        /// All figures, in the order of the list.
        pub(crate) const FIGURES: &[Figure] = &[
            $(Figure { name: $name, kind: Kind::$kind, unit: $unit, help: $help, read: |$stats| $read as f64 },)*
        ];
    };
}

figures! {
    Gauge "flatwater.writes.waiting", "{request}", "Requests that wait for the writer", |s| s.writes_waiting;
    Gauge "flatwater.reads.waiting", "{request}", "Requests that wait for a reader", |s| s.reads_waiting;
    Gauge "flatwater.readers.held", "{connection}", "Readers of snapshots and streams", |s| s.readers_held;
    Counter "flatwater.groups", "{commit}", "Commits that several writes shared", |s| s.groups;
    Counter "flatwater.groups.members", "{write}", "Writes that shared a commit", |s| s.members;
    Counter "flatwater.commits.failed", "{commit}", "Commits that failed", |s| s.failed_commits;
    Counter "flatwater.calls.abandoned", "{call}", "Calls given up before they ran", |s| s.abandoned;
    Counter "flatwater.calls.interrupted", "{call}", "Calls ended while they ran", |s| s.interrupted;
    Counter "flatwater.connections.replaced", "{connection}", "Connections that were replaced", |s| s.replaced_connections;
    Counter "flatwater.parked", "{database}", "Closures for other databases", |s| s.parked;
    Counter "flatwater.second_copies", "{check}", "Checks that found another SQLite", |s| s.second_copies;
    Gauge "flatwater.loop.longest", "s", "Longest time a call held its thread", |s| s.inline.longest_us as f64 / 1e6;
    Gauge "flatwater.wal.size", "By", "Length of the WAL", |s| s.wal.file_bytes;
    Gauge "flatwater.wal.backlog", "{frame}", "Frames to be copied into the database", |s| s.wal.backlog;
    Gauge "flatwater.wal.oldest_read", "s", "Age of the oldest running read", |s| s.wal.oldest_read.unwrap_or_default().as_secs_f64();
    Counter "flatwater.wal.restarts", "{restart}", "Restarts of the WAL", |s| s.wal.resets;
    Counter "flatwater.wal.starved", "{restart}", "Restarts that were blocked", |s| s.wal.starved;
    Counter "flatwater.wal.waits", "{write}", "Writes that waited for room in it", |s| s.wal.waits_for_room;
    Counter "flatwater.wal.failures", "{checkpoint}", "Checkpoints that failed", |s| s.wal.failures;
    Counter "flatwater.leases.taken", "{lease}", "Snapshots kept for the next call", |s| s.leases.taken;
    Counter "flatwater.leases.reused", "{read}", "Reads that used one again", |s| s.leases.reused;
    Counter "flatwater.turns.taken", "{turn}", "Turns among processes that write", |s| s.turns.taken;
    Counter "flatwater.turns.waited", "s", "Time waited for turns", |s| s.turns.waited_us as f64 / 1e6;
    Gauge "flatwater.live.queries", "{query}", "Live queries", |s| s.live.queries;
    Gauge "flatwater.live.pending", "{query}", "Live queries that run or wait", |s| s.live.pending;
    Counter "flatwater.live.runs", "{run}", "Runs of live queries", |s| s.live.runs;
    Counter "flatwater.live.deliveries", "{result}", "Results that were delivered", |s| s.live.deliveries;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_those_of_all_languages() {
        let own = FIGURES.iter().map(|figure| format!("{},{},{}\n", figure.name, figure.kind.name(), figure.unit));
        assert_eq!(
            include_str!("../../../conformance/figures.csv"),
            format!("name,kind,unit\n{}", own.collect::<String>())
        );
    }
}
