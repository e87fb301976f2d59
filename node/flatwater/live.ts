/**
 * Live queries.
 *
 * Owns: the iterators of results, of groups and of changes. Invariants: a slow reader gets the newest result; leaving the loop leaves
 * the query. Leaves out: when a query runs again, which the engine decides.
 */

import { native } from "./addon.js";
import { textOf, valuesOf, type CallOptions, type Statement } from "./calls.js";
import { FlatwaterError } from "./errors.js";
import { cells, FAILED, settle, type Reader } from "./loop.js";
import { decode } from "./rows.js";
import type { Row } from "./session.js";
import type { Params } from "./sql.js";

/** How often results are delivered. */
export interface LiveOptions extends Pick<CallOptions, "signal"> {
  /** Wait until there were no changes for so many milliseconds. */
  debounce?: number | undefined;
  /** At most one result in so many milliseconds. */
  throttle?: number | undefined;
}

/** What has changed in a result. */
export interface Change<T = Row> {
  /** The whole result, in place of what was known before: the first time. Otherwise undefined. */
  full: T[] | undefined;
  inserted: T[];
  updated: { old: T; new: T }[];
  deleted: T[];
}

/** What a live query is of. */
export type LiveStatement = Statement | readonly [sql: string, params?: Params];

/** Reads the results of a poll: none at the end. */
class ResultsReader implements Reader<unknown[][] | undefined> {
  isFull = false;

  constructor(private readonly integers: number) {}

  end(): unknown[][] | undefined {
    const count = cells[0]!;
    if (cells[1] !== 1) {
      return undefined;
    }
    this.isFull = cells[2] === 1;
    return Array.from({ length: count }, (_, at) => {
      const rows: unknown[] = [];
      let answer = native.liveResult(at, this.integers);
      while (typeof answer === "string") {
        const more: number = cells[3]!;
        decode(answer, "object", rows);
        answer = more < 0 ? 0 : native.poll(more);
      }
      if (answer === FAILED) {
        throw new FlatwaterError(native.failure());
      }
      return rows;
    });
  }
}

/** What is delivered again and again. */
abstract class LiveIterator<T> implements AsyncIterableIterator<T> {
  private isOver = false;
  private handle = -1;
  /** What is wrong with the call. The first result tells it. */
  private refused: { error: unknown } | undefined;

  constructor(
    begin: () => number,
    private readonly integers: number,
    private readonly signal: AbortSignal | undefined,
  ) {
    try {
      const handle = begin();
      if (handle === FAILED) {
        throw new FlatwaterError(native.failure());
      }
      this.handle = handle;
      unused.register(this, handle, this);
    } catch (error) {
      this.refused = { error };
    }
  }

  protected abstract result(results: unknown[][], isFull: boolean): T;

  async next(): Promise<IteratorResult<T, undefined>> {
    if (!this.isOver) {
      try {
        this.signal?.throwIfAborted();
        if (this.refused !== undefined) {
          throw this.refused.error;
        }
        const reader = new ResultsReader(this.integers);
        const results = await settle(native.next(this.handle, this.integers), reader, this.signal);
        if (results !== undefined && !this.isOver) {
          return { done: false, value: this.result(results, reader.isFull) };
        }
      } catch (error) {
        this.close();
        throw error;
      }
      this.close();
    }
    return { done: true, value: undefined };
  }

  /** Leaves the query. */
  async return(): Promise<IteratorResult<T, undefined>> {
    this.close();
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
  }

  private close(): void {
    if (!this.isOver) {
      this.isOver = true;
      unused.unregister(this);
      native.release(this.handle);
    }
  }
}

const unused = new FinalizationRegistry<number>((handle) => native.release(handle));

class Group<T extends unknown[][]> extends LiveIterator<T> {
  protected result(results: unknown[][]): T {
    return results as T;
  }
}

class Changes<T> extends LiveIterator<Change<T>> {
  protected result(results: unknown[][], isFull: boolean): Change<T> {
    const [first = [], before = [], now = [], deleted = []] = results as T[][];
    if (isFull) {
      return { full: first, inserted: [], updated: [], deleted: [] };
    }
    return { full: undefined, inserted: first, updated: before.map((old, at) => ({ old, new: now[at]! })), deleted };
  }
}

/** The results of a live query: an array of rows each time that it changed. */
export class Live<T = Row> extends LiveIterator<T[]> {
  /** @internal */
  constructor(
    private readonly database: number,
    private readonly query: () => [string, Params | undefined],
    private readonly options: LiveOptions,
    private readonly form: number,
  ) {
    super(() => begin(database, query(), options, false), form, options.signal);
  }

  protected result(results: unknown[][]): T[] {
    return results[0] as T[];
  }

  /** The same query, as what changed from one result to the next. */
  changes(): AsyncIterableIterator<Change<T>> & AsyncDisposable {
    void this.return();
    const { database, query, options, form } = this;
    return new Changes<T>(() => begin(database, query(), options, true), form, options.signal);
  }
}

function begin(database: number, queries: unknown[], options: LiveOptions, changes: boolean): number {
  return native.live(database, queries, options.debounce ?? 0, options.throttle ?? 0, changes);
}

/** @internal */
export function liveGroup(
  database: number,
  statements: readonly LiveStatement[],
  options: LiveOptions,
  integers: number,
): AsyncIterableIterator<Row[][]> & AsyncDisposable {
  const queries = () =>
    statements.flatMap((given) => {
      const [sql, params] =
        typeof given === "string" || !Array.isArray(given) ? [given as Statement, undefined] : given;
      return [textOf(sql as Statement), valuesOf(sql as Statement, params as Params | undefined)];
    });
  return new Group<Row[][]>(() => begin(database, queries(), options, false), integers, options.signal);
}
