/**
 * What programs are told of calls: the tracing channel `flatwater.statement`, and NODE_DEBUG=flatwater.
 *
 * Owns: the context of a call, and when its events are published. Invariants: without a subscriber nothing is noted and no clock is
 * read; a context has no bound value and no value of a result. Leaves out: what the engine measures, which it tells for each call that
 * ran a statement.
 *
 * A stream has one context from its making to its end, and a transaction one each for its begin and its end. Live
 * queries have none.
 */

import { tracingChannel, type TracingChannel } from "node:diagnostics_channel";
import { debuglog } from "node:util";
import { native } from "./addon.js";
import { isFirst } from "./loop.js";

/** One call, as the subscribers of the tracing channel `flatwater.statement` get it. Times are in milliseconds, and there at its end. */
export interface StatementEvent {
  /** The path of the database, as it was given to `open`. */
  path: string;
  /** The method, such as `query`; or `begin`, `commit` and `rollback`. */
  operation: string;
  /** The SQL. The values that are bound are not in it. */
  sql: string | undefined;
  inTransaction: boolean;
  /** Where it ran: on this thread, on a reader, on the writer, or there in a transaction that others may share. */
  ranOn?: "caller" | "reader" | "writer" | "group" | "server";
  /** How long it waited until it ran, without `lock`. */
  queue?: number;
  /** How long it waited for locks that others held. */
  lock?: number;
  /** How long it ran. */
  run?: number;
  /** From its beginning until the engine had its result. */
  total?: number;
  /** The rows that were returned. */
  rows?: number;
  /** The rows that were changed. */
  changes?: number;
  /** It took longer than the option `slowStatement`. */
  isSlow?: boolean;
  /** Why it failed. */
  error?: unknown;
}

const channel: TracingChannel<StatementEvent, StatementEvent> = tracingChannel("flatwater.statement");
const { start, end, asyncStart, asyncEnd, error: failed } = channel;

/** True if somebody is told of calls. */
export function isTraced(): boolean {
  return (
    start.hasSubscribers ||
    asyncEnd.hasSubscribers ||
    failed.hasSubscribers ||
    end.hasSubscribers ||
    asyncStart.hasSubscribers
  );
}

/** The database of a call. */
export class Origin {
  /** So many of its calls are being traced. */
  private traced = 0;

  constructor(
    readonly handle: number,
    readonly path: string,
  ) {}

  listen(): void {
    if (this.traced++ === 0) {
      native.listen(this.handle, true);
    }
  }

  unlisten(): void {
    if (--this.traced === 0) {
      native.listen(this.handle, false);
    }
  }
}

/** One call that is traced. */
export class Trace {
  private readonly context: StatementEvent;

  constructor(
    private readonly origin: Origin,
    operation: string,
    sql: string | undefined,
    inTransaction: boolean,
  ) {
    this.context = { path: origin.path, operation, sql, inTransaction };
  }

  /** Makes the call, which never throws, and publishes its events. */
  around<T>(call: () => Promise<T>): Promise<T> {
    return this.begin(() => this.settled(call()));
  }

  /** Runs what begins the call. The call ends with `ended`. */
  begin<T>(call: () => T): T {
    this.origin.listen();
    return start.runStores(this.context, () => {
      try {
        return call();
      } finally {
        end.publish(this.context);
      }
    });
  }

  /** Takes what the engine tells of the last poll. It is called right after each poll of the call. */
  hear(): void {
    Object.assign(this.context, native.event());
  }

  ended(): void {
    this.origin.unlisten();
    asyncStart.publish(this.context);
    asyncEnd.publish(this.context);
  }

  failed(error: unknown): void {
    this.context.error = error;
    failed.publish(this.context);
    this.ended();
  }

  /** An async function, so that the stack of an error shows the code that awaits it. */
  private async settled<T>(promise: Promise<T>): Promise<T> {
    let result: T;
    try {
      result = await promise;
    } catch (error) {
      this.failed(error);
      throw error;
    }
    this.ended();
    return result;
  }
}

/** Writes a line if NODE_DEBUG names `flatwater`. */
export const debug = debuglog("flatwater");

function line({ operation, sql, ranOn, queue, lock, run, total, rows, changes, error }: StatementEvent): string {
  const ms = (time: number | undefined) => (time === undefined ? "-" : time.toFixed(2));
  const times = total === undefined ? "" : ` ${ms(total)} ms (queue ${ms(queue)}, lock ${ms(lock)}, run ${ms(run)})`;
  const facts = [
    ranOn && `on ${ranOn}`,
    rows !== undefined && `rows ${rows}`,
    changes !== undefined && `changes ${changes}`,
  ];
  const failure = error === undefined ? "" : `, failed: ${error instanceof Error ? error.message : String(error)}`;
  return `${operation}${times}, ${facts.filter(Boolean).join(", ") || "nothing ran"}${failure}${sql === undefined ? "" : `: ${sql}`}`;
}

// Copies of this module have one channel.
if (debug.enabled && isFirst) {
  asyncEnd.subscribe((context) => debug("%s", line(context as StatementEvent)));
}
