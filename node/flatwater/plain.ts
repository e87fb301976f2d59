/**
 * Rows of parameters as numbers and one text: reading them here costs a fraction of what it costs natively, value by value.
 *
 * Owns: the form of rows of null, booleans, numbers and strings. Invariants: code of the program may run while its rows are read, and
 * make calls; such a call does not use this memory. Leaves out: all other values, and what is wrong with one: the native module reads
 * these rows itself.
 */

import { native } from "./addon.js";

/** For each row the number of its values, and for each value its kind and a number: of a text its end in the text of all. */
const numbers = new Float64Array(8 * 1024);
let isBeingRead = false;

const NULL = 0;
const NUMBER = 1;
const BOOLEAN = 2;
const TEXT = 3;

/** So long is the text of all. A row whose texts are longer is no plain one. */
const UNITS = 16 * 1024;

/** Adds rows from a position on, until one is not plain or enough were taken. Returns where to go on. */
export function addPlain(rows: number, all: readonly unknown[], from: number): number {
  if (isBeingRead) {
    return from;
  }
  isBeingRead = true;
  try {
    const { count, text } = read(all, from);
    if (count > 0) {
      native.addPlain(rows, numbers, count, text);
    }
    return from + count;
  } finally {
    isBeingRead = false;
  }
}

/** Reads rows. The text may be longer than that of the rows. */
function read(all: readonly unknown[], from: number): { count: number; text: string } {
  let text = "";
  let begin = 0;
  for (let at = from; at < all.length; at++) {
    const row = all[at];
    const width: number = Array.isArray(row) ? row.length : Infinity;
    if (begin + 1 + 2 * width > numbers.length) {
      return { count: at - from, text };
    }
    numbers[begin] = width;
    let cell = begin + 1;
    for (let column = 0; column < width; column++, cell += 2) {
      const value = (row as unknown[])[column];
      if (typeof value === "number" && value === value) {
        numbers[cell] = NUMBER;
        numbers[cell + 1] = value;
      } else if (typeof value === "string" && text.length + value.length <= UNITS && value.isWellFormed()) {
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
    begin = cell;
  }
  return { count: all.length - from, text };
}
