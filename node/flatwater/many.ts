/**
 * Arguments of which there may be many.
 *
 * Owns: taking them from arrays and iterables in slices. Invariant: an array of 300,000 rows holds the loop for half a millisecond at
 * a time. Leaves out: reading a row, which the native module does.
 */

import { native } from "./addon.js";
import { FlatwaterError, misuse } from "./errors.js";
import { FAILED, nextTurn } from "./loop.js";

/** Of an iterable, so many are collected at once. */
const AT_ONCE = 512;

/**
 * Gives all that there is to the rows of this number. Of an array that is taken in one slice it returns nothing, so that the call takes
 * its place in the queue when it is made; otherwise a promise.
 */
export function collect<T>(
  many: number,
  given: Iterable<T> | AsyncIterable<T>,
  signal: AbortSignal | undefined,
  plain: ((one: T) => unknown) | undefined,
): Promise<void> | undefined {
  if (typeof given === "string" || given === null || typeof given !== "object") {
    throw misuse(
      "this takes an array, an iterable or an async iterable",
      "a row of parameters is an array: [[value], ...]",
    );
  }
  if (!Array.isArray(given)) {
    return collectFrom(many, given, signal, plain);
  }
  const all: unknown[] = plain === undefined ? given : given.map(plain);
  const at = addSlice(many, all, 0, signal);
  return at < all.length ? addFrom(many, all, at, signal) : undefined;
}

async function collectFrom<T>(
  many: number,
  given: Iterable<T> | AsyncIterable<T>,
  signal: AbortSignal | undefined,
  plain: ((one: T) => unknown) | undefined,
): Promise<void> {
  let some: unknown[] = [];
  for await (const one of given) {
    some.push(plain === undefined ? one : plain(one));
    if (some.length === AT_ONCE) {
      await addFrom(many, some, 0, signal);
      some = [];
    }
  }
  await addFrom(many, some, 0, signal);
}

/** Adds from a position on, in slices between which the loop has its turn. */
async function addFrom(many: number, all: readonly unknown[], from: number, signal: AbortSignal | undefined) {
  for (let at = from; at < all.length;) {
    if (at > 0) {
      await nextTurn();
    }
    at = addSlice(many, all, at, signal);
  }
}

/** Returns where to go on. */
function addSlice(many: number, all: readonly unknown[], from: number, signal: AbortSignal | undefined): number {
  signal?.throwIfAborted();
  const at = native.addRows(many, all, from);
  if (at === FAILED) {
    throw new FlatwaterError(native.failure());
  }
  return at;
}
