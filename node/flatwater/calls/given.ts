/**
 * The options of calls.
 *
 * Owns: which there are, and the refusal of those that there are not and of values of another form. Invariant: an option that is
 * undefined is not given. Leaves out: the options of `open`, which the native module checks.
 */

import { native } from "../native/addon.js";
import { misuse, throwIfAborted } from "../native/errors.js";

/** The names of the options that a call takes. */
export type Known = ReadonlySet<string>;

const CALL = ["signal", "timeout"];
export const CALL_OPTIONS: Known = new Set(CALL);
export const QUERY_OPTIONS: Known = new Set([...CALL, "rows", "integers", "types", "as"]);
export const STATEMENT_OPTIONS: Known = new Set([...CALL, "integers", "types", "as"]);
export const RUN_OPTIONS: Known = new Set([...CALL, "rows", "integers", "types"]);
const JSON_FORM = ["arrays", "bigIntegersAsStrings", "embed"];
export const JSON_OPTIONS: Known = new Set([...CALL, ...JSON_FORM]);
export const LIVE_OPTIONS: Known = new Set([...CALL, "debounce", "throttle", "rows", "integers", "types"]);
export const CHECK_OPTIONS: Known = new Set([...CALL, "table", "quick", "database"]);
export const BACKUP_OPTIONS: Known = new Set([...CALL, "progress"]);
export const EXPORT_OPTIONS: Known = new Set([...CALL, "key"]);
export const CONNECTION_OPTIONS: Known = new Set(["busyTimeout", "foreignKeys"]);
export const MIGRATE_OPTIONS: Known = new Set([...CALL, "ignoreMissing"]);

/** Options of other libraries, and where to look for them here. */
const INSTEAD: Record<string, string> = {
  raw: "ask for { rows: 'array' }",
  pluck: "use `queryValues`",
  safeIntegers: "ask for { integers: 'bigint' }",
  readBigInts: "ask for { integers: 'bigint' }",
  returnArrays: "ask for { rows: 'array' }",
  busyTimeout: "it is an option of `open`",
  values: "pass the values of parameters before the options",
  params: "pass the values of parameters before the options",
};

/** Throws if an option does not exist, or the call was cancelled before it was made: what only keeps options does not look at that. */
export function check(options: object | undefined, known: Known, isCall = true): void {
  if (options === undefined) {
    return;
  }
  if (typeof options !== "object" || options === null || Array.isArray(options)) {
    throw misuse("options must be an object", "the values of parameters come before it: query(sql, values, options)");
  }
  for (const name in options) {
    if (!known.has(name) && options[name as keyof typeof options] !== undefined) {
      const message = native.unknown("option", name, [...known]);
      throw Object.hasOwn(INSTEAD, name)
        ? misuse(`there is no option "${name}"`, INSTEAD[name], "invalid_option")
        : misuse(message, undefined, "invalid_option");
    }
  }
  const { signal } = options as { signal?: AbortSignal };
  if (signal !== undefined) {
    if (typeof signal?.throwIfAborted !== "function") {
      throw misuse("signal must be an AbortSignal");
    }
    if (isCall) {
      throwIfAborted(signal);
    }
  }
}

/** Returns a time in milliseconds, or `otherwise`. */
export function timeOf(options: object | undefined, name: string, otherwise: number): number {
  const time: unknown = options?.[name as keyof typeof options];
  if (time === undefined) {
    return otherwise;
  }
  if (typeof time !== "number" || !(time >= 0)) {
    throw misuse(`${name} must be a number of milliseconds`);
  }
  return time;
}

/** Returns true or false. */
export function switchOf(options: object | undefined, name: string): boolean {
  const on: unknown = options?.[name as keyof typeof options];
  if (on !== undefined && typeof on !== "boolean") {
    throw misuse(`${name} must be true or false`);
  }
  return on === true;
}
