/**
 * Statements of other libraries, whose callers do not say whether they return rows.
 *
 * Owns: running one, and what there is of its rows. Leaves out: what the libraries make of a result.
 */

import { BatchReader, RunTableReader, type RunOptions, type RunResult } from "../calls/batch.js";
import type { BatchStatement, CallOptions, ExecuteResult } from "../calls/calls.js";
import { STATEMENTS } from "../calls/many.js";
import type { Session } from "../handles/session.js";
import { RUN } from "../handles/target.js";
import { misuse } from "../native/errors.js";
import type { RowForm, Table } from "../values/rows.js";
import type { Params } from "../values/sql.js";

/** The libraries know the types of their columns, and what is stored for them. */
const STORED = { types: "stored", rows: "object" } as const;

/** Resolves with the rows of a statement; with none if it returns none. */
export async function rowsOf<T>(session: Session, sql: string, params: Params, options: RunOptions): Promise<T[]> {
  return (await session.run<T>(sql, params, { ...STORED, ...options })).rows ?? [];
}

/** Resolves with what a statement did, whether it returns rows or not. */
export async function executedBy(session: Session, sql: string, params: Params): Promise<ExecuteResult> {
  const { changes, lastInsertRowid } = await session.run(sql, params, STORED);
  return { changes, lastInsertRowid };
}

/** Resolves with all rows as arrays, and what is known of their columns; with none if the statement returns none. */
export function tableOf(session: Session, sql: string, params: Params, options: RunOptions): Promise<Table> {
  const stored = { ...STORED, ...options };
  return session["perform"](RUN, sql, params, stored, new RunTableReader(), stored);
}

/** The values of Drizzle, whose columns say how a `Date` is stored. One in raw SQL has none, and a column reads its own form only. */
export function ofColumns(params: readonly unknown[]): Params {
  const at = params.findIndex((value) => value instanceof Date);
  if (at >= 0) {
    throw misuse(
      `parameter ${at + 1} is a Date in raw SQL, where no column says how it is stored`,
      "write sql.param(date, table.column), or what is stored, such as date.getTime()",
    );
  }
  return params as Params;
}

/** A batch in which the rows of each statement have a form of their own. */
export function batchOf(
  session: Session,
  statements: readonly BatchStatement[],
  formAt: (at: number) => RowForm,
  options?: CallOptions,
): Promise<RunResult[]> {
  return session["runMany"]("batch", undefined, statements, options, new BatchReader(formAt), STATEMENTS);
}
