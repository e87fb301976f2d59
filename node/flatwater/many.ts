/**
 * Arguments of which there may be many.
 *
 * Owns: taking them from arrays and iterables in slices. Invariant: an array of 300,000 rows holds the loop for half a millisecond at
 * a time. Leaves out: reading a row (`plain`, and the native module).
 */

import { native } from "./addon.js";
import { FlatwaterError, misuse } from "./errors.js";
import { FAILED, nextTurn, now, SLICE_MS } from "./loop.js";
import { addPlain } from "./plain.js";
import type { BatchStatement } from "./session.js";
import { Sql } from "./sql.js";

/** Of an iterable so many are collected at once. */
const AT_ONCE = 512;
/** So many statements are looked at before the native module reads them. */
const STATEMENTS_AT_ONCE = 2048;
/** An iterable may run code of the program: the clock is looked at once for so many. */
const BETWEEN_LOOKS = 32;

/** Adds from a position on to what has this number, for a slice of time. Returns where to go on. */
export type Add<T> = (many: number, all: readonly T[], from: number) => number;

/**
 * Gives all that there is to the rows of this number. Of an array that is taken in one slice it returns nothing, so that the call takes
 * its place in the queue when it is made; otherwise a promise.
 */
export function collect<T>(
  many: number,
  given: Iterable<T> | AsyncIterable<T>,
  signal: AbortSignal | undefined,
  add: Add<T>,
): Promise<void> | undefined {
  if (typeof given === "string" || given === null || typeof given !== "object") {
    throw misuse(
      "this takes an array, an iterable or an async iterable",
      "a row of parameters is an array: [[value], ...]",
    );
  }
  if (!Array.isArray(given)) {
    return collectFrom(many, given, signal, add);
  }
  const at = addSlice(many, given, 0, signal, add);
  return at < given.length ? addFrom(many, given, at, signal, add) : undefined;
}

async function collectFrom<T>(
  many: number,
  given: Iterable<T> | AsyncIterable<T>,
  signal: AbortSignal | undefined,
  add: Add<T>,
): Promise<void> {
  let some: T[] = [];
  let end = now() + SLICE_MS;
  for await (const one of given) {
    some.push(one);
    if (some.length === AT_ONCE) {
      await addFrom(many, some, 0, signal, add);
      some = [];
    }
    if (some.length % BETWEEN_LOOKS === 0 && now() >= end) {
      await nextTurn();
      signal?.throwIfAborted();
      end = now() + SLICE_MS;
    }
  }
  await addFrom(many, some, 0, signal, add);
}

/** Adds from a position on, in slices between which the loop has its turn. */
async function addFrom<T>(
  many: number,
  all: readonly T[],
  from: number,
  signal: AbortSignal | undefined,
  add: Add<T>,
): Promise<void> {
  for (let at = from; at < all.length;) {
    if (at > 0) {
      await nextTurn();
    }
    at = addSlice(many, all, at, signal, add);
  }
}

/** Returns where to go on. */
function addSlice<T>(
  many: number,
  all: readonly T[],
  from: number,
  signal: AbortSignal | undefined,
  add: Add<T>,
): number {
  signal?.throwIfAborted();
  return add(many, all, from);
}

/** Adds rows of parameters. */
export const addRows: Add<unknown> = (rows, all, from) => addAll(rows, all, from, false);

/** Adds statements. */
export const addStatements: Add<BatchStatement> = (statements, all, from) => addAll(statements, all, from, true);

function addAll(many: number, all: readonly unknown[], from: number, areStatements: boolean): number {
  const end = now() + SLICE_MS;
  let at = from;
  do {
    const next = addPlain(many, all, at, areStatements);
    if (next === at) {
      return areStatements
        ? at + addAny(many, all.slice(at, at + STATEMENTS_AT_ONCE).map(plain), 0)
        : addAny(many, all, at);
    }
    at = next;
  } while (at < all.length && now() < end);
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
