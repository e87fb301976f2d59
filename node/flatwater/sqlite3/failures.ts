/**
 * The errors of node-sqlite3, and how callbacks are called.
 *
 * Owns: what an error of the engine is there. Invariants: `code` and `errno` are SQLite's primary ones; a callback that throws ends in
 * `uncaughtException` and holds up nothing. Leaves out: which callback an error goes to.
 */

import type { AsyncResource } from "node:async_hooks";
import { FlatwaterError } from "../native/errors.js";
import { BUSY, CANTOPEN, ERROR, INTERRUPT, MISUSE, NOTADB, READONLY } from "./constants.js";

/** What a step of a statement returns beside result codes. */
export const ROW = 100;
export const DONE = 101;

const NAMES = [
  ...["OK", "ERROR", "INTERNAL", "PERM", "ABORT", "BUSY", "LOCKED", "NOMEM", "READONLY", "INTERRUPT", "IOERR"],
  ...["CORRUPT", "NOTFOUND", "FULL", "CANTOPEN", "PROTOCOL", "EMPTY", "SCHEMA", "TOOBIG", "CONSTRAINT", "MISMATCH"],
  ...["MISUSE", "NOLFS", "AUTH", "FORMAT", "RANGE", "NOTADB"],
];

/** The name of a result code, as errors have it. */
function nameOf(code: number): string {
  const name = code === ROW ? "ROW" : code === DONE ? "DONE" : NAMES[code];
  return name === undefined ? "UNKNOWN" : `SQLITE_${name}`;
}

/** An error as the callbacks get it: `errno` is SQLite's result code, `code` its name. */
export interface Sqlite3Error extends Error {
  errno: number;
  code: string;
}

/** Why something failed: a result code, and what SQLite says. */
export interface Failure {
  status: number;
  message: string;
  /** The error of the engine, which says more. */
  cause?: unknown;
}

/** The texts of SQLite, for which the engine has others. */
const TEXTS = new Map([
  [NOTADB, "file is not a database"],
  [READONLY, "attempt to write a readonly database"],
  [BUSY, "database is locked"],
  [INTERRUPT, "interrupted"],
]);

const KINDS: Record<string, Failure> = {
  open: { status: CANTOPEN, message: "unable to open database file" },
  busy: { status: BUSY, message: "database is locked" },
  timeout: { status: BUSY, message: "database is locked" },
  cancelled: { status: INTERRUPT, message: "interrupted" },
  closed: { status: MISUSE, message: "Database handle is closed" },
};

/** Of a text without a statement. */
export const NO_STATEMENT: Failure = { status: MISUSE, message: "not an error" };

/** What SQLite would say. */
export function failureOf(error: unknown): Failure {
  if (typeof error === "object" && error !== null && "status" in error && "message" in error) {
    return error as Failure;
  }
  if (!(error instanceof FlatwaterError)) {
    return { status: ERROR, message: error instanceof Error ? error.message : String(error), cause: error };
  }
  if (error.code === "FLATWATER_NO_STATEMENT") {
    return NO_STATEMENT;
  }
  if (error.code === "FLATWATER_READ_ONLY") {
    return { status: READONLY, message: TEXTS.get(READONLY)!, cause: error };
  }
  if (error.errcode === undefined) {
    return { ...(KINDS[error.kind] ?? { status: ERROR, message: error.message }), cause: error };
  }
  const status = error.errcode & 0xff;
  const { hint, message } = error;
  const plain = hint === undefined || !message.endsWith(` -- ${hint}`) ? message : message.slice(0, -hint.length - 4);
  return { status, message: TEXTS.get(status) ?? plain, cause: error };
}

/** The error that a callback gets. */
export function errorOf({ status, message, cause }: Failure): Sqlite3Error {
  const code = nameOf(status);
  const error = new Error(`${code}: ${message}`) as Sqlite3Error;
  error.errno = status;
  error.code = code;
  if (cause !== undefined) {
    Object.defineProperty(error, "cause", { value: cause, configurable: true, writable: true });
  }
  return error;
}

export type Callback = (...given: any[]) => void;

/** Calls a callback of the program where it was given, or emits the error: what it throws is thrown by itself. */
export function tell(where: AsyncResource, callback: Callback | undefined, self: object, ...given: unknown[]): void {
  if (callback !== undefined) {
    try {
      where.runInAsyncScope(callback, self as never, ...given);
    } catch (error) {
      queueMicrotask(() => {
        throw error;
      });
    }
  }
}

/** What emits events. */
export interface Emits {
  emit(name: string, ...given: unknown[]): boolean;
}

/** Emits an event of an object. */
export function emit(from: Emits, name: string, ...given: unknown[]): void {
  try {
    from.emit(name, ...given);
  } catch (error) {
    queueMicrotask(() => {
      throw error;
    });
  }
}
