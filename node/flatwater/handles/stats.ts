/** The counters of a database. Names ending in `Us` are microseconds; `oldestRead` and ages are milliseconds. */
export interface Stats {
  journal: string;
  oneConnection: boolean;
  secondCopies: number;
  writesWaiting: number;
  readsWaiting: number;
  readersHeld: number;
  groups: number;
  members: number;
  replays: number;
  failedCommits: number;
  abandoned: number;
  interrupted: number;
  replacedConnections: number;
  preparedAgain: number;
  parked: number;
  calls: Record<string, { count: number; p50Us: number; p99Us: number; p999Us: number; maxUs: number }>;
  inline: Record<
    | "reads"
    | "writes"
    | "moved"
    | "interrupted"
    | "movedToPrepare"
    | "queued"
    | "queuedBusy"
    | "queuedUnknown"
    | "queuedLong"
    | "queuedBackoff"
    | "queuedBreaker"
    | "yields"
    | "longestUs",
    number
  >;
  wal: Record<string, unknown>;
  leases: Record<string, number>;
  turns: Record<string, number>;
  live: Record<string, number>;
}
