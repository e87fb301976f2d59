"""The counters of a database, as types.

The names and units are those of Rust's `Stats`: a name that ends in `_us` is a time in microseconds.
"""

from __future__ import annotations

import datetime
from typing import Literal, TypedDict


class CallStats(TypedDict):
    """Count and latency of one kind of call. Percentiles are exact to 1 %."""

    count: int
    """The number of calls answered."""
    p50_us: int
    """The median latency."""
    p99_us: int
    """The 99th percentile of the latency."""
    p999_us: int
    """The 99.9th percentile of the latency."""
    max_us: int
    """The latency of the slowest call."""


class InlineStats(TypedDict):
    """Calls that ran on the thread that awaited them, and calls that did not. None is counted with
    `tuning={"inline": False}`."""

    reads: int
    """Reads that ran on the thread that awaited them."""
    writes: int
    """Writes that ran on the thread that awaited them."""
    moved: int
    """Calls that began on that thread, turned out not to be short, and were run again by a worker."""
    interrupted: int
    """The calls among `moved` that ran for too long."""
    moved_to_prepare: int
    """The calls among `moved` whose statement SQLite would have had to prepare again, because the schema had changed or
    because it plans the statement by the values that were bound."""
    queued: int
    """Calls that did not begin on that thread, because they are not a single short statement, or because no connection
    was free."""
    queued_busy: int
    """The calls among `queued` for which no reader was free."""
    queued_unknown: int
    """The calls among `queued` whose statement was not prepared on the reader, or used there once at most."""
    queued_long: int
    """The calls among `queued` whose statement is known not to be short."""
    queued_backoff: int
    """The calls among `queued` whose statement was not tried for a while, because earlier runs were not short."""
    queued_breaker: int
    """The calls among `queued` that came while no read was tried, because several had waited for the disk."""
    yields: int
    """Times a call let other tasks run, after 1 ms of results that were there at once on its thread."""
    longest_us: int
    """The longest time one call held its thread."""


class WalBlocker(TypedDict):
    """What prevented a restart of the WAL."""

    kind: Literal["read", "foreign"]
    """A read of this database, the one that began first; or another process, or a connection of this
    process that is not Flatwater's."""
    age: datetime.timedelta | None
    """For how long the read had been running; None for "foreign"."""
    sql: str | None
    """The SQL of the read, cut to 200 bytes and without its parameters; None for "foreign"."""


class WalStats(TypedDict):
    """The WAL and its checkpoints, as the checkpointer last saw them. All zero without a checkpointer."""

    frames: int
    """Frames in the WAL."""
    backlog: int
    """Frames that are not yet copied into the database."""
    file_bytes: int
    """Length of the `-wal` file. A restart of the WAL does not shorten it."""
    copied_frames: int
    """Frames that background checkpoints copied since the database was opened."""
    copies: int
    """Background checkpoints, including those that prepare a restart."""
    copy_p50_us: int
    """The median duration of a background checkpoint."""
    copy_max_us: int
    """The longest duration of a background checkpoint."""
    resets: int
    """How often the WAL was restarted."""
    pause_p50_us: int
    """How long writes paused for a restart, successful or not: the median."""
    pause_p99_us: int
    """The 99th percentile of that pause."""
    pause_max_us: int
    """The longest such pause."""
    starved: int
    """Attempts to restart the WAL that were blocked when at least the two attempts before them were."""
    cause: WalBlocker | None
    """What blocked the restart the last time `starved` was counted."""
    cut_off: int
    """Reads that were ended because of `read_limit`."""
    waits_for_room: int
    """Writes, or groups of writes, that waited because the WAL was beyond its hard limit."""
    slowed: int
    """Writes, or groups of writes, that were delayed because the WAL grew faster than the disk could take it."""
    failures: int
    """Checkpoints that failed for another reason than a lock."""
    oldest_read: datetime.timedelta | None
    """For how long the oldest running read has been running."""


