/**
 * The figures of a database that go into metrics, from `db.stats()`.
 *
 * Owns: their names, kinds and units, which the package for Python has too: `conformance/figures.csv` lists them. Names and units are
 * OpenTelemetry's form (https://opentelemetry.io/docs/specs/semconv/general/metrics/). Leaves out: the libraries that take them
 * (`opentelemetry`, `prometheus`), and the duration of calls, which is no figure of `stats`.
 */

import type { Stats } from "./stats.js";

/** One figure. A counter only grows while the database is open. */
export interface Figure {
  readonly name: string;
  readonly kind: "counter" | "gauge";
  /** In UCUM's form: "s" and "By", or what is counted in braces. */
  readonly unit: string;
  readonly help: string;
  readonly read: (stats: Stats) => number;
}

const counter = (name: string, unit: string, help: string, read: Figure["read"]): Figure => ({
  name: `flatwater.${name}`,
  kind: "counter",
  unit,
  help,
  read,
});
const gauge = (name: string, unit: string, help: string, read: Figure["read"]): Figure => ({
  ...counter(name, unit, help, read),
  kind: "gauge",
});

export const FIGURES: readonly Figure[] = [
  gauge("writes.waiting", "{request}", "Requests that wait for the writer", (s) => s.writesWaiting),
  gauge("reads.waiting", "{request}", "Requests that wait for a reader", (s) => s.readsWaiting),
  gauge("readers.held", "{connection}", "Readers of snapshots and streams", (s) => s.readersHeld),
  counter("groups", "{commit}", "Commits that several writes shared", (s) => s.groups),
  counter("groups.members", "{write}", "Writes that shared a commit", (s) => s.members),
  counter("commits.failed", "{commit}", "Commits that failed", (s) => s.failedCommits),
  counter("calls.abandoned", "{call}", "Calls given up before they ran", (s) => s.abandoned),
  counter("calls.interrupted", "{call}", "Calls ended while they ran", (s) => s.interrupted),
  counter("connections.replaced", "{connection}", "Connections that were replaced", (s) => s.replacedConnections),
  counter("parked", "{database}", "Closures for other databases", (s) => s.parked),
  counter("second_copies", "{check}", "Checks that found another SQLite", (s) => s.secondCopies),
  gauge("loop.longest", "s", "Longest time a call held its thread", (s) => s.inline.longestUs / 1e6),
  gauge("wal.size", "By", "Length of the WAL", (s) => s.wal.fileBytes),
  gauge("wal.backlog", "{frame}", "Frames to be copied into the database", (s) => s.wal.backlog),
  gauge("wal.oldest_read", "s", "Age of the oldest running read", (s) => (s.wal.oldestRead ?? 0) / 1000),
  counter("wal.restarts", "{restart}", "Restarts of the WAL", (s) => s.wal.resets),
  counter("wal.starved", "{restart}", "Restarts that were blocked", (s) => s.wal.starved),
  counter("wal.waits", "{write}", "Writes that waited for room in it", (s) => s.wal.waitsForRoom),
  counter("wal.failures", "{checkpoint}", "Checkpoints that failed", (s) => s.wal.failures),
  counter("leases.taken", "{lease}", "Snapshots kept for the next call", (s) => s.leases.taken),
  counter("leases.reused", "{read}", "Reads that used one again", (s) => s.leases.reused),
  counter("turns.taken", "{turn}", "Turns among processes that write", (s) => s.turns.taken),
  counter("turns.waited", "s", "Time waited for turns", (s) => s.turns.waitedUs / 1e6),
  gauge("live.queries", "{query}", "Live queries", (s) => s.live.queries),
  gauge("live.pending", "{query}", "Live queries that run or wait", (s) => s.live.pending),
  counter("live.runs", "{run}", "Runs of live queries", (s) => s.live.runs),
  counter("live.deliveries", "{result}", "Results that were delivered", (s) => s.live.deliveries),
];
