/**
 * The counters of a database, as types.
 *
 * Owns: their names, which are those of Rust's `Stats` in camelCase. A name that ends in `Us` is a time in microseconds; `oldestRead` and
 * `age` are in milliseconds. A test compares them with what a database has. Leaves out: counting, which the engine does.
 */

/** The kinds of calls that are counted apart. */
export type CallKind =
  | "execute"
  | "executeMany"
  | "batch"
  | "executeScript"
  | "query"
  | "fetch"
  | "snapshot"
  | "live"
  | "begin"
  | "commit"
  | "readWith"
  | "writeWith"
  | "withConnection"
  | "migrate"
  | "backup"
  | "control";

/** Count and latency of one kind of call. Percentiles are exact to 1 %. */
export interface CallStats {
  /** The number of calls answered. */
  readonly count: number;
  /** The median latency. */
  readonly p50Us: number;
  /** The 99th percentile of the latency. */
  readonly p99Us: number;
  /** The 99.9th percentile of the latency. */
  readonly p999Us: number;
  /** The latency of the slowest call. */
  readonly maxUs: number;
}

/** Calls that ran on the thread that made them, and others. None is counted with `tuning: { inline: false }`. */
export interface InlineStats {
  /** Reads that ran on the thread that made them. */
  readonly reads: number;
  /** Writes that ran on the thread that made them. */
  readonly writes: number;
  /** Calls that began on that thread, turned out not to be short, and were run again by a worker. */
  readonly moved: number;
  /** The calls among `moved` that ran for too long. */
  readonly interrupted: number;
  /**
   * The calls among `moved` whose statement SQLite would have had to prepare again, because the schema had changed or
   * because it plans the statement by the values that were bound.
   */
  readonly movedToPrepare: number;
  /**
   * Calls that did not begin on that thread, because they are not a single short statement, or because no connection
   * was free.
   */
  readonly queued: number;
  /** The calls among `queued` for which no reader was free. */
  readonly queuedBusy: number;
  /** The calls among `queued` whose statement was not prepared on the reader, or used there once at most. */
  readonly queuedUnknown: number;
  /** The calls among `queued` whose statement is known not to be short. */
  readonly queuedLong: number;
  /** The calls among `queued` whose statement was not tried for a while, because earlier runs were not short. */
  readonly queuedBackoff: number;
  /** The calls among `queued` that came while no read was tried, because several had waited for the disk. */
  readonly queuedBreaker: number;
  /** Times a call let other tasks run, after 1 ms of results that were there at once on its thread. */
  readonly yields: number;
  /** The longest time one call held its thread. */
  readonly longestUs: number;
}

/** What prevented a restart of the WAL. */
export interface WalBlocker {
  /**
   * A read of this database, the one that began first; or another process, or a connection of this process that is
   * not Flatwater's.
   */
  readonly kind: "read" | "foreign";
  /** For how long the read had been running, in milliseconds; null for "foreign". */
  readonly age: number | null;
  /** The SQL of the read, cut to 200 bytes and without its parameters; null for "foreign". */
  readonly sql: string | null;
}

/** The WAL and its checkpoints, as the checkpointer last saw them. All zero without a checkpointer. */
export interface WalStats {
  /** Frames in the WAL. */
  readonly frames: number;
  /** Frames that are not yet copied into the database. */
  readonly backlog: number;
  /** Length of the `-wal` file. A restart of the WAL does not shorten it. */
  readonly fileBytes: number;
  /** Frames that background checkpoints copied since the database was opened. */
  readonly copiedFrames: number;
  /** Background checkpoints, including those that prepare a restart. */
  readonly copies: number;
  /** The median duration of a background checkpoint. */
  readonly copyP50Us: number;
  /** The longest duration of a background checkpoint. */
  readonly copyMaxUs: number;
  /** How often the WAL was restarted. */
  readonly resets: number;
  /** How long writes paused for a restart, successful or not: the median. */
  readonly pauseP50Us: number;
  /** The 99th percentile of that pause. */
  readonly pauseP99Us: number;
  /** The longest such pause. */
  readonly pauseMaxUs: number;
  /** Attempts to restart the WAL that were blocked when at least the two attempts before them were. */
  readonly starved: number;
  /** What blocked the restart the last time `starved` was counted. */
  readonly cause: WalBlocker | null;
  /** Reads that were ended because of `readLimit`. */
  readonly cutOff: number;
  /** Writes, or groups of writes, that waited because the WAL was beyond its hard limit. */
  readonly waitsForRoom: number;
  /** Writes, or groups of writes, that were delayed because the WAL grew faster than the disk could take it. */
  readonly slowed: number;
  /** Checkpoints that failed for another reason than a lock. */
  readonly failures: number;
  /** For how long the oldest running read has been running, in milliseconds. */
  readonly oldestRead: number | null;
}

/**
 * Snapshots that a connection kept from one read, or short write, for the next. There are none with attached files, with an external
 * checkpointer, or in a journal mode other than WAL.
 */
