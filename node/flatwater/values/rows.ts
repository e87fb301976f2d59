/**
 * Rows: from the numbers and the text of a chunk to objects or arrays.
 *
 * Owns: the code that makes the rows of one schema, which is generated, or interpreted where the program forbids that. Invariants: all
 * rows of a schema have one hidden class; a value is as it was stored, or the chunk was refused. Leaves out: the form of a chunk, which
 * is the native module's.
 */

import { native } from "../native/addon.js";
import { misuse, misuseAfter, undecoded } from "../native/errors.js";
import { bigs, cells, type Reader } from "../native/loop.js";

/** In the header of a chunk: which list of rows it is of, and whether their statement writes. */
export const LIST = 4;
const WRITES = 5;
/** How many rows of the result were before this chunk. */
const BEFORE = 6;
/** Where the forms of a chunk begin, or what the statements of a batch did. */
export const HEADER = 7;

const NULL = 0;
const NUMBER = 1;
const TEXT = 2;
const BLOB = 3;
const BIG = 4;
const MIXED = 5;
const BOOLEAN = 6;
const MOMENT = 7;
const JSON_TEXT = 8;

/** Appends the rows of the chunk whose cells begin at `at`. */
type Decoder = (at: number, count: number, text: string, out: unknown[]) => void;

interface Shape {
  forms: number[];
  decode: Decoder;
}

/** What was made for each schema: objects, and arrays. */
const known = {
  object: new Map<number, Shape[]>(),
  merged: new Map<number, Shape[]>(),
  array: new Map<number, Shape[]>(),
  expanded: new Map<number, Shape[]>(),
};
const SCHEMAS = 1024;
/** Of one schema, code is made for so many combinations of forms. */
const SHAPES = 32;

/** Objects; objects in which the last of several columns of one name wins; arrays. */
export type RowForm = Exclude<keyof typeof known, "expanded">;
/** And objects of the objects of each table, of which the last column of one name wins. */
type Form = keyof typeof known;

/** Reads rows into an array. */
export class RowsReader implements Reader<unknown[]> {
  rows: unknown[] = [];
  /** The statement has written. */
  isOfWrite = false;

  constructor(readonly form: RowForm) {}

  chunk(text: string): void {
    this.isOfWrite = cells[WRITES] === 1;
    decode(text, this.form, this.rows);
  }

  end(): unknown[] {
    return this.rows;
  }
}

/** A result as arrays, with what is known of its columns. */
export interface Table {
  names: string[];
  /** As they are written in the definitions of tables; empty for an expression. */
  declaredTypes: string[];
  rows: unknown[][];
}

/** Reads rows as arrays, and what is known of their columns. */
export class TableReader implements Reader<Table> {
  private readonly table: Table = { names: [], declaredTypes: [], rows: [] };
  private isKnown = false;

  chunk(text: string): void {
    const schema = cells[2]!;
    decode(text, "array", this.table.rows);
    if (!this.isKnown) {
      this.isKnown = true;
      this.table.names = native.columns(schema);
      this.table.declaredTypes = native.declaredTypes(schema);
    }
  }

  end(): Table {
    return this.table;
  }
}

/** Reads the first value of each row. */
export class ValuesReader implements Reader<unknown[]> {
  private readonly values: unknown[] = [];

  chunk(text: string): void {
    const rows: unknown[][] = [];
    decode(text, "array", rows);
    for (const row of rows) {
      this.values.push(row[0]);
    }
  }

  end(): unknown[] {
    return this.values;
  }
}

/** Reads the first row of a result, or its first value. */
export class FirstReader implements Reader<unknown> {
  /** The statement has written. */
  isOfWrite = false;
  private readonly rows: unknown[] = [];

  constructor(
    private readonly form: RowForm,
    private readonly isValue: boolean,
  ) {}

  chunk(text: string): void {
    this.isOfWrite = cells[WRITES] === 1;
    decode(text, this.form, this.rows);
  }

  end(): unknown {
    const row = this.rows[0];
    return this.isValue ? (row as unknown[] | undefined)?.[0] : row;
  }
}

/** Appends the rows of the chunk in the cells. */
export function decode(text: string, form: Form, out: unknown[]): void {
  const count = cells[0]!;
  const columns = cells[1]!;
  const schema = cells[2]!;
  if (count === 0) {
    if (!known[form].has(schema)) {
      checkNames(form, native.columns(schema));
    }
    return;
  }
  shapeOf(form, schema, columns).decode(HEADER + columns, count, text, out);
}

/** The names of the columns of the chunk in the cells. */
export function columnNames(): string[] {
  return native.columns(cells[2]!);
}

function shapeOf(form: Form, schema: number, columns: number): Shape {
  const shapes = known[form].get(schema);
  if (shapes !== undefined) {
    for (const shape of shapes) {
      if (hasForms(shape, columns)) {
        return shape;
      }
    }
  }
  return newShape(form, schema, columns, shapes);
}

function hasForms({ forms }: Shape, columns: number): boolean {
  for (let at = 0; at < columns; at++) {
    const form = cells[HEADER + at]!;
    // Where there is a cell that may be NaN, NULL may be.
    if (forms[at] !== form && !(form === NULL && forms[at] !== BIG && forms[at] !== MIXED)) {
      return false;
    }
  }
  return true;
}

function newShape(form: Form, schema: number, columns: number, shapes: Shape[] | undefined): Shape {
  const names = native.columns(schema);
  checkNames(form, names);
  const tables = form === "expanded" ? native.tables(schema).map((table) => table || "$") : [];
  // Of a column that is all NULL nothing is known: most are numbers next time.
  const forms = Array.from(cells.subarray(HEADER, HEADER + columns), (of) => (of === NULL ? NUMBER : of));
  if (shapes !== undefined && shapes.length >= SHAPES) {
    return { forms, decode: interpreted(form, names, forms, tables) };
  }
  const shape = { forms, decode: compile(form, names, forms, tables) };
  if (shapes !== undefined) {
    shapes.push(shape);
  } else {
    if (known[form].size >= SCHEMAS) {
      known[form].clear();
    }
    known[form].set(schema, [shape]);
  }
  return shape;
}

function checkNames(form: Form, names: string[]): void {
  const twice = form === "object" ? names.find((name, at) => names.indexOf(name) !== at) : undefined;
  if (twice !== undefined) {
    const refuse = cells[WRITES] === 1 ? misuseAfter : misuse;
    const hint = "give each its own name with AS, or ask for { rows: 'array' }";
    throw refuse(`two columns are named "${twice}"`, hint, "duplicate_column");
  }
}

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

function compile(form: Form, names: string[], forms: number[], tables: string[]): Decoder {
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
function interpreted(form: Form, names: string[], forms: number[], tables: string[]): Decoder {
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