class LeaseStats(TypedDict):
    """Snapshots that a connection kept from one read, or short write, for the next. There are none with attached files,
    with an external checkpointer, or in a journal mode other than WAL."""

    taken: int
    """Leases taken."""
    reused: int
    """Reads that used a lease again."""
    ended_by_commit: int
    """Leases that ended because a commit of any process, or a WAL restart, changed the WAL."""
    ended_by_idle: int
    """Leases that ended because no read used them for some milliseconds."""
    ended_by_age: int
    """Leases that ended at their maximum age."""
    ended_by_checkpoint: int
    """Leases that ended because the checkpointer was about to restart or truncate the WAL."""
    ended_otherwise: int
    """Leases that ended with a failed read, or their connection."""
    held: int
    """Leases held at the moment."""
    reused_by_writes: int
    """Short writes that continued in the snapshot of the previous write. The other counters count readers only."""


class TurnStats(TypedDict):
    """Turns among the processes that write to the file. All zero with `tuning={"fairness": "off"}`."""

    taken: int
    """Turns that this process took. In a turn it may commit many writes."""
    waited_us: int
    """How long it waited for them."""
    stalled: int
    """Turns that it took before it was next, because no turn had ended for 20 ms: who was next had stopped."""
    failures: int
    """How often the file `<db>-turn` could not be used, so that writes only polled for the lock."""
    commits_announced: int
    """Commits that other processes with live queries were told of."""
    commits_heard: int
    """How often a commit of another process woke the live queries of this one, before they looked for it."""


class LiveStats(TypedDict):
    """The counters of live queries."""

    queries: int
    """Live queries at the moment. Callers with equal queries share one."""
    subscribers: int
    """Callers of them at the moment."""
    pending: int
    """Live queries that run at the moment, or wait for that."""
    by_row: int
    """Runs that a change of one row caused, in queries that look rows up by their rowid."""
    by_column: int
    """Runs that an UPDATE of a column caused that the query reads."""
    by_table: int
    """Runs that rows caused which came or went, or a change that is only known to be in the table."""
    by_commit: int
    """Runs that a commit caused because the query may depend on any commit, or it is not known what it reads."""
    everything: int
    """Commits after which every live query ran again: changes of the schema, other processes."""
    runs: int
    """Runs of live queries, the first ones included."""
    unchanged: int
    """Runs whose result was the same as before."""
    deliveries: int
    """Results that were delivered, once for each caller."""
    superseded: int
    """Delivered results that a newer one replaced, or made unneeded, before the caller awaited them."""
    lag_p50_us: int
    """The time from a commit to the delivery of its result: the median."""
    lag_p99_us: int
    """The 99th percentile of that time."""
    lag_max_us: int
    """The longest such time."""


class Stats(TypedDict):
    """What a database has done since it was opened. Counters only grow; each is read independently of the others."""

    journal: str
    """The journal mode, such as "wal", "delete" or "memory"."""
    one_connection: bool
    """True if one connection serves both reads and writes, as in memory and in any other journal mode than WAL."""
    second_copies: int
    """How often a check found that another SQLite library in this process has the file open."""
    writes_waiting: int
    """Requests that wait for the writer at the moment."""
    reads_waiting: int
    """Requests that wait for a reader at the moment."""
    readers_held: int
    """Connections that snapshots and streams hold at the moment, of `extra_readers`."""
    groups: int
    """Groups of two or more members that were committed."""
    members: int
    """Members of those groups."""
    replays: int
    """Writes that were run again because a group's transaction was lost."""
    failed_commits: int
    """COMMITs that failed."""
    abandoned: int
    """Requests that never began, because their task was cancelled or their deadline passed."""
    interrupted: int
    """Requests that had begun and were ended, because their task was cancelled, their deadline passed, or the time of a
    close was over: reads that were interrupted, and writes of which nothing is kept."""
    replaced_connections: int
    """Connections that were replaced, because a commit could not be undone."""
    prepared_again: int
    """How often SQLite prepared a statement again while it ran: after another schema, or because it plans the statement
    by the values that are bound."""
    parked: int
    """How often the connections were closed because more databases were open than `process.set_max_open` allows."""
    calls: dict[str, CallStats]
    """Latency of calls, from the await to the answer, by kind, such as "execute". Kinds that were never called are
    omitted."""
    inline: InlineStats
    """Calls that ran on the thread that awaited them."""
    wal: WalStats
    """The WAL and its checkpoints."""
    leases: LeaseStats
    """Snapshots that a connection kept from one read, or short write, for the next."""
    turns: TurnStats
    """Turns among the processes that write to the file."""
    live: LiveStats
    """Live queries."""
