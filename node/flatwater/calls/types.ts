/**
 * Standard types: what the values of columns mean, as a program says it.
 *
 * Owns: taking it for a database and for a call, and how results are read. Invariant: what was made for one call is let go when the call
 * has it. Leaves out: what declared types mean, and reading a value by it, which the native module does.
 */

import { native } from "../native/addon.js";
import { FlatwaterError, misuse } from "../native/errors.js";
import { FAILED } from "../native/loop.js";
import type { RowForm } from "../values/rows.js";

/** What the values of a column mean; `stored` is what SQLite stores. */
export type TypeWord =
  | "boolean"
  | "date"
  | "time"
  | "datetime"
  | "json"
  | "uuid"
  | "decimal"
  | "unix_seconds"
  | "unix_milliseconds"
  | "julian_day"
  | "stored";

/**
 * What the values of columns mean. `standard`: a column that was declared BOOLEAN, DATETIME, TIMESTAMP or JSON has booleans, `Date`s and what
 * the documents say; one of DATE, TIME, UUID, DECIMAL or NUMERIC has strings of one form. An object is the same, with other words for columns
 * by name, or for those of a table: `{ total: "decimal", "events.at": "unix_seconds" }`. `stored`, the default: as SQLite stores them.
 */
export type Types = "standard" | "stored" | { readonly [column: string]: TypeWord };

/** How the results of a database are read, if a call says nothing else. */
export interface ReadAs {
  readonly integers: number;
  /** The number of what the native module has; negative for values as they are stored. */
  readonly types: number;
  readonly rows: RowForm;
}

export const STORED = -1;
let standard = STORED;

/** The number of what columns mean. `around` is that of the database. One that was made for this call is let go with `letGo`. */
export function typesOf(given: Types | undefined, around: number, isOfCall: boolean): number {
  if (given === undefined) {
    return around;
  }
  if (given === "stored") {
    return STORED;
  }
  if (given === "standard") {
    return around >= 0 ? around : (standard = standard >= 0 ? standard : made([], STORED, false));
  }
  const isObject = typeof given === "object" && given !== null && !Array.isArray(given);
  if (!isObject || !Object.values(given).every((word) => typeof word === "string")) {
    throw misuse(`types must be "standard", "stored", or an object of columns and words`, undefined, "invalid_option");
  }
  return made(Object.entries(given).flat(), around, isOfCall);
}

function made(pairs: string[], around: number, isOfCall: boolean): number {
  const number = native.types(pairs, around, isOfCall);
  if (number === FAILED) {
    throw new FlatwaterError(native.failure());
  }
  return number;
}

/** The call has what was made of this. */
export function letGo(given: Types | undefined, types: number): void {
  if (typeof given === "object" && types >= 0) {
    native.release(types);
  }
}
