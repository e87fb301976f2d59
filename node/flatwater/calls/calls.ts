/**
 * What calls have in common: their options, and how results are read.
 *
 * Owns: the readers of plain results, and reading arguments. Leaves out: rows (`rows`), and which options there are (`given`).
 */

import type { Answer } from "../native/addon.js";
import { misuse, whole } from "../native/errors.js";
import { bigs, cells, type Reader } from "../native/loop.js";
import type { RowForm } from "../values/rows.js";
import { Sql, type Params } from "../values/sql.js";
import type { As } from "./as.js";
import { timeOf } from "./given.js";
import type { Types } from "./types.js";

/** What every call takes. */
export interface CallOptions {
  /** Aborting it gives the call up: one that has not begun never runs, and one that runs is interrupted. */
  signal?: AbortSignal | undefined;
  /** In milliseconds. The call fails with kind `timeout` if it takes longer. */
  timeout?: number | undefined;
}

/** How integers become numbers: `number` refuses those beyond 2^53, `auto` makes bigints of these, `bigint` of all. */
export type Integers = "number" | "auto" | "bigint";

/** What a query takes. */
export interface QueryOptions<T = unknown> extends CallOptions {
  /** Rows as objects (the default), or as arrays; or as objects in which the last of several columns of one name wins. */
  rows?: RowForm | undefined;
  integers?: Integers | undefined;
  /** What the values of columns mean. */
  types?: Types | undefined;
  /** What each row becomes. */
  as?: As<T> | undefined;
}

/** A statement of a batch. */
export type BatchStatement = Statement | readonly [sql: string, params?: Params];

/** What a statement did. */
export interface ExecuteResult {
  /** The rows inserted, updated or deleted by the statement itself. */
  changes: number;
  /** The rowid of the last row that it inserted; null if it inserted none. */
  lastInsertRowid: number | bigint | null;
}

/** A text, with its values or without. */
export type Statement = string | Sql;

export type { As } from "./as.js";

export const INTEGERS: Record<Integers, number> = { number: 0, auto: 1, bigint: 2 };

/** Returns the number of a way with integers. */
export function integersOf(given: Integers | undefined, otherwise: number): number {
  if (given === undefined) {
    return otherwise;
  }
  if (!Object.hasOwn(INTEGERS, given)) {
    throw misuse(`integers must be "number", "auto" or "bigint"`);
  }
  return INTEGERS[given];
}

export function formOf(options: Pick<QueryOptions, "rows"> | undefined, otherwise: RowForm = "object"): RowForm {
  const form = options?.rows ?? otherwise;
  if (form !== "object" && form !== "array" && form !== "merged" && (form as string) !== "expanded") {
    throw misuse(`rows must be "object", "array" or "merged"`);
  }
  return form;
}

/** Returns a deadline in milliseconds; -1 for none. */
export function timeoutOf(options: CallOptions | undefined): number {
  return timeOf(options, "timeout", -1);
}

export function textOf(statement: Statement): string {
  if (typeof statement === "string") {
    return whole(statement, "the SQL");
  }
  if (statement instanceof Sql) {
    return whole(statement.text, "the SQL");
  }
  throw misuse("SQL must be a string, or made with the tag sql`...`");
}

export function valuesOf(statement: Statement, params: Params | undefined): Params | undefined {
  if (typeof statement === "string") {
    return params;
  }
  if (params !== undefined) {
    throw misuse("SQL that was made with the tag sql`...` has its values already");
  }
  return statement.values;
}

/** Reads what a statement did. */
export const executed: Reader<ExecuteResult> = { end: () => readExecuted(0) };

/** What a statement did, in the cells from this one on. */
export function readExecuted(at: number): ExecuteResult {
  const kind = cells[at + 2];
  return { changes: cells[at]!, lastInsertRowid: kind === 0 ? cells[at + 1]! : kind === 1 ? bigs[at + 1]! : null };
}

/** Reads one number. */
export const number: Reader<number> = { end: () => cells[0]! };

/** Reads whether something is so. */
export const flag: Reader<boolean> = { end: () => cells[0] === 1 };

/** Reads nothing. */
export const nothing: Reader<void> = { end: () => undefined };

/** Reads what the native module made. */
export const value: Reader<Answer> = { end: (answer) => answer };

/** The promise of a call that could not be made. */
export function refused(error: unknown): Promise<never> {
  return Promise.reject(error);
}