export interface LeaseStats {
  /** Leases taken. */
  readonly taken: number;
  /** Reads that used a lease again. */
  readonly reused: number;
  /** Leases that ended because a commit of any process, or a WAL restart, changed the WAL. */
  readonly endedByCommit: number;
  /** Leases that ended because no read used them for some milliseconds. */
  readonly endedByIdle: number;
  /** Leases that ended at their maximum age. */
  readonly endedByAge: number;
  /** Leases that ended because the checkpointer was about to restart or truncate the WAL. */
  readonly endedByCheckpoint: number;
  /** Leases that ended with a failed read, or their connection. */
  readonly endedOtherwise: number;
  /** Leases held at the moment. */
  readonly held: number;
  /** Short writes that continued in the snapshot of the previous write. The other counters count readers only. */
  readonly reusedByWrites: number;
}

/** Turns among the processes that write to the file. All zero with `tuning: { fairness: "off" }`. */
export interface TurnStats {
  /** Turns that this process took. In a turn it may commit many writes. */
  readonly taken: number;
  /** How long it waited for them. */
  readonly waitedUs: number;
  /** Turns that it took before it was next, because no turn had ended for 20 ms: who was next had stopped. */
  readonly stalled: number;
  /** How often the file `<db>-turn` could not be used, so that writes only polled for the lock. */
  readonly failures: number;
  /** Commits that other processes with live queries were told of. */
  readonly commitsAnnounced: number;
  /** How often a commit of another process woke the live queries of this one, before they looked for it. */
  readonly commitsHeard: number;
}

/** The counters of live queries. */
export interface LiveStats {
  /** Live queries at the moment. Callers with equal queries share one. */
  readonly queries: number;
  /** Callers of them at the moment. */
  readonly subscribers: number;
  /** Live queries that run at the moment, or wait for that. */
  readonly pending: number;
  /** Runs that a change of one row caused, in queries that look rows up by their rowid. */
  readonly byRow: number;
  /** Runs that an UPDATE of a column caused that the query reads. */
  readonly byColumn: number;
  /** Runs that rows caused which came or went, or a change that is only known to be in the table. */
  readonly byTable: number;
  /** Runs that a commit caused because the query may depend on any commit, or it is not known what it reads. */
  readonly byCommit: number;
  /** Commits after which every live query ran again: changes of the schema, other processes. */
  readonly everything: number;
  /** Runs of live queries, the first ones included. */
  readonly runs: number;
  /** Runs whose result was the same as before. */
  readonly unchanged: number;
  /** Results that were delivered, once for each caller. */
  readonly deliveries: number;
  /** Delivered results that a newer one replaced, or made unneeded, before the caller awaited them. */
  readonly superseded: number;
  /** The time from a commit to the delivery of its result: the median. */
  readonly lagP50Us: number;
  /** The 99th percentile of that time. */
  readonly lagP99Us: number;
  /** The longest such time. */
  readonly lagMaxUs: number;
}

/** What a database has done since it was opened. Counters only grow; each is read independently of the others. */
export interface Stats {
  /** The journal mode, such as "wal", "delete" or "memory". */
  readonly journal: string;
  /** True if one connection serves both reads and writes, as in memory and in any other journal mode than WAL. */
  readonly oneConnection: boolean;
  /** How often a check found that another SQLite library in this process has the file open. */
  readonly secondCopies: number;
  /** Requests that wait for the writer at the moment. */
  readonly writesWaiting: number;
  /** Requests that wait for a reader at the moment. */
  readonly readsWaiting: number;
  /** Connections that snapshots and streams hold at the moment, of `extraReaders`. */
  readonly readersHeld: number;
  /** Groups of two or more members that were committed. */
  readonly groups: number;
  /** Members of those groups. */
  readonly members: number;
  /** Writes that were run again because a group's transaction was lost. */
  readonly replays: number;
  /** COMMITs that failed. */
  readonly failedCommits: number;
  /** Requests that never began, because their call was aborted or their deadline passed. */
  readonly abandoned: number;
  /**
   * Requests that had begun and were ended, because their call was aborted, their deadline passed, or the time of a
   * close was over: reads that were interrupted, and writes of which nothing is kept.
   */
  readonly interrupted: number;
  /** Connections that were replaced, because a commit could not be undone. */
  readonly replacedConnections: number;
  /**
   * How often SQLite prepared a statement again while it ran: after another schema, or because it plans the statement
   * by the values that are bound.
   */
  readonly preparedAgain: number;
  /** How often the connections were closed because more databases were open than `process.setMaxOpen` allows. */
  readonly parked: number;
  /**
   * Latency of calls, from the call to the answer, by kind, such as `execute`. Kinds that were never called are
   * omitted.
   */
  readonly calls: Partial<Record<CallKind, CallStats>>;
  /** Calls that ran on the thread that made them. */
  readonly inline: InlineStats;
  /** The WAL and its checkpoints. */
  readonly wal: WalStats;
  /** Snapshots that a connection kept from one read, or short write, for the next. */
  readonly leases: LeaseStats;
  /** Turns among the processes that write to the file. */
  readonly turns: TurnStats;
  /** Live queries. */
  readonly live: LiveStats;
}
