/**
 * SQL with its values.
 *
 * Owns: the template tag `sql`. Invariant: a value never becomes a part of the text. Leaves out: running it.
 */

import { misuse } from "../native/errors.js";

/** A value that can be stored. A `Date` is stored as `YYYY-MM-DD HH:MM:SS` in UTC, with `.ffffff` if it has milliseconds. */
export type SqlValue = null | number | bigint | string | boolean | Uint8Array | ArrayBuffer | DataView | Date;

/** A number of a library for decimals, such as decimal.js: `toFixed()` returns its digits. */
export interface DecimalValue {
  toFixed(): string;
}

/** What can be bound. Arrays and objects, as JSON, and decimals only where there are `types`. */
export type ParamValue = SqlValue | DecimalValue | readonly unknown[] | { readonly [name: string]: unknown };

/** The values of a statement: by position for `?`, by name for `:name`, `@name` and `$name`. */
export type Params = readonly ParamValue[] | { readonly [name: string]: ParamValue };

/** Another copy of this module may have made it. */
const SQL = Symbol.for("flatwater.sql");

/** A text with the values of its parameters, as the tag {@link sql} makes it. */
export class Sql {
  constructor(
    readonly text: string,
    readonly values: readonly SqlValue[],
  ) {}

  static {
    Object.defineProperty(this.prototype, SQL, { value: true });
  }

  /** Also of another copy of this module. */
  static [Symbol.hasInstance](given: unknown): boolean {
    return typeof given === "object" && given !== null && SQL in given;
  }
}

/**
 * Makes SQL of a template: what is inserted becomes a parameter, and another piece of SQL becomes a part of the text.
 *
 * ```js
 * await db.query(sql`SELECT * FROM users WHERE name = ${name} AND id IN ${sql.list(ids)}`);
 * ```
 */
export function sql(strings: TemplateStringsArray, ...inserted: readonly (SqlValue | Sql)[]): Sql {
  if (!Array.isArray(strings)) {
    throw misuse("sql is the tag of a template", "write sql`SELECT ...`; a string is SQL as it is");
  }
  let text = strings[0]!;
  const values: SqlValue[] = [];
  inserted.forEach((value, at) => {
    if (value instanceof Sql) {
      // Two names without a space would be one.
      text += text.endsWith("`") && value.text.startsWith("`") ? ` ${value.text}` : value.text;
      values.push(...value.values);
    } else {
      text += "?";
      values.push(value);
    }
    text += strings[at + 1];
  });
  return new Sql(text, values);
}

/** How long a list of so many values becomes: one of few lengths. */
function padded(count: number): number {
  const length = count > 1024 ? Math.ceil(count / 1024) * 1024 : count && 2 ** Math.ceil(Math.log2(count));
  return length > 32_766 ? count : length;
}

/**
 * A list in parentheses, for `IN`. One of the values is repeated until the list has one of few lengths, so that lists of many lengths
 * have few texts. `IN` takes a list as a set; where the number of values counts, there is `sql.row`.
 */
sql.list = (values: Iterable<SqlValue>): Sql => {
  const all = [...values];
  const at = all.findIndex((value) => value === null || typeof value === "number");
  const small = all.at(at)!;
  return sql.row([...all, ...Array<SqlValue>(padded(all.length) - all.length).fill(small)]);
};

/** A row in parentheses, for `VALUES`, or arguments: each value once. */
sql.row = (values: Iterable<SqlValue>): Sql => {
  const all = [...values];
  return new Sql(`(${all.map(() => "?").join(", ")})`, all);
};

/** The name of a table or column, quoted so that SQLite takes it for no text if there is none of that name. */
sql.id = (name: string): Sql => {
  if (name.includes("\0")) {
    throw misuse("a name must not contain a NUL character", undefined, "nul_byte");
  }
  return new Sql(`\`${name.replaceAll("`", "``")}\``, []);
};
