/**
 * What a call was given, as it is when the call is made.
 *
 * Owns: copies of rows of parameters and of statements, with the bytes of their buffers. Invariant: what the program changes afterwards
 * is not seen. Leaves out: what is read at once, of which no copy is made, and whether a value can be stored.
 */

import { types } from "node:util";
import { Sql } from "./sql.js";

/** A row of parameters: an array, or an object of names. */
export function copiedRow<T>(row: T): T {
  if (Array.isArray(row)) {
    const copy: unknown[] = row.slice();
    for (let at = 0; at < copy.length; at++) {
      const value = copy[at];
      if (typeof value === "object" && value !== null) {
        copy[at] = copiedValue(value);
      }
    }
    return copy as T;
  }
  if (typeof row !== "object" || row === null || (!isPlain(row) && isValue(row))) {
    return row;
  }
  const copy = { ...row } as Record<string, unknown>;
  for (const name in copy) {
    const value = copy[name];
    if (typeof value === "object" && value !== null) {
      copy[name] = copiedValue(value);
    }
  }
  return copy as T;
}

/** True of most objects. */
function isPlain(given: object): boolean {
  return Object.getPrototypeOf(given) === Object.prototype;
}

/** A statement: a text, one of a template, or an array of a text and a row. */
export function copiedStatement<T>(statement: T): T {
  if (statement instanceof Sql) {
    return [statement.text, copiedRow(statement.values)] as T;
  }
  return Array.isArray(statement) ? ([statement[0], copiedRow(statement[1])] as T) : statement;
}

/** An object that is one value. */
export function isValue(given: object): boolean {
  return types.isDate(given) || ArrayBuffer.isView(given) || types.isAnyArrayBuffer(given);
}

function copiedValue(value: object): object {
  if (ArrayBuffer.isView(value)) {
    return new Uint8Array(value.buffer, value.byteOffset, value.byteLength).slice();
  }
  if (types.isArrayBuffer(value)) {
    return new Uint8Array(value).slice();
  }
  if (types.isDate(value)) {
    return new Date(value);
  }
  // What may be bound as JSON.
  return Array.isArray(value) || isPlain(value) ? cloned(value) : value;
}

/** One that cannot be cloned is refused, or was made by the program to be written in its own way. */
function cloned(value: object): object {
  try {
    return structuredClone(value);
  } catch {
    return value;
  }
}
