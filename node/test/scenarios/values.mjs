// The values of scenarios (docs/design/conformance.md): as JavaScript has them, and compared with what was found.
import assert from "node:assert/strict";
import { isDeepStrictEqual } from "node:util";
import { FlatwaterError, sql, Sql } from "../../dist/index.mjs";

/** Types of parameters that JavaScript does not have. */
export const LACKING = new Set(["datetime", "date", "time", "uuid"]);

/** Returns a value as JavaScript has it: integers beyond 2^53 as bigints. */
export function value(of) {
  if (of === null || typeof of !== "object") {
    return of;
  }
  assert.ok(!Array.isArray(of), "a list is no value");
  const [[tag, given], ...others] = Object.entries(of);
  assert.deepEqual(others, []);
  switch (tag) {
    case "int":
      return Number.isSafeInteger(Number(given)) ? Number(given) : BigInt(given);
    case "real":
      return Number(given);
    case "blob":
      return new Uint8Array(Buffer.from(given, "base64"));
    case "zeros":
      return new Uint8Array(given);
    case "repeat":
      return given[0].repeat(given[1]);
    case "utc":
      return new Date(given);
    case "date":
    case "time":
    case "uuid":
    case "decimal":
    case "json":
      // Where there are types: these are texts.
      return given;
  }
  throw new Error(`${tag} is no type`);
}

/** A number of a library for decimals. */
class Decimal {
  constructor(text) {
    this.text = text;
  }

  toFixed() {
    return this.text;
  }
}

function param(of) {
  return typeof of === "object" && of !== null && "decimal" in of ? new Decimal(of.decimal) : value(of);
}

export function params(of) {
  if (of === undefined || Array.isArray(of)) {
    return of?.map(param);
  }
  return Object.fromEntries(Object.entries(of).map(([name, one]) => [name, param(one)]));
}

/** Makes SQL of the parts of a scenario. */
export function built(parts) {
  return parts
    .map(([part, given]) => {
      switch (part) {
        case "push":
          return new Sql(given, []);
        case "bind":
          return sql`${value(given)}`;
        case "bind_list":
          return sql.list(given.map(value));
        case "push_identifier":
          return sql.id(given);
      }
      throw new Error(`${part} is no part`);
    })
    .reduce((all, part) => sql`${all}${part}`);
}

/** Compares a value with its type: 0 and -0 differ, and so do 1 and 1n. */
export function same(expected, found) {
  if (!isDeepStrictEqual(value(expected), found)) {
    const shown = typeof found === "string" ? found.slice(0, 100) : found;
    assert.fail(`expected ${JSON.stringify(expected)}, found ${typeof found} ${shown}`);
  }
}

export function sameRow(expected, found) {
  assert.equal(found.length, expected.length);
  expected.forEach((one, at) => same(one, found[at]));
}

export function sameRows(expected, found) {
  assert.equal(found.length, expected.length);
  expected.forEach((row, at) => sameRow(row, found[at]));
}

const FIELDS = new Set(
  "kind code constraint message_contains hint_contains hint sql_contains at retryable applied hides".split(" "),
);

/** Compares an error with what is expected of it. */
export function failed(expected, error) {
  for (const field of Object.keys(expected)) {
    assert.ok(FIELDS.has(field), `${field} is no field of an error`);
  }
  assert.ok(error instanceof FlatwaterError, `${error}`);
  assert.equal(error.kind, expected.kind, error.message);
  const { code } = expected;
  if (code !== undefined) {
    assert.equal(error.code, code.startsWith("SQLITE_") ? code : `FLATWATER_${code.toUpperCase()}`);
    assert.equal(error.errcode !== undefined, code.startsWith("SQLITE_"));
  }
  if ("constraint" in expected) {
    assert.deepEqual(error.constraint, { table: undefined, columns: [], name: undefined, ...expected.constraint });
  }
  // Names have the form of the language.
  const plain = (text) => text?.toLowerCase().replaceAll("_", "");
  contains(plain(error.message), plain(expected.message_contains));
  contains(plain(error.hint), plain(expected.hint_contains));
  if ("hint" in expected) {
    assert.equal(error.hint !== undefined, expected.hint, error.hint);
  }
  contains(error.sql, expected.sql_contains);
  if ("at" in expected) {
    contains(Buffer.from(error.sql).subarray(error.offset).toString().slice(0, expected.at.length), expected.at);
  }
  for (const field of ["retryable", "applied"]) {
    if (field in expected) {
      assert.equal(error[field], expected[field]);
    }
  }
  if ("hides" in expected) {
    const shown = [error.message, error.stack, JSON.stringify(error), JSON.stringify({ ...error })].join();
    assert.ok(!shown.includes(expected.hides), "the error has a bound value");
  }
}

function contains(text, part) {
  assert.ok(part === undefined || text?.includes(part), `${JSON.stringify(text)} has no ${JSON.stringify(part)}`);
}
