/**
 * Rows of parameters, and statements with theirs, as numbers and one text: reading them here costs a fraction of what it costs natively,
 * value by value.
 *
 * Owns: the form of rows of null, booleans, numbers and strings. Invariants: code of the program may run while its rows are read, and
 * make calls; such a call does not use this memory. Leaves out: all other values, and what is wrong with one: the native module reads
 * these rows itself.
 */

import { native } from "../native/addon.js";
import { FlatwaterError } from "../native/errors.js";
import { FAILED } from "../native/loop.js";
import { Sql } from "./sql.js";

/**
 * For each row the number of its values, and for each value its kind and a number: of a text its end in the text of all. For a statement
 * there is first the end of its SQL there; -1 if that is the SQL of the one before, which is in this text too.
 */
const numbers = new Float64Array(8 * 1024);
let isBeingRead = false;

const NULL = 0;
const NUMBER = 1;
const BOOLEAN = 2;
const TEXT = 3;
const SAME = -1;

/** So long is the text of all. A row whose texts are longer is no plain one. */
const UNITS = 16 * 1024;

const NONE: readonly unknown[] = [];

/** Adds rows or statements from a position on, until one is not plain or enough were taken. Returns where to go on. */
export function addPlain(many: number, all: readonly unknown[], from: number, areStatements: boolean): number {
  if (isBeingRead) {
    return from;
  }
  isBeingRead = true;
  try {
    const { count, text } = read(all, from, areStatements);
    if (count > 0 && native.addPlain(many, numbers, count, text) === FAILED) {
      throw new FlatwaterError(native.failure());
    }
    return from + count;
  } finally {
    isBeingRead = false;
  }
}

/** Reads rows. The text may be longer than that of the rows. */
function read(all: readonly unknown[], from: number, areStatements: boolean): { count: number; text: string } {
  let text = "";
  let last: string | undefined;
  let cell = 0;
  for (let at = from; at < all.length; at++) {
    let row = all[at];
    if (areStatements) {
      const sql = sqlOf(row);
      if (typeof sql === "string" && sql === last) {
        numbers[cell++] = SAME;
      } else if (fits(sql, text)) {
        text += sql;
        last = sql;
        numbers[cell++] = text.length;
      } else {
        return { count: at - from, text };
      }
      row = valuesOf(row);
    }
    const width: number = Array.isArray(row) ? row.length : Infinity;
    // There is room for the SQL of the next one too.
    if (cell + 2 + 2 * width > numbers.length) {
      return { count: at - from, text };
    }
    numbers[cell++] = width;
    for (let column = 0; column < width; column++, cell += 2) {
      const value = (row as unknown[])[column];
      if (typeof value === "number" && value === value) {
        numbers[cell] = NUMBER;
        numbers[cell + 1] = value;
      } else if (fits(value, text)) {
        text += value;
        numbers[cell] = TEXT;
        numbers[cell + 1] = text.length;
      } else if (value === null) {
        numbers[cell] = NULL;
      } else if (typeof value === "boolean") {
        numbers[cell] = BOOLEAN;
        numbers[cell + 1] = value ? 1 : 0;
      } else {
        return { count: at - from, text };
      }
    }
  }
  return { count: all.length - from, text };
}

/** True for a string that may become a part of the text. */
function fits(value: unknown, text: string): value is string {
  return typeof value === "string" && text.length + value.length <= UNITS && value.isWellFormed();
}

function sqlOf(statement: unknown): unknown {
  return statement instanceof Sql ? statement.text : Array.isArray(statement) ? statement[0] : statement;
}

function valuesOf(statement: unknown): unknown {
  return statement instanceof Sql ? statement.values : Array.isArray(statement) ? (statement[1] ?? NONE) : NONE;
}
