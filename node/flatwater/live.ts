/**
 * Live queries.
 *
 * Owns: reading results, groups and changes. Invariant: a slow reader gets the newest result. Leaves out: the end (`parts`); when a query
 * runs again, which the engine decides.
 */

import { native } from "./addon.js";
import { textOf, valuesOf, type CallOptions, type Statement } from "./calls.js";
import { cells, type Reader } from "./loop.js";
import { Parts } from "./parts.js";
import { readAll } from "./rows.js";
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
class ResultsReader<T> implements Reader<T | undefined> {
  constructor(
    private readonly integers: number,
    private readonly made: (results: unknown[][], isFull: boolean) => T,
  ) {}

  end(): T | undefined {
    const [count, isResult, isFull] = cells;
    if (isResult !== 1) {
      return undefined;
    }
    const results = Array.from({ length: count! }, (_, at) => readAll(native.liveResult(at, this.integers)));
    return this.made(results, isFull === 1);
  }
}

/** What is delivered again and again. */
abstract class LiveParts<T> extends Parts<T> {
  /** @internal */
  constructor(
    begin: () => number,
    private readonly integersOf: number,
    signal: AbortSignal | undefined,
  ) {
    super(() => ({ handle: begin(), integers: integersOf }), signal);
  }

  /** @internal */
  protected reader(): Reader<T | undefined> {
    return new ResultsReader(this.integersOf, (results, isFull) => this.result(results, isFull));
  }

  /** @internal */
  protected abstract result(results: unknown[][], isFull: boolean): T;
}

class Group<T extends unknown[][]> extends LiveParts<T> {
  protected result(results: unknown[][]): T {
    return results as T;
  }
}

class Changes<T> extends LiveParts<Change<T>> {
  protected result(results: unknown[][], isFull: boolean): Change<T> {
    const [first = [], before = [], now = [], deleted = []] = results as T[][];
    if (isFull) {
      return { full: first, inserted: [], updated: [], deleted: [] };
    }
    return { full: undefined, inserted: first, updated: before.map((old, at) => ({ old, new: now[at]! })), deleted };
  }
}

/** The results of a live query: an array of rows each time that it changed. */
export class Live<T = Row> extends LiveParts<T[]> {
  /** @internal */
  constructor(
    private readonly database: number,
    private readonly query: () => [string, Params | undefined],
    private readonly options: LiveOptions,
    private readonly form: number,
  ) {
    super(() => begin(database, query(), options, false), form, options.signal);
  }

  /** @internal */
  protected result(results: unknown[][]): T[] {
    return results[0] as T[];
  }

  /** The same query, as what changed from one result to the next. */
  changes(): AsyncIterableIterator<Change<T>> & AsyncDisposable {
    this.close();
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
