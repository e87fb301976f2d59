/**
 * Where in the program a call is made: inside of which transaction's function.
 *
 * Owns: the note of it, in the context of async functions. Invariant: the note is of no effect once the transaction is over. Leaves
 * out: refusing a call that would wait for its own transaction, which the engine does.
 */

import { AsyncLocalStorage } from "node:async_hooks";

/** The number of an open transaction; -1 when it is over. */
export interface Place {
  handle: number;
  /** The one around it. */
  around: Place | undefined;
}

const flow = new AsyncLocalStorage<Place>();
/** Asking costs a little, and most programs never have one. */
let isUsed = false;

/** The number of the innermost open transaction whose function makes this call; -1 if there is none. */
export function place(): number {
  if (!isUsed) {
    return -1;
  }
  let at = flow.getStore();
  while (at !== undefined && at.handle < 0) {
    at = at.around;
  }
  return at === undefined ? -1 : at.handle;
}

/** Runs a function inside of the transaction of this number. */
export function inside<T>(handle: number, body: (place: Place) => T): T {
  isUsed = true;
  let around = flow.getStore();
  while (around !== undefined && around.handle < 0) {
    around = around.around;
  }
  const here: Place = { handle, around };
  return flow.run(here, body, here);
}

/**
 * Notes a transaction that begins now, for what the caller does after it has awaited: of a library in which the beginning is a call of
 * its own. The caller sets the number when it is begun, and -1 when it is over.
 */
export function enter(): Place {
  isUsed = true;
  const here: Place = { handle: -1, around: flow.getStore() };
  flow.enterWith(here);
  return here;
}
