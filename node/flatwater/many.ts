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

/** Gives all that there is to the rows of this number. */
export async function collect<T>(
  many: number,
  given: Iterable<T> | AsyncIterable<T>,
  signal: AbortSignal | undefined,
  plain: ((one: T) => unknown) | undefined,
): Promise<void> {
  if (typeof given === "string" || given === null || typeof given !== "object") {
    throw misuse(
      "this takes an array, an iterable or an async iterable",
      "a row of parameters is an array: [[value], ...]",
    );
  }
  if (Array.isArray(given)) {
    return add(many, plain === undefined ? given : given.map(plain), signal);
  }
  let some: unknown[] = [];
  for await (const one of given) {
    some.push(plain === undefined ? one : plain(one));
    if (some.length === AT_ONCE) {
      await add(many, some, signal);
      some = [];
    }
  }
  return add(many, some, signal);
}

async function add(many: number, all: readonly unknown[], signal: AbortSignal | undefined): Promise<void> {
  for (let at = 0; at < all.length;) {
    signal?.throwIfAborted();
    at = native.addRows(many, all, at);
    if (at === FAILED) {
      throw new FlatwaterError(native.failure());
    }
    if (at < all.length) {
      await nextTurn();
    }
  }
  signal?.throwIfAborted();
}
