/**
 * Live queries.
 *
 * Owns: reading results, groups and changes. Invariant: a slow reader gets the newest result. Leaves out: the end (`parts`); when a query
 * runs again, which the engine decides.
 */

import {
  formOf,
  textOf,
  timeoutOf,
  valuesOf,
  type CallOptions,
  type QueryOptions,
  type Statement,
} from "../calls/calls.js";
import { check, LIVE_OPTIONS, timeOf } from "../calls/given.js";
import { begunAs, Parts } from "../calls/parts.js";
import type { ReadAs } from "../calls/types.js";
import { native } from "../native/addon.js";
import { tooLate } from "../native/errors.js";
import { cells, type Reader } from "../native/loop.js";
import { decode, LIST, type RowForm } from "../values/rows.js";
import type { Params } from "../values/sql.js";
import type { Row } from "./session.js";

/** How often results are delivered. `timeout` is the deadline of the first one; a change may be long in coming. */
export interface LiveOptions extends CallOptions, Pick<QueryOptions, "rows" | "integers" | "types"> {
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
  constructor(private readonly form: RowForm) {}

  private results: unknown[][] | undefined;

  chunk(text: string): void {
    const list = cells[LIST]!;
    this.results ??= [];
    if (list >= 0) {
      decode(text, this.form, (this.results[list] ??= []));
    }
  }

  end(): unknown[][] | undefined {
    return this.results;
  }
}

const INSERTED = 0;
const BEFORE = 1;
const NOW = 2;
const FULL = 4;

/** Reads what has changed: nothing at the end. */
class ChangeReader<T> implements Reader<Change<T> | undefined> {
  constructor(private readonly form: RowForm) {}

  private change: Change<T> | undefined;
  /** How many of the updated rows are known as they are. */
  private known = 0;

  chunk(text: string): void {
    const change = (this.change ??= { full: undefined, inserted: [], updated: [], deleted: [] });
    const list = cells[LIST]!;
    if (list !== BEFORE && list !== NOW) {
      const full = list === FULL ? (change.full ??= []) : undefined;
      decode(text, this.form, full ?? (list === INSERTED ? change.inserted : change.deleted));
      return;
    }
    const rows: T[] = [];
    decode(text, this.form, rows);
    for (const row of rows) {
      if (list === BEFORE) {
        change.updated.push({ old: row, new: row });
      } else {
        change.updated[this.known++]!.new = row;
      }
    }
  }

  end(): Change<T> | undefined {
    return this.change;
  }
}

/** What is delivered again and again. */
abstract class LiveParts<T> extends Parts<T> {
  /** @internal */
  constructor(begin: (types: number) => number, readAs: ReadAs, options: LiveOptions) {
    const checked = () => {
      check(options, LIVE_OPTIONS);
      timeoutOf(options);
      formOf(options, readAs.rows);
      return begunAs(options, readAs, begin);
    };
    super(checked, options?.signal);
    this.timeout = options?.timeout;
    this.form = options?.rows ?? readAs.rows;
  }

  /** That of its rows. @internal */
  protected readonly form: RowForm;

  /** The deadline of the first result. */
  private timeout: number | undefined;

  override next(): Promise<IteratorResult<T, undefined>> {
    const { timeout } = this;
    if (timeout === undefined) {
      return super.next();
    }
    this.timeout = undefined;
    const late = setTimeout(() => this.giveUp(tooLate("the first result of the live query", timeout)), timeout);
    return super.next().finally(() => clearTimeout(late));
  }
}

class Group<T extends unknown[][]> extends LiveParts<T> {
  protected reader(): Reader<T | undefined> {
    return new ResultsReader(this.form) as Reader<unknown> as Reader<T | undefined>;
  }
}

class Changes<T> extends LiveParts<Change<T>> {
  protected reader(): Reader<Change<T> | undefined> {
    return new ChangeReader<T>(this.form);
  }
}

/** The results of a live query: an array of rows each time that it changed. */
export class Live<T = Row> extends LiveParts<T[]> {
  /** What it was given, as that was then: `changes` begins later. */
  private readonly query: () => unknown[];

  /** @internal */
  constructor(
    private readonly database: number,
    query: () => unknown[],
    private readonly options: LiveOptions,
    private readonly readAs: ReadAs,
  ) {
    let given: unknown[] | undefined;
    super((types) => begin(database, (given = query()), options, false, types), readAs, options);
    this.query = () => given ?? query();
  }

  /** @internal */
  protected reader(): Reader<T[] | undefined> {
    const all = new ResultsReader(this.form);
    return { chunk: (text) => all.chunk(text), end: () => all.end()?.[0] as T[] | undefined };
  }

  /** The same query, as what changed from one result to the next. */
  changes(): AsyncIterableIterator<Change<T>> & AsyncDisposable {
    this.close();
    const { database, query, options, readAs } = this;
    return new Changes<T>((types) => begin(database, query(), options, true, types), readAs, options);
  }
}

function begin(database: number, queries: unknown[], options: LiveOptions, changes: boolean, types: number): number {
  const [debounce, throttle] = [timeOf(options, "debounce", 0), timeOf(options, "throttle", 0)];
  return native.live(database, queries, debounce, throttle, changes, types);
}

/** @internal */
export function liveGroup(
  database: number,
  statements: readonly LiveStatement[],
  options: LiveOptions,
  readAs: ReadAs,
): AsyncIterableIterator<Row[][]> & AsyncDisposable {
  const queries = () =>
    // A place without a statement is undefined, which is no SQL.
    Array.from(statements).flatMap((given) => {
      const [sql, params] =
        typeof given === "string" || !Array.isArray(given) ? [given as Statement, undefined] : given;
      return [textOf(sql as Statement), valuesOf(sql as Statement, params as Params | undefined)];
    });
  return new Group<Row[][]>((types) => begin(database, queries(), options, false, types), readAs, options);
}
