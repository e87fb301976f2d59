/**
 * The error of every call.
 *
 * Owns: the class, and making one. Invariant: bound values are in none. Leaves out: why a call failed, which the engine says.
 */

import { getSystemErrorName } from "node:util";
import type { Constraint, Fields } from "./addon.js";
import { fromBytes } from "./thrown.js";

export type { Constraint } from "./addon.js";

/** What failed: the name of the kind, the same in every language. */
export type ErrorKind =
  | "key"
  | "open"
  | "sql"
  | "constraint"
  | "busy"
  | "timeout"
  | "cancelled"
  | "full"
  | "io"
  | "corrupt"
  | "closed"
  | "misuse"
  | "decode"
  | "row_not_found"
  | "snapshot_too_old"
  | "expired"
  | "commit_unknown";

/** The error of a call. The message ends with what to do, if that is known; `cause` is what a function of the program
 * has thrown, or the error of the operating system. */
export class FlatwaterError extends Error {
  /** SQLite's result code by name, such as `SQLITE_CONSTRAINT_UNIQUE`; otherwise one of the page "Error codes", such as
   * `FLATWATER_RETURNS_ROWS`. */
  readonly code: string;
  readonly kind: ErrorKind;
  /** SQLite's extended result code, if the error is SQLite's. */
  readonly errcode: number | undefined;
  /** The constraint that failed, for an error of that kind. */
  readonly constraint: Constraint | undefined;
  /** True if the same call may succeed later. */
  readonly retryable: boolean;
  /** Of a timeout, and of an abort: whether the work was done. Of a row or JSON that could not be made: `yes`, if its statement writes. */
  readonly applied: "no" | "yes" | "unknown" | undefined;
  /** The text of the statement, shortened. */
  readonly sql: string | undefined;
  /** The position of the offending token in the text, in bytes. */
  readonly offset: number | undefined;
  /** What to do. */
  readonly hint: string | undefined;

  /** @internal */
  constructor(fields: Fields) {
    const cause = causeOf(fields);
    const hadLimit = raiseStackLimit();
    super(fields.hint ? `${fields.message} -- ${fields.hint}` : fields.message, cause);
    if (hadLimit !== undefined) {
      Error.stackTraceLimit = hadLimit;
    }
    this.kind = fields.kind as ErrorKind;
    this.code = fields.code;
    this.constraint = fields.constraint;
    this.errcode = fields.errcode;
    this.retryable = fields.retryable ?? false;
    this.applied = fields.applied;
    this.sql = fields.sql;
    this.offset = fields.offset;
    this.hint = fields.hint;
  }

  static {
    this.prototype.name = "FlatwaterError";
  }
}

/** So many frames of a stack may be the package's own, most of them of a call that is traced. */
const OWN_FRAMES = 12;

/** Leaves the caller as many frames as it has asked for. Returns the limit that was set, unless there is none or it cannot be set. */
function raiseStackLimit(): number | undefined {
  const limit: unknown = Error.stackTraceLimit;
  if (typeof limit !== "number" || !(limit > 0) || Object.isFrozen(Error)) {
    return undefined;
  }
  Error.stackTraceLimit = limit + OWN_FRAMES;
  return limit;
}

/** What a function has thrown, or the error of the operating system, as Node's own calls have it. */
function causeOf({ cause, thrown }: Fields): ErrorOptions | undefined {
  if (thrown !== undefined) {
    return { cause: fromBytes(thrown) };
  }
  if (cause === undefined) {
    return undefined;
  }
  const { message, errno } = cause;
  const known = errno === undefined ? { code: cause.code } : { code: getSystemErrorName(-errno), errno: -errno };
  return { cause: Object.assign(new Error(message), known) };
}

/**
 * Says of the reason of an abort that nothing of its call was kept: a call that was aborted and is stored all the same resolves.
 * Returns the reason, which is the program's.
 */
export function notApplied(reason: unknown): unknown {
  if (typeof reason === "object" && reason !== null && Object.isExtensible(reason) && !("applied" in reason)) {
    Object.defineProperty(reason, "applied", { configurable: true, value: "no", writable: true });
  }
  return reason;
}

/** Throws the reason if the signal was aborted, before anything was done. */
export function throwIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted) {
    throw notApplied(signal.reason);
  }
}

/** An error of a call that was aborted, and whose worker does not end it. */
export function outcomeUnknown(reason: unknown, milliseconds: number): FlatwaterError {
  const error = new FlatwaterError({
    message: `the call was aborted, and its write has not ended within ${milliseconds / 1_000} s`,
    kind: "cancelled",
    code: codeOf("given_up"),
    hint: "a disk or a function does not return; read the database to learn whether it was applied",
    applied: "unknown",
  });
  error.cause = reason;
  return error;
}

const OF_COLUMN = '"stored" for this column in `types` reads the value as it is stored';

/** An error of a value, or of a row, that cannot be what it is to be. */
export function undecoded(message: string, isApplied: boolean, hint = OF_COLUMN): FlatwaterError {
  const fields = {
    message: isApplied ? `${message}; the call was executed` : message,
    kind: "decode",
    code: codeOf("unreadable_value"),
    hint,
  };
  return new FlatwaterError(isApplied ? { ...fields, applied: "yes" } : fields);
}

/** An error of what was not there in time. */
export function tooLate(what: string, milliseconds: number): FlatwaterError {
  const message = `${what} was not there within ${milliseconds} ms`;
  return new FlatwaterError({ message, kind: "timeout", code: codeOf("deadline"), applied: "no", retryable: true });
}

/** The code of a name on the page "Error codes". */
export function codeOf(name: string): string {
  return `FLATWATER_${name.toUpperCase()}`;
}

/** An error of the package itself. */
export function misuse(message: string, hint?: string, name = "invalid_argument"): FlatwaterError {
  const fields = { message, kind: "misuse", code: codeOf(name) };
  return new FlatwaterError(hint === undefined ? fields : { ...fields, hint });
}

/** Returns a text that is no value; throws if UTF-8 does not have it, in which another character would stand in its place. */
export function whole(text: string, what: string): string {
  if (!text.isWellFormed()) {
    throw misuse(
      `${what} has half of a surrogate pair`,
      "cut the text between characters, or pass text.toWellFormed()",
    );
  }
  return text;
}

/** An error of a call whose statement was executed all the same. */
export function misuseAfter(message: string, hint: string, name: string): FlatwaterError {
  const code = codeOf(name);
  return new FlatwaterError({
    message: `${message}; the call was executed`,
    kind: "misuse",
    code,
    hint,
    applied: "yes",
  });
}
