/**
 * Statements of other libraries, whose callers do not say whether they return rows.
 *
 * Owns: running one as a query or not, by a guess of the engine; if that was wrong, the engine refuses it before anything runs, and it
 * is run the other way. Leaves out: what the libraries make of a result.
 */

import { BatchReader, type BatchResult } from "../calls/batch.js";
import type { BatchStatement, CallOptions, ExecuteResult, QueryOptions } from "../calls/calls.js";
import { STATEMENTS } from "../calls/many.js";
import { QUERY, type Session } from "../handles/session.js";
import { native } from "../native/addon.js";
import { FlatwaterError, misuse } from "../native/errors.js";
import { TableReader, type RowForm, type Table } from "../values/rows.js";
import type { Params } from "../values/sql.js";

/** How the engine refuses a statement in the wrong call. */
const HAS_ROWS = "the statement returns rows";
const HAS_NO_ROWS = "the statement returns no rows";

/** True if a statement is to be run as a query. It is a guess. */
export function seemsToHaveRows(sql: string): boolean {
  return native.hasRows(sql);
}

/** Runs a statement as what it seems to be, and otherwise the other way. */
export async function either<T>(hasRows: boolean, run: (hasRows: boolean) => Promise<T>): Promise<T> {
  try {
    return await run(hasRows);
  } catch (error) {
    if (isOtherwise(error, hasRows)) {
      return run(!hasRows);
    }
    throw error;
  }
}

/** True if a statement that was run as a query or not was refused because it is not: before anything ran. */
export function isOtherwise(error: unknown, hasRows: boolean): boolean {
  // A trigger may say the same in its own error.
  const isRefusal = error instanceof FlatwaterError && error.kind === "misuse";
  return isRefusal && error.message.startsWith(hasRows ? HAS_NO_ROWS : HAS_ROWS);
}

/** Resolves with the rows of a statement; with none if it returns none. */
export function rowsOf<T>(session: Session, sql: string, params: Params, options: QueryOptions<T>): Promise<T[]> {
  return either(true, async (hasRows) => {
    if (hasRows) {
      return session.query<T>(sql, params, options);
    }
    await session.execute(sql, params);
    return [];
  });
}

/** Resolves with what a statement did, whether it returns rows or not. */
export function executedBy(session: Session, sql: string, params: Params): Promise<ExecuteResult> {
  return either(seemsToHaveRows(sql), async (hasRows) => {
    if (!hasRows) {
      return session.execute(sql, params);
    }
    const [{ changes, lastInsertRowid }] = (await session.batch([[sql, params]])) as [BatchResult];
    return { changes, lastInsertRowid };
  });
}

/** Resolves with all rows as arrays, and what is known of their columns. */
export function tableOf(session: Session, sql: string, params: Params, options: QueryOptions): Promise<Table> {
  return either(true, async (hasRows) => {
    if (hasRows) {
      return session["run"](QUERY, sql, params, options, new TableReader(), options);
    }
    await session.execute(sql, params);
    return { names: [], declaredTypes: [], rows: [] };
  });
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
): Promise<BatchResult[]> {
  return session["runMany"]("batch", undefined, statements, options, new BatchReader(formAt), STATEMENTS);
}
