/**
 * What concerns all databases of this process: how many have connections, and closing all of them.
 *
 * Owns: these two calls. They hold for the databases of all threads of Node, and of other copies of the package.
 */

import { nothing, refused } from "./calls/calls.js";
import { native } from "./native/addon.js";
import { misuse } from "./native/errors.js";
import { settle } from "./native/loop.js";

/**
 * Sets how many databases of this process may have connections at a time; 64 unless it is set. Beyond that, the connections of the
 * least recently used ones are closed, and the next call on one opens them again: the databases stay open.
 */
export function setMaxOpen(databases: number): void {
  if (!Number.isInteger(databases) || databases < 1) {
    throw misuse("the number of databases must be a whole number, from 1 on");
  }
  native.setMaxOpen(databases);
}

/**
 * Closes all database files that are open in this process, at the same time, and resolves when they are closed.
 *
 * For each file it does what `close` does: it executes the writes that were made before, waits for open transactions, and rolls these
 * back after `wait` milliseconds, or after `closeWait` of the database if that is shorter. Calls on the remaining handles fail with
 * kind `closed`, but for `close`. A file may be opened again afterwards. Databases in memory, and files that are being opened, stay open.
 */
export function closeAll(wait: number): Promise<void> {
  if (typeof wait !== "number" || !(wait >= 0)) {
    return refused(misuse("wait must be a number of milliseconds"));
  }
  return settle(native.closeAll(wait), nothing);
}
