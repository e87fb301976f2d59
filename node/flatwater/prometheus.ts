/**
 * The figures of databases for `prom-client`, an optional peer.
 *
 * Owns: the names and labels in Prometheus' form. They are read when the registry is rendered, and cost no statement. Leaves out: what is
 * counted (`figures`), and the endpoint.
 */

import { Counter, Gauge, register, type Registry } from "prom-client";
import type { Database } from "./handles/database.js";
import { FIGURES, type Figure } from "./handles/figures.js";

/** Where the metrics go, and what distinguishes the databases of one process. */
export interface CollectOptions {
  /** The default is prom-client's own. */
  registry?: Registry | undefined;
}

const SUFFIXES: Record<string, string> = { s: "_seconds", By: "_bytes" };

/** Returns a figure's name in Prometheus' form, such as `flatwater_wal_size_bytes`. */
function nameOf({ name, kind, unit }: Figure): string {
  return name.replaceAll(".", "_") + (SUFFIXES[unit] ?? "") + (kind === "counter" ? "_total" : "");
}

/**
 * Puts the figures of `databases` into the registry, with the label `database`, the path of each. A database that is closed has none any
 * more. Call it once for each registry: names are there once. Returns what takes them out again.
 */
export function collect(databases: Iterable<Database>, { registry = register }: CollectOptions = {}): () => void {
  const all = [...databases];
  const names = FIGURES.map((figure) => {
    const name = nameOf(figure);
    const common = { name, help: figure.help, labelNames: ["database"], registers: [registry] };
    if (figure.kind === "counter") {
      const metric: Counter = new Counter({
        ...common,
        collect() {
          metric.reset();
          each(all, figure, (path, value) => metric.inc({ database: path }, value));
        },
      });
    } else {
      const metric: Gauge = new Gauge({
        ...common,
        collect() {
          metric.reset();
          each(all, figure, (path, value) => metric.set({ database: path }, value));
        },
      });
    }
    return name;
  });
  return () => names.forEach((name) => registry.removeSingleMetric(name));
}

function each(databases: Database[], { read }: Figure, take: (path: string, value: number) => void): void {
  for (const db of databases) {
    if (!db.isClosed) {
      take(db.path, read(db.stats()));
    }
  }
}
