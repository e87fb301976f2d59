/**
 * Functions on the loop of the thread that defines them.
 *
 * Owns: their code, and their part of each turn of the loop. Threads of databases wait for it. Invariants: in a turn calls take about a
 * millisecond, or one call, then timers and I/O are served; code that no database has is let go; a call runs in the async context in which
 * the package was loaded. Leaves out: a call (`calling`), and who waits, which the native module knows.
 */

import { AsyncResource } from "node:async_hooks";
import { native } from "../native/addon.js";
import { misuse } from "../native/errors.js";
import { now } from "../native/loop.js";
import { Calling } from "./calling.js";
import { Defined, type Code, type Definition } from "./defined.js";
import type { DefineFunctions } from "./types.js";

/** How long functions run in one turn, in milliseconds. */
const TURN_MS = 1;

/** The functions of an environment, also of other copies of this module: the first one calls them. */
interface OnLoop {
  readonly codes: Map<number, Code>;
  /** The number of the next one. */
  next: number;
  readonly woken: () => void;
}

// Kept, because test runners replace it.
const { setImmediate } = globalThis;
const owner = native as { onLoop?: OnLoop };
const { codes, woken } = (owner.onLoop ??= begun());

function begun(): OnLoop {
  const codes = new Map<number, Code>();
  const { call } = new Calling(codes);
  /** When the first call of this turn began; 0 if there was none. */
  let began = 0;
  let isDue = false;
  const woken = () => {
    if (began === 0) {
      began = now();
      setImmediate(turn);
    }
    isDue = now() - began > TURN_MS || native.serve(call, true);
  };
  /** Timers and I/O have been served. */
  const turn = () => {
    began = 0;
    if (isDue) {
      woken();
    }
  };
  return { codes, next: 0, woken: AsyncResource.bind(woken) };
}

/** Returns what a function of the program defines, for one database. */
export async function definedOnLoop(define: DefineFunctions | undefined): Promise<Definition[] | undefined> {
  if (define === undefined) {
    return undefined;
  }
  if (typeof define !== "function") {
    throw misuse(
      'the option "functionsOnLoop" must be a function that defines functions',
      'pass (db) => { db.function("name", code) }; a module of functions is the option "functions"',
      "invalid_option",
    );
  }
  const defined = new Defined();
  await define(defined);
  defined.isOver = true;
  return defined.all;
}

/** Keeps the code until no database has it. Returns what the native module is given beside the definitions. */
export function kept(definitions: Definition[] | undefined): [first: number, woken: () => void] {
  const first = owner.onLoop!.next;
  for (const [at, definition] of (definitions ?? []).entries()) {
    codes.set(first + at, definition[6]);
  }
  owner.onLoop!.next += definitions?.length ?? 0;
  return [first, woken];
}
