"""The figures of a database that go into metrics, from `Database.stats`.

Owns their names, kinds and units, which all languages have: `conformance/figures.csv` lists them. Names and units are
OpenTelemetry's form (<https://opentelemetry.io/docs/specs/semconv/general/metrics/>). Leaves out the libraries that
take them (`opentelemetry`, `prometheus`), and the duration of calls, which is no figure of `stats`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

from .stats import Stats


class Figure(NamedTuple):
    """One figure."""

    name: str
    """Its name, such as "flatwater.wal.size"."""
    kind: Literal["counter", "gauge"]
    """A counter only grows while the database is open."""
    unit: str
    """The unit, in UCUM's form: "s" and "By", or what is counted in braces."""
    help: str
    """What it counts, for a reader of the metrics."""
    read: Callable[[Stats], float]
    """Takes it from the statistics."""


def _oldest_read(stats: Stats) -> float:
    oldest = stats["wal"]["oldest_read"]
    return 0.0 if oldest is None else oldest.total_seconds()


FIGURES = (
    Figure(
        "flatwater.writes.waiting",
        "gauge",
        "{request}",
        "Requests that wait for the writer",
        lambda s: s["writes_waiting"],
    ),
    Figure(
        "flatwater.reads.waiting", "gauge", "{request}", "Requests that wait for a reader", lambda s: s["reads_waiting"]
    ),
    Figure(
        "flatwater.readers.held",
        "gauge",
        "{connection}",
        "Readers of snapshots and streams",
        lambda s: s["readers_held"],
    ),
    Figure("flatwater.groups", "counter", "{commit}", "Commits that several writes shared", lambda s: s["groups"]),
    Figure("flatwater.groups.members", "counter", "{write}", "Writes that shared a commit", lambda s: s["members"]),
    Figure("flatwater.commits.failed", "counter", "{commit}", "Commits that failed", lambda s: s["failed_commits"]),
    Figure(
        "flatwater.calls.abandoned", "counter", "{call}", "Calls given up before they ran", lambda s: s["abandoned"]
    ),
    Figure(
        "flatwater.calls.interrupted", "counter", "{call}", "Calls ended while they ran", lambda s: s["interrupted"]
    ),
    Figure(
        "flatwater.connections.replaced",
        "counter",
        "{connection}",
        "Connections that were replaced",
        lambda s: s["replaced_connections"],
    ),
    Figure("flatwater.parked", "counter", "{database}", "Closures for other databases", lambda s: s["parked"]),
    Figure(
        "flatwater.second_copies",
        "counter",
        "{check}",
        "Checks that found another SQLite",
        lambda s: s["second_copies"],
    ),
    Figure(
        "flatwater.loop.longest",
        "gauge",
        "s",
        "Longest time a call held its thread",
        lambda s: s["inline"]["longest_us"] / 1e6,
    ),
    Figure("flatwater.wal.size", "gauge", "By", "Length of the WAL", lambda s: s["wal"]["file_bytes"]),
    Figure(
        "flatwater.wal.backlog",
        "gauge",
        "{frame}",
        "Frames to be copied into the database",
        lambda s: s["wal"]["backlog"],
    ),
    Figure("flatwater.wal.oldest_read", "gauge", "s", "Age of the oldest running read", _oldest_read),
    Figure("flatwater.wal.restarts", "counter", "{restart}", "Restarts of the WAL", lambda s: s["wal"]["resets"]),
    Figure(
        "flatwater.wal.starved", "counter", "{restart}", "Restarts that were blocked", lambda s: s["wal"]["starved"]
    ),
    Figure(
        "flatwater.wal.waits",
        "counter",
        "{write}",
        "Writes that waited for room in it",
        lambda s: s["wal"]["waits_for_room"],
    ),
    Figure(
        "flatwater.wal.failures", "counter", "{checkpoint}", "Checkpoints that failed", lambda s: s["wal"]["failures"]
    ),
    Figure(
        "flatwater.leases.taken",
        "counter",
        "{lease}",
        "Snapshots kept for the next call",
        lambda s: s["leases"]["taken"],
    ),
    Figure(
        "flatwater.leases.reused", "counter", "{read}", "Reads that used one again", lambda s: s["leases"]["reused"]
    ),
    Figure(
        "flatwater.turns.taken", "counter", "{turn}", "Turns among processes that write", lambda s: s["turns"]["taken"]
    ),
    Figure("flatwater.turns.waited", "counter", "s", "Time waited for turns", lambda s: s["turns"]["waited_us"] / 1e6),
    Figure("flatwater.live.queries", "gauge", "{query}", "Live queries", lambda s: s["live"]["queries"]),
    Figure(
        "flatwater.live.pending", "gauge", "{query}", "Live queries that run or wait", lambda s: s["live"]["pending"]
    ),
    Figure("flatwater.live.runs", "counter", "{run}", "Runs of live queries", lambda s: s["live"]["runs"]),
    Figure(
        "flatwater.live.deliveries",
        "counter",
        "{result}",
        "Results that were delivered",
        lambda s: s["live"]["deliveries"],
    ),
)
