/**
 * Arguments of which there may be many.
 *
 * Owns: taking them from arrays and iterables in slices. Invariants: what is not read when the call is made is copied then; an iterable
 * may yield one object again and again; the loop is not held for longer than that copy takes, or half a millisecond. Leaves out:
 * reading a row (`plain`, and the native module), and the order of calls, which the native module keeps.
 */

import { native } from "../native/addon.js";
import { FlatwaterError, misuse, throwIfAborted } from "../native/errors.js";
import { FAILED, nextTurn, now, SLICE_MS } from "../native/loop.js";
import { copiedRow, copiedStatement } from "../values/copied.js";
import { addPlain } from "../values/plain.js";
import { Sql, type Params } from "../values/sql.js";
import type { BatchStatement } from "./calls.js";

/** Of an iterable so many are collected at once. */
const AT_ONCE = 512;
/** So many statements are looked at before the native module reads them. */
const STATEMENTS_AT_ONCE = 2048;
/** An iterable may run code of the program: the clock is looked at once for so many. */
const BETWEEN_LOOKS = 32;

/** What there may be many of. */
export interface Many<T> {
  /** Adds from a position on to what has this number, for a slice of time. Returns where to go on. */
  add(many: number, all: readonly T[], from: number): number;
  /** One as it is now. */
  copy(one: T): T;
  /** The rows that the runs return are wanted. */
  readonly wantsRows: boolean;
}

/** All that a call takes one by one. */
export type Given<T> = Iterable<T> | AsyncIterable<T>;

/** True of what is read without awaiting code of the program, which may await calls that come after this one. */
export function takesPlace(given: Given<unknown>): boolean {
  return !(Symbol.asyncIterator in given);
}

/** Throws if there is nothing to take one by one. */
export function checkGiven(given: unknown): void {
  if (typeof given !== "object" || given === null) {
    throw misuse(
      "this takes an array, an iterable or an async iterable",
      "a row of parameters is an array: [[value], ...]",
    );
  }
}

/** Gives all that there is to the rows of this number. Returns nothing if that is done, otherwise a promise. */
export function collect<T>(
  many: number,
  given: Given<T>,
  signal: AbortSignal | undefined,
  of: Many<T>,
): Promise<void> | undefined {
  if (!Array.isArray(given)) {
    return collectFrom(many, given, signal, of);
  }
  const all: readonly T[] = given.slice();
  const at = addSlice(many, all, 0, signal, of);
  return at < all.length ? addLater(many, all.slice(at).map(of.copy), 0, signal, of) : undefined;
}

async function collectFrom<T>(
  many: number,
  given: Given<T>,
  signal: AbortSignal | undefined,
  of: Many<T>,
): Promise<void> {
  let some: T[] = [];
  let end = now() + SLICE_MS;
  /** What is to be awaited, if it is time for it. */
  const take = (one: T): Promise<void> | undefined => {
    some.push(of.copy(one));
    return some.length % BETWEEN_LOOKS === 0 ? look() : undefined;
  };
  const look = async (): Promise<void> => {
    if (some.length === AT_ONCE) {
      await addAllOf(many, some, signal, of);
      some = [];
    }
    if (now() >= end) {
      await nextTurn();
      throwIfAborted(signal);
      end = now() + SLICE_MS;
    }
  };
  if (Symbol.asyncIterator in given) {
    for await (const one of given) {
      await take(one);
    }
  } else {
    for (const one of given) {
      const looked = take(one);
      if (looked !== undefined) {
        await looked;
      }
    }
  }
  await addAllOf(many, some, signal, of);
}

async function addAllOf<T>(
  many: number,
  all: readonly T[],
  signal: AbortSignal | undefined,
  of: Many<T>,
): Promise<void> {
  const at = addSlice(many, all, 0, signal, of);
  if (at < all.length) {
    await addLater(many, all, at, signal, of);
  }
}

/** Adds from a position on, in slices before each of which the loop has its turn. */
async function addLater<T>(
  many: number,
  all: readonly T[],
  from: number,
  signal: AbortSignal | undefined,
  of: Many<T>,
): Promise<void> {
  for (let at = from; at < all.length;) {
    await nextTurn();
    at = addSlice(many, all, at, signal, of);
  }
}

/** Returns where to go on. */
function addSlice<T>(
  many: number,
  all: readonly T[],
  from: number,
  signal: AbortSignal | undefined,
  of: Many<T>,
): number {
  throwIfAborted(signal);
  return of.add(many, all, from);
}

/** Rows of parameters. */
export const ROWS: Many<Params> = {
  add: (rows, all, from) => addAll(rows, all, from, false),
  copy: copiedRow,
  wantsRows: false,
};

/** The same of a statement that returns rows. */
export const ROWS_OF_RUNS: Many<Params> = { ...ROWS, wantsRows: true };

/** Statements. */
export const STATEMENTS: Many<BatchStatement> = {
  add: (statements, all, from) => addAll(statements, all, from, true),
  copy: copiedStatement,
  wantsRows: false,
};

function addAll(many: number, all: readonly unknown[], from: number, areStatements: boolean): number {
  const end = now() + SLICE_MS;
  let at = from;
  while (at < all.length) {
    const next = addPlain(many, all, at, areStatements);
    if (next === at) {
      return areStatements
        ? at + addAny(many, all.slice(at, at + STATEMENTS_AT_ONCE).map(plain), 0)
        : addAny(many, all, at);
    }
    at = next;
    if (now() >= end) {
      break;
    }
  }
  return at;
}

/** A statement as the native module reads it. */
function plain(statement: unknown): unknown {
  return statement instanceof Sql ? [statement.text, statement.values] : statement;
}

function addAny(many: number, all: readonly unknown[], from: number): number {
  const at = native.addRows(many, all, from);
  if (at === FAILED) {
    throw new FlatwaterError(native.failure());
  }
  return at;
}
