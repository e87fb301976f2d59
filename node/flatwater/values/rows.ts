/**
 * Rows: from the numbers and the text of a chunk to objects or arrays.
 *
 * Owns: the readers of results, and what was made for each schema. Invariant: a value is as it was stored, or the chunk was refused.
 * Leaves out: the code that makes rows (`decoder`), and the form of a chunk, which is the native module's.
 */

import { native } from "../native/addon.js";
import { misuse, misuseAfter } from "../native/errors.js";
import { cells, type Reader } from "../native/loop.js";
import {
  BIG,
  compile,
  interpreted,
  MIXED,
  NULL,
  NUMBER,
  WRITES,
  type Decoder,
  type Form,
  type RowForm,
} from "./decoder.js";

export type { RowForm } from "./decoder.js";

/** In the header of a chunk: which list of rows it is of. */
export const LIST = 4;
/** Where the forms of a chunk begin, or what the statements of a batch did. */
export const HEADER = 7;

interface Shape {
  forms: number[];
  decode: Decoder;
}

/** What was made for each schema: objects, and arrays. */
const known: Record<Form, Map<number, Shape[]>> = {
  object: new Map(),
  merged: new Map(),
  array: new Map(),
  expanded: new Map(),
};
const SCHEMAS = 1024;
/** Of one schema, code is made for so many combinations of forms. */
const SHAPES = 32;

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
