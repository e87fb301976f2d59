/**
 * Where in the program a call is made: inside of which transaction's function.
 *
 * Owns: the note of it, in the context of async functions. Invariant: the note is of no effect once the transaction is over. Leaves
 * out: refusing a call that would wait for its own transaction, which the engine does.
 */

import { AsyncLocalStorage } from "node:async_hooks";

/** When the transaction of a place is not begun yet, and when it is over. */
const UNBEGUN = -2;
const OVER = -1;

/** The number of an open transaction; negative when it is over. */
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
  const here: Place = { handle, around: around() };
  return flow.run(here, body, here);
}

/**
 * Notes a transaction that begins now, for what the caller does after it has awaited: the beginning is a call of its own. The caller sets
 * the number when it is begun, and -1 when it is over.
 */
export function enter(): Place {
  const here: Place = { handle: UNBEGUN, around: around() };
  flow.enterWith(here);
  return here;
}

/** Those that are over are left out, so that a loop of transactions keeps none of them. */
function around(): Place | undefined {
  isUsed = true;
  let at = flow.getStore();
  while (at?.handle === OVER) {
    at = at.around;
  }
  return at;
}
