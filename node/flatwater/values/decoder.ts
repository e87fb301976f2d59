/**
 * The code that makes the rows of one schema.
 *
 * Owns: generating it, or the same interpreted where the program forbids that. Invariant: all rows of a schema have one hidden class.
 * Leaves out: for which schemas there is code (`rows`), and the form of a chunk, which is the native module's.
 */

import { native } from "../native/addon.js";
import { undecoded } from "../native/errors.js";
import { bigs, cells } from "../native/loop.js";

/** In the header of a chunk: whether its statement writes. */
export const WRITES = 5;
/** How many rows of the result were before this chunk. */
const BEFORE = 6;

export const NULL = 0;
export const NUMBER = 1;
const TEXT = 2;
const BLOB = 3;
export const BIG = 4;
export const MIXED = 5;
const BOOLEAN = 6;
const MOMENT = 7;
const JSON_TEXT = 8;

/** Objects; objects in which the last of several columns of one name wins; arrays. */
export type RowForm = "object" | "merged" | "array";
/** And objects of the objects of each table, of which the last column of one name wins. */
export type Form = RowForm | "expanded";

/** Appends the rows of the chunk whose cells begin at `at`. */
export type Decoder = (at: number, count: number, text: string, out: unknown[]) => void;

/** What a document says. */
function parsed(document: string, column: string, row: number): unknown {
  try {
    return JSON.parse(document);
  } catch {
    throw undecoded(
      `column "${column}", row ${cells[BEFORE]! + row}: a TEXT cannot be read as json`,
      cells[WRITES] === 1,
    );
  }
}

/** A blob of its own, out of those of the chunk. */
function blob(bytes: Uint8Array, from: number, to: number): Uint8Array {
  return new Uint8Array(bytes.subarray(from, to));
}

let mayGenerate = true;

/** Makes the code for rows of these columns. */
export function compile(form: Form, names: string[], forms: number[], tables: string[]): Decoder {
  if (mayGenerate) {
    try {
      const make = new Function("cells", "bigs", "blob", "bytesOf", "parsed", source(form, names, forms, tables)) as (
        ...given: unknown[]
      ) => Decoder;
      return make(cells, bigs, blob, native.bytes, (document: string, column: number, row: number) =>
        parsed(document, names[column]!, row),
      );
    } catch (error) {
      if (!(error instanceof EvalError)) {
        throw error;
      }
      mayGenerate = false;
    }
  }
  return interpreted(form, names, forms, tables);
}

/** The code for rows of these columns. */
function source(form: Form, names: string[], forms: number[], tables: string[]): string {
  let width = 0;
  const values = forms.map((of, column) => {
    const at = `at + ${width}`;
    width += of === MIXED ? 2 : 1;
    switch (of) {
      case NULL:
        return "null";
      case NUMBER:
        return `(x = cells[${at}]) === x ? x : null`;
      case TEXT:
        return `(x = cells[${at}]) === x ? (from = end, end = x, text.slice(from, x)) : null`;
      case BLOB:
        return `(x = cells[${at}]) === x ? (from = last, last = x, blob(bytes, from, x)) : null`;
      case BIG:
        return `bigs[${at}]`;
      case BOOLEAN:
        return `(x = cells[${at}]) === x ? x === 1 : null`;
      case MOMENT:
        return `(x = cells[${at}]) === x ? new Date(x) : null`;
      case JSON_TEXT:
        return `(x = cells[${at}]) === x ? (from = end, end = x, parsed(text.slice(from, x), ${column}, i)) : null`;
      default:
        return `mixed(cells[${at}], at + ${width - 1}, ${column}, i)`;
    }
  });
  const key = (name: string) => (name === "__proto__" ? '["__proto__"]' : JSON.stringify(name));
  const pair = (at: number, value: string) => `${key(names[at]!)}: ${value}`;
  // Texts are cut one after the other, so the columns are read in their order, and then go to their tables.
  const ofTables = [...new Set(tables)].map((table) => {
    const columns = names.flatMap((_, at) => (tables[at] === table ? [pair(at, `all[${at}]`)] : []));
    return `${key(table)}: { ${columns.join(", ")} }`;
  });
  const row =
    form === "array"
      ? `[${values.join(", ")}]`
      : form === "expanded"
        ? `(all = [${values.join(", ")}], { ${ofTables.join(", ")} })`
        : `{ ${values.map((value, at) => pair(at, value)).join(", ")} }`;
  return `return function (at, count, text, out) {
    let x, all, from, end = 0, last = 0;
    const bytes = ${forms.includes(BLOB) || forms.includes(MIXED)} ? bytesOf() : undefined;
    function mixed(form, at, column, i) {
      switch (form) {
        case ${NULL}: return null;
        case ${NUMBER}: return cells[at];
        case ${TEXT}: return from = end, end = cells[at], text.slice(from, end);
        case ${BLOB}: return from = last, last = cells[at], blob(bytes, from, last);
        case ${BOOLEAN}: return cells[at] === 1;
        case ${MOMENT}: return new Date(cells[at]);
        case ${JSON_TEXT}: return from = end, end = cells[at], parsed(text.slice(from, end), column, i);
        default: return bigs[at];
      }
    }
    for (let i = 0; i < count; i++, at += ${width}) {
      out.push(${row});
    }
  };`;
}

/** The same without generated code. */
export function interpreted(form: Form, names: string[], forms: number[], tables: string[]): Decoder {
  return (at, count, text, out) => {
    let end = 0;
    let last = 0;
    const bytes = forms.includes(BLOB) || forms.includes(MIXED) ? native.bytes() : undefined;
    let row = 0;
    const value = (of: number, column: number): unknown => {
      const cell = cells[at]!;
      if (of === MIXED) {
        at++;
        return value(cell, column);
      }
      at++;
      if (of === BIG) {
        return bigs[at - 1];
      }
      if (of === NULL || cell !== cell) {
        return null;
      }
      if (of === NUMBER) {
        return cell;
      }
      if (of === BOOLEAN) {
        return cell === 1;
      }
      if (of === MOMENT) {
        return new Date(cell);
      }
      const isText = of === TEXT || of === JSON_TEXT;
      const from = isText ? end : last;
      if (isText) {
        end = cell;
        const part = text.slice(from, cell);
        return of === TEXT ? part : parsed(part, names[column]!, row);
      }
      last = cell;
      return blob(bytes!, from, cell);
    };
    for (row = 0; row < count; row++) {
      const values = forms.map(value);
      const object = (columns: number[]) => Object.fromEntries(columns.map((at) => [names[at]!, values[at]]));
      const all = [...names.keys()];
      if (form === "array") {
        out.push(values);
      } else if (form === "expanded") {
        const of = (table: string) => [table, object(all.filter((at) => tables[at] === table))];
        out.push(Object.fromEntries([...new Set(tables)].map(of)));
      } else {
        out.push(object(all));
      }
    }
  };
}
