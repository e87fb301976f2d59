/**
 * What a program binds, as node-sqlite3 takes it.
 *
 * Owns: reading the arguments of a call, and the values of a statement. Runs when the call is made; binding, when its turn has come.
 * Invariants: a value is stored as node-sqlite3 stores it, whatever Flatwater's own calls do; one of a type that cannot be bound is left
 * out, and so is NULL. Leaves out: running the statement.
 */

import { isRegExp, isDate } from "node:util/types";
import { native } from "../native/addon.js";
import type { SqlValue } from "../values/sql.js";
import { RANGE } from "./constants.js";
import type { Callback, Failure } from "./failures.js";

/** A position from 1 on, or a name with its sign; and the value, if it is one that can be bound. */
export type Parameter = readonly [at: number | string, value: SqlValue | undefined];

/** The arguments of a call. */
export interface Given {
  parameters: Parameter[];
  callback: Callback | undefined;
}

/** Reads the arguments up to `last`. */
export function given(args: readonly unknown[], last = args.length): Given {
  const callback = last > 0 && typeof args[last - 1] === "function" ? (args[--last] as Callback) : undefined;
  const first = args[0];
  if (last === 0) {
    return { parameters: [], callback };
  }
  if (Array.isArray(first)) {
    return { parameters: first.map((value, at) => [at + 1, bound(value)]), callback };
  }
  if (!isObject(first) || isRegExp(first) || isDate(first) || ArrayBuffer.isView(first)) {
    return { parameters: args.slice(0, last).map((value, at) => [at + 1, bound(value)]), callback };
  }
  const parameters: Parameter[] = [];
  // Inherited ones too.
  for (const name in first) {
    const number = Number(name);
    parameters.push([number === (number | 0) ? number : name, bound((first as Record<string, unknown>)[name])]);
  }
  return { parameters, callback };
}

function isObject(value: unknown): value is object {
  return typeof value === "function" || (typeof value === "object" && value !== null);
}

/** What is stored for a value. Undefined for one that is left out. */
function bound(value: unknown): SqlValue | undefined {
  switch (typeof value) {
    case "string":
      return value.toWellFormed();
    case "number":
      return Number.isNaN(value) ? null : value === 0 ? 0 : value;
    case "boolean":
      return value ? 1 : 0;
    case "function":
      return "[object Object]";
    case "object":
      return value === null ? null : ofObject(value);
    default:
      return undefined;
  }
}

function ofObject(value: object): SqlValue {
  if (isRegExp(value)) {
    return String(value).toWellFormed();
  }
  if (ArrayBuffer.isView(value)) {
    // A copy: the program may change it before its turn has come.
    return new Uint8Array(value.buffer as ArrayBuffer, value.byteOffset, value.byteLength).slice();
  }
  if (isDate(value)) {
    return Number.isNaN(Number(value)) ? null : new Date(Number(value));
  }
  return "[object Object]";
}

/** What is known of a text: its first statement, the word that says what it does, and the names of its parameters by position. */
export interface Text {
  readonly sql: string;
  readonly changesRows: boolean;
  readonly names: readonly string[];
}

const CHANGE = new Set(["INSERT", "UPDATE", "DELETE", "REPLACE"]);
const known = new Map<string, Text>();
const KNOWN = 256;

/** Reads a text, as SQLite does up to the end of its first statement. */
export function textOf(given: string): Text {
  let text = known.get(given);
  if (text === undefined) {
    const end = given.indexOf("\0");
    const [sql = "", verb = "", ...names] = native.described((end < 0 ? given : given.slice(0, end)).toWellFormed());
    text = { sql, changesRows: CHANGE.has(verb), names };
    if (known.size >= KNOWN) {
      known.clear();
    }
    known.set(given, text);
  }
  return text;
}

/** Binds nothing: every parameter is NULL. */
export function clear(values: SqlValue[], count: number): void {
  values.length = 0;
  for (let at = 0; at < count; at++) {
    values.push(null);
  }
}

const OUT_OF_RANGE: Failure = { status: RANGE, message: "column index out of range" };

/** Binds the parameters in the place of those that are bound, up to one that cannot be. */
export function bind({ names }: Text, values: SqlValue[], parameters: readonly Parameter[]): Failure | undefined {
  clear(values, names.length);
  for (const [place, value] of parameters) {
    if (value === undefined) {
      continue;
    }
    const at = typeof place === "number" ? place - 1 : names.indexOf(place);
    if (at < 0 || at >= names.length) {
      return OUT_OF_RANGE;
    }
    values[at] = value;
  }
  return undefined;
}

/** Checks an argument that may be left out. */
export function optional(at: number, callback: unknown): asserts callback is Callback | undefined {
  if (callback !== undefined && typeof callback !== "function") {
    throw new TypeError(`Argument ${at} must be a function`);
  }
}
