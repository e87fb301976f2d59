/**
 * What rows become.
 *
 * Owns: classes, parsers and schemas (https://standardschema.dev). Invariants: the program's own code runs in slices; an error of a schema
 * has no value in it, because messages of libraries may. Leaves out: reading rows.
 */

import { misuse, undecoded } from "../native/errors.js";
import { nextTurn, now, SLICE_MS } from "../native/loop.js";

/** A schema of a validation library, as zod, valibot and ArkType have them: https://standardschema.dev */
export interface StandardSchema<T> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => Validated<T> | Promise<Validated<T>>;
    readonly types?: { readonly input: unknown; readonly output: T } | undefined;
  };
}

type Validated<T> = { readonly value: T; readonly issues?: undefined } | { readonly issues: readonly Issue[] };

/** Why a row does not fit: an error's `cause` has them. */
interface Issue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** A schema; anything that parses a row; or a class whose objects rows become. */
export type As<T> = StandardSchema<T> | { parse(row: unknown): T } | (new () => T);

/** Throws if that is nothing that a row may become. */
export function checkAs(as: unknown): void {
  const isObject = typeof as === "object" && as !== null;
  const isSchema = isObject && typeof (as as { parse?: unknown }).parse === "function";
  if (as !== undefined && typeof as !== "function" && !isSchema && !isStandard(as)) {
    throw misuse("as must be a class, a Standard Schema, or have a method `parse`");
  }
  // An arrow function, or an async one.
  const isClass = typeof (as as { prototype?: unknown } | undefined)?.prototype === "object";
  if (typeof as === "function" && !isClass && !("parse" in as) && !isStandard(as)) {
    throw misuse(
      "as is a function, and must be a class",
      "pass a function as the method `parse`: { as: { parse: (row) => ... } }",
    );
  }
}

function isStandard(as: unknown): as is StandardSchema<unknown> {
  const of = as as { readonly "~standard"?: { readonly validate?: unknown } } | null | undefined;
  return typeof of?.["~standard"]?.validate === "function";
}

/** Makes of a row, which has this number, what the caller wants. */
export function madeAs<T>(as: As<T>, row: unknown, number = 0, isApplied = false): T | Promise<T> {
  if (isStandard(as)) {
    const { validate, vendor } = (as as StandardSchema<T>)["~standard"];
    const validated = validate(row);
    const of = (result: Validated<T>) => valueOf(result, vendor, number, isApplied);
    return validated instanceof Promise ? validated.then(of) : of(validated);
  }
  if ("parse" in as) {
    return as.parse(row);
  }
  const made = Object.create(as.prototype as object) as Record<string, unknown>;
  for (const [name, value] of Object.entries(row as object)) {
    if (name in made) {
      // Of the class, or `__proto__`, which an assignment would replace.
      Object.defineProperty(made, name, { configurable: true, enumerable: true, value, writable: true });
    } else {
      made[name] = value;
    }
  }
  return made as T;
}

function valueOf<T>(result: Validated<T>, vendor: string, number: number, isApplied: boolean): T {
  if (result.issues === undefined) {
    return result.value;
  }
  const key = (part: PropertyKey | { readonly key: PropertyKey }) => String(typeof part === "object" ? part.key : part);
  const places = [...new Set(result.issues.map(({ path }) => (path ?? []).map(key).join(".")))].filter(
    (place) => place,
  );
  const at = places.length === 0 ? "" : ` at ${places.join(", ")}`;
  const hint = "the `cause` of this error has the issues";
  const error = undecoded(`row ${number} does not fit the schema (${vendor})${at}`, isApplied, hint);
  error.cause = result.issues;
  throw error;
}

/** The clock is looked at once for so many rows. */
const BETWEEN_LOOKS = 16;

/** Makes of all rows what the caller wants, in slices: it is the program's own code. */
export async function allMadeAs<T>(
  as: As<T>,
  rows: readonly unknown[],
  isApplied: boolean,
  signal?: AbortSignal,
): Promise<T[]> {
  const made: T[] = [];
  let end = now() + SLICE_MS;
  for (const row of rows) {
    const one = madeAs(as, row, made.length, isApplied);
    made.push(one instanceof Promise ? await one : one);
    if (made.length % BETWEEN_LOOKS === 0 && now() >= end) {
      await nextTurn();
      signal?.throwIfAborted();
      end = now() + SLICE_MS;
    }
  }
  return made;
}
